"""Prompts as token ids: texts in their frame, in a chat where the model knows chats, cut where they are too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from peekbench import DataError, Task
from peekbench.data import frame_prompt
from peekbench.errors import SpecError
from peekbench_prompting.answers import Answers, find_answers

if TYPE_CHECKING:
    from peekbench_prompting.options import ChatTemplate

Offsets: TypeAlias = list[tuple[int, int]]
STAND_IN = "peekbench-stands-in-for-a-text"
DATE = "26 Jul 2024"
"""What templates that tell the date are told, so that prompts do not depend on the day; the default of Llama 3's."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt for one text."""

    string: str
    """Without the special tokens that the tokenizer puts in front."""
    ids: list[int]
    tail: tuple[int, ...]
    """Its last tokens: those that reach into what stands behind the text."""
    num_leading: int
    """Its tokens before the text's own paragraph: the instruction's."""
    is_cut: bool
    """Whether the context was too short for all of the text's first 1,000 characters."""


class Prompts:
    """A task's prompts in the words of one tokenizer."""

    def __init__(
        self,
        tokenizer: Any,
        task: Task,
        limit: int,
        examples: Sequence[tuple[str, str]] = (),
        chat_template: ChatTemplate = "auto",
    ) -> None:
        """Find out what stands around a text.

        Parameters
        ----------
        limit
            Most tokens of a prompt with the longest answer.
        examples
            Texts with their classes' names, shown in front of the text to classify.

        Raises
        ------
        SpecError
            Where not even the instruction and an answer fit.
        DataError
            Where the tokenizer's chat template changes what is put to it, or the tokenizer cannot say where its tokens
            stand in a text.
        """
        if not tokenizer.is_fast:
            raise DataError(
                f"{tokenizer.name_or_path}: its tokenizer does not tell where its tokens stand in a text, by which "
                "prompts are cut; give a model with a tokenizer.json"
            )
        self.tokenizer = tokenizer
        self.task = task
        frame = frame_prompt(task.class_names, task.instruction, examples)
        self.frame = frame
        self.is_chat = chat_template == "auto" and bool(tokenizer.chat_template)
        self._before, self._behind, self._gap = frame.before, frame.behind, " "
        self._special: list[int] = []
        """What the tokenizer puts in front of a sequence; a chat template has it written out."""
        if self.is_chat:
            self._before, self._behind, self._gap = _as_chat(tokenizer, frame.before, frame.behind)
        else:
            self._special = _leading(tokenizer)
        self._paragraph = len(self._before) - len(f"\n\n{frame.text_mark}")
        self._answers: dict[tuple[int, ...], Answers] = {}
        self._limit = limit
        (empty,) = self._write([""])
        longest = max(len(ids) for ids in self._with_answers(empty))
        if longest > limit:
            raise SpecError(
                f"task {task.name}: the prompt's instruction with {task.num_classes} class names, and the longest of "
                f"these as the answer, are {longest} tokens, and the context has {limit}; choose a larger "
                "context_length, a model with a longer context, or another task"
            )
        self._limit = limit - (longest - len(empty.ids))

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text's prompt, from the instruction to the answer mark."""
        return [prompt.ids for prompt in self.prompts(texts)]

    def prompts(self, texts: Sequence[str]) -> list[Prompt]:
        """Each text's prompt, with room for the longest answer behind it."""
        return self._write([self.frame.cut(text) for text in texts])

    def answers(self, prompt: Prompt) -> Answers:
        """What the classes' answers are made of behind a prompt.

        Tokenizers look at what is near, so prompts whose last tokens are the same go on in the same way.

        Raises
        ------
        DataError
            Where a class's name adds no token to a prompt.
        """
        if (known := self._answers.get(prompt.tail)) is None:
            try:
                known = find_answers(prompt.ids, self._with_answers(prompt))
            except ValueError as error:
                names = ", ".join(map(repr, self.task.class_names))
                raise DataError(
                    f"task {self.task.name}: {error} for one of {names} with this model's tokenizer; give each class a "
                    "name with letters, or choose another model"
                ) from error
            if known.num_replaced <= len(prompt.tail):
                self._answers[prompt.tail] = known
        return known

    def with_answer(self, prompt: Prompt, label: int) -> list[int]:
        """Token ids of a prompt and, behind it, the answer that names a class."""
        answers = self.answers(prompt)
        return [*prompt.ids[: len(prompt.ids) - answers.num_replaced], *answers.tokens[label]]

    def joined(self, sequence: Sequence[Prompt]) -> list[int]:
        """Token ids of several texts' paragraphs behind the one instruction, written together: tokens may join them."""
        first, *others = sequence
        ((ids, _),) = self._encode(["".join([first.string, *(each.string[self._paragraph :] for each in others)])])
        return ids

    def _with_answers(self, prompt: Prompt) -> list[list[int]]:
        whole = [f"{prompt.string}{self._gap}{name}" for name in self.task.class_names]
        return [ids for ids, _ in self._encode(whole)]

    def _write(self, texts: Sequence[str]) -> list[Prompt]:
        encoded = self._encode([self._around(text) for text in texts])
        return [self._fitting(text, *each) for text, each in zip(texts, encoded, strict=True)]

    def _fitting(self, text: str, ids: list[int], offsets: Offsets) -> Prompt:
        """A prompt, cut in its text to the context."""
        whole = text
        while text and len(ids) > self._limit:
            border = len(self._before) + len(text)
            inside = [start for start, end in offsets if start >= len(self._before) and end <= border]
            over = len(ids) - self._limit
            kept = inside[-over] - len(self._before) if over <= len(inside) else 0
            text = text[: min(kept, len(text) - 1)]
            ((ids, offsets),) = self._encode([self._around(text)])
        border = len(self._before) + len(text)
        tail = tuple(token for token, (_, end) in zip(ids, offsets, strict=True) if end > border)
        num_leading = sum(end <= self._paragraph for _, end in offsets)
        return Prompt(self._around(text), ids, tail, num_leading, is_cut=text != whole)

    def _around(self, text: str) -> str:
        return f"{self._before}{text}{self._behind}"

    def _encode(self, strings: Sequence[str]) -> list[tuple[list[int], Offsets]]:
        """Token ids of each string, and where in it they begin and end."""
        if not strings:
            return []
        encoded = self.tokenizer(
            list(strings),
            add_special_tokens=False,
            return_attention_mask=False,
            return_offsets_mapping=True,
            verbose=False,
        )
        nowhere = [(0, 0)] * len(self._special)
        return [
            ([*self._special, *ids], [*nowhere, *offsets])
            for ids, offsets in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
        ]


