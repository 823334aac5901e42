"""Prompts and references as token ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jinja2 import TemplateError

from peekbench import DataError, Task
from peekbench.errors import SpecError
from peekbench_generation.options import Prompting
from peekbench_lm.completions import Completion
from peekbench_lm.tokenizer import one_thread, special_prefix

GAP = "\n\n"  # between the instruction, examples and the prompt
DATE = "26 Jul 2024"  # for chat templates that print it, so that prompts do not depend on the day


class PromptEncoder:
    """Writes and tokenizes the prompts of a task.

    Parameters
    ----------
    tokenizer
        Tokenizer of transformers.
    task
        Its instruction precedes every prompt.
    options
        Form of the prompts, and length of the answers.
    limit
        Maximum number of tokens of a prompt and its answer.
    examples
        Prompts and references that precede each prompt.

    Raises
    ------
    SpecError
        If the longest answer leaves no room for a prompt.
    """

    def __init__(
        self, tokenizer: Any, task: Task, options: Prompting, limit: int, examples: Sequence[tuple[str, str]] = ()
    ) -> None:
        self._tokenizer = tokenizer
        self._task = task
        self._limit = limit
        self._room = limit - options.answers.max_tokens
        self._are_cut: list[bool] = []
        self._examples = examples
        self.is_chat = options.chat_template == "auto" and bool(tokenizer.chat_template)
        """Whether prompts are chat messages."""
        self._delimiter = "" if self.is_chat else options.delimiter
        self._special = [] if self.is_chat else special_prefix(tokenizer)
        self._head: Sequence[int] = self._special
        if self.is_chat:
            first, second = self._tokenize([self._fill_template([("user", text)]) for text in ("a", "b")])
            self._head = first[: _count_equal(first, second)]
        if self._room <= len(self._head):
            raise SpecError(
                f"answers.max_tokens: {options.answers.max_tokens} leaves no room for a prompt in a context of {limit} "
                "tokens; reduce it, or choose a larger context_length or a model with a longer context"
            )

    def encode(self, prompts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of prompts, after the instruction and the examples.

        Parameters
        ----------
        prompts
            Prompts of the task.

        Raises
        ------
        DataError
            If the chat template of the model fails.
        """
        encoded = self._tokenize([self._write(prompt) for prompt in prompts])
        return [self._cut(ids, self._room) for ids in encoded]

    def complete(self, prompt: str, answer: str) -> Completion:
        """Return the token ids of a prompt and its answer, of which those of the answer and its end are predicted.

        Parameters
        ----------
        prompt
            Prompt of the task.
        answer
            Answer to learn.

        Raises
        ------
        DataError
            If the answer does not fit into the context of the model, or its chat template fails.
        """
        written = self._write(prompt)
        alone, whole = self._tokenize([written, f"{written}{self._delimiter}{answer}"])
        num_shared = _count_equal(alone, whole)
        end = self._tokenizer.eos_token_id
        answer_ids = [*whole[num_shared:], *(() if end is None else (end,))]
        room = self._limit - len(answer_ids)
        if room <= len(self._head):
            raise DataError(
                f"task {self._task.name}: a reference has {len(answer_ids)} tokens, but the context has {self._limit}; "
                "choose a larger context_length or a model with a longer context"
            )
        prompt_ids = self._cut(whole[:num_shared], room)
        return Completion([*prompt_ids, *answer_ids], len(prompt_ids))

    def _cut(self, ids: list[int], room: int) -> list[int]:
        """Remove the beginning of a prompt that is too long, because the question is often at its end.

        Special tokens stay, and what a chat template writes before the first message. A prompt without tokens becomes
        an end-of-text token.
        """
        self._are_cut.append(len(ids) > room)
        if not ids:
            return [self._tokenizer.eos_token_id or 0]
        num_kept = _count_equal(self._head, ids)
        return [*ids[:num_kept], *ids[num_kept:][-(room - num_kept) :]]

    def take_share_cut(self) -> float:
        """Return the share of the prompts since the last call that are too long and lack their beginning."""
        are_cut, self._are_cut = self._are_cut, []
        return sum(are_cut) / max(1, len(are_cut))

    def _write(self, prompt: str) -> str:
        instruction = f"{self._task.instruction}{GAP}" if self._task.instruction else ""
        if not self.is_chat:
            examples = (f"{question}{self._delimiter}{answer}{GAP}" for question, answer in self._examples)
            return "".join([instruction, *examples, prompt])
        messages = []
        for question, answer in self._examples:
            messages += [("user", f"{instruction}{question}"), ("assistant", answer)]
        return self._fill_template([*messages, ("user", f"{instruction}{prompt}")])

    def _fill_template(self, messages: Sequence[tuple[str, str]]) -> str:
        """Write messages of roles by the chat template of the model, up to the beginning of an answer."""
        chat = [{"role": role, "content": content} for role, content in messages]
        try:
            return str(
                self._tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True, date_string=DATE)
            )
        except (TemplateError, TypeError, ValueError) as error:
            raise DataError(
                f"{self._tokenizer.name_or_path}: its chat template fails: {error}; write `chat_template: never` to "
                "prompt without it"
            ) from error

    def _tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        with one_thread():
            encoded = self._tokenizer(
                list(texts), add_special_tokens=False, return_attention_mask=False, verbose=False
            )["input_ids"]
        return [[*self._special, *ids] for ids in encoded]


def _count_equal(ids: Sequence[int], others: Sequence[int]) -> int:
    """Return the number of first tokens that are equal."""
    pairs = enumerate(zip(ids, others, strict=False))
    return next((place for place, (token, other) in pairs if token != other), min(len(ids), len(others)))
