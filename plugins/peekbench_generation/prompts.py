"""Prompts and references as token ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jinja2 import TemplateError

from peekbench import DataError, Task
from peekbench_generation.options import Prompting
from peekbench_lm.completions import Completion
from peekbench_lm.tokenizer import one_thread, special_prefix

GAP = "\n\n"  # between the instruction, examples and the prompt
DATE = "26 Jul 2024"  # for chat templates that print it, so that prompts do not depend on the day
MAX_SHOWN = 60  # characters of a prompt in messages


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
    """

    def __init__(
        self, tokenizer: Any, task: Task, options: Prompting, limit: int, examples: Sequence[tuple[str, str]] = ()
    ) -> None:
        self._tokenizer = tokenizer
        self._task = task
        self._limit = limit
        self._max_tokens = options.answers.max_tokens
        self._examples = examples
        self.is_chat = options.chat_template == "auto" and bool(tokenizer.chat_template)
        """Whether prompts are chat messages."""
        self._delimiter = "" if self.is_chat else options.delimiter
        self._special = [] if self.is_chat else special_prefix(tokenizer)

    def encode(self, prompts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of prompts, after the instruction and the examples.

        Parameters
        ----------
        prompts
            Prompts of the task.

        Raises
        ------
        DataError
            If a prompt and its answer do not fit into the context of the model, or its chat template fails.
        """
        encoded = self._tokenize([self._write(prompt) for prompt in prompts])
        for prompt, ids in zip(prompts, encoded, strict=True):
            self._check_length(prompt, len(ids), self._max_tokens)
        return encoded

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
            If both do not fit into the context of the model, or its chat template fails.
        """
        written = self._write(prompt)
        alone, whole = self._tokenize([written, f"{written}{self._delimiter}{answer}"])
        pairs = enumerate(zip(alone, whole, strict=False))
        num_shared = next((place for place, (token, other) in pairs if token != other), len(alone))
        end = self._tokenizer.eos_token_id
        ids = [*whole, *(() if end is None else (end,))]
        self._check_length(prompt, num_shared, len(ids) - num_shared)
        return Completion(ids, num_shared)

    def _write(self, prompt: str) -> str:
        instruction = f"{self._task.instruction}{GAP}" if self._task.instruction else ""
        if not self.is_chat:
            examples = (f"{question}{self._delimiter}{answer}{GAP}" for question, answer in self._examples)
            return "".join([instruction, *examples, prompt])
        messages = []
        for question, answer in self._examples:
            messages += [("user", f"{instruction}{question}"), ("assistant", answer)]
        messages.append(("user", f"{instruction}{prompt}"))
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

    def _check_length(self, prompt: str, num_tokens: int, num_answer: int) -> None:
        if num_tokens and num_tokens + num_answer <= self._limit:
            return
        shown = repr(prompt if len(prompt) <= MAX_SHOWN else f"{prompt[:MAX_SHOWN]}...")
        if not num_tokens:
            raise DataError(f"task {self._task.name}: the prompt {shown} has no tokens; remove it from the data")
        raise DataError(
            f"task {self._task.name}: the prompt {shown} has {num_tokens} tokens and its answer up to {num_answer}, "
            f"but the context has {self._limit}; choose a larger context_length, a model with a longer context, a "
            "smaller answers.max_tokens or fewer num_examples, or remove long prompts from the data"
        )