def _leading(tokenizer: Any) -> list[int]:
    """The special tokens that a tokenizer puts in front of a text."""
    bare, whole = (tokenizer("a", add_special_tokens=special)["input_ids"] for special in (False, True))
    places = (start for start in range(len(whole)) if whole[start : start + len(bare)] == bare)
    return list(whole[: next(places, 0)])


def _as_chat(tokenizer: Any, before: str, behind: str) -> tuple[str, str, str]:
    """A user's message in the tokenizer's template: what stands before its text, behind it, and before a reply."""
    from jinja2 import TemplateError

    def render(*messages: str, **more: Any) -> str:
        roles = [{"role": role, "content": said} for role, said in zip(("user", "assistant"), messages, strict=False)]
        return str(tokenizer.apply_chat_template(roles, tokenize=False, date_string=DATE, **more))

    question = f"{before}{STAND_IN}{behind}"
    try:
        asked = render(question, add_generation_prompt=True)
        replied = render(question, f"{STAND_IN}.")
    except (TemplateError, TypeError, ValueError) as error:
        raise _unfit(tokenizer, f"fails: {error}") from error
    if asked.count(question) != 1 or asked.count(STAND_IN) != 1:
        raise _unfit(tokenizer, "changes a user's message")
    front, _, back = asked.partition(STAND_IN)
    # What a reply begins with, such as a space, where the template does not have it from the question on.
    gap = replied.removeprefix(asked).partition(STAND_IN)[0] if replied.startswith(asked) else ""
    return front, back, gap


def _unfit(tokenizer: Any, fault: str) -> DataError:
    return DataError(
        f"{tokenizer.name_or_path}: its chat template {fault}; write `chat_template: never` to prompt without it"
    )
