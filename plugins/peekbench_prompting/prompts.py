"""Prompts as token ids: texts in their frame, after as many examples as fit, and the tokens of each class's answer."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from jinja2 import TemplateError

from peekbench import DataError, Labeled, Task
from peekbench.errors import SpecError
from peekbench.records import IntArray
from peekbench_lm.tokenizer import special_prefix
from peekbench_prompting.frame import PromptFrame, frame_prompt
from peekbench_prompting.options import ChatTemplate


@dataclass(frozen=True, slots=True)
class AnswerTokens:
    """The class names, tokenized as answers to one prompt."""

    num_replaced: int
    """Number of tokens at the end of the prompt that change if an answer follows; they count as part of the answers."""
    tokens: tuple[tuple[int, ...], ...]
    """Token ids of each class's answer; every answer has at least one token."""


def find_answer_tokens(prompt: Sequence[int], prompts_with_answers: Sequence[Sequence[int]]) -> AnswerTokens:
    """Find the tokens that belong to each answer.

    A tokenizer may tokenize the end of a prompt differently if more text follows. Prompt and answer are therefore
    tokenized together. An answer is everything after the longest prefix that the bare prompt shares with all of these
    sequences, so all classes are compared from the same token on.

    Parameters
    ----------
    prompt
        Token ids of the prompt without an answer.
    prompts_with_answers
        Token ids of the prompt followed by the answer, for each class.

    Returns
    -------
    AnswerTokens
        The token ids of the answers, in the order of the classes.

    Raises
    ------
    ValueError
        If an answer adds no token.
    """
    prefix = min(_count_shared(prompt, sequence) for sequence in prompts_with_answers)
    if any(len(sequence) <= prefix for sequence in prompts_with_answers):
        raise ValueError("an answer adds no token to the prompt")
    return AnswerTokens(len(prompt) - prefix, tuple(tuple(sequence[prefix:]) for sequence in prompts_with_answers))


def _count_shared(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the length of the longest common prefix."""
    for position, (token, other) in enumerate(zip(first, second, strict=False)):
        if token != other:
            return position
    return min(len(first), len(second))


Offsets: TypeAlias = list[tuple[int, int]]
PLACEHOLDER = "peekbench-stands-in-for-a-text"
DATE = "26 Jul 2024"
"""Date given to chat templates that print it, so that prompts do not depend on the day; the default of Llama 3."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt of one text."""

    string: str
    """The prompt without the special tokens that the tokenizer puts before it."""
    ids: list[int]
    """Token ids, including special tokens."""
    tail: tuple[int, ...]
    """The last token ids: those that contain characters after the text."""
    num_leading: int
    """Number of tokens before the paragraph of the text: special tokens and the instruction."""
    num_before: int
    """Number of tokens before the text, without one that contains its first character."""
    is_cut: bool
    """Whether the context was too short for the text's first 1,000 characters."""


class PromptEncoder:
    """Writes and tokenizes the prompts of one task.

    Parameters
    ----------
    tokenizer
        A fast tokenizer of transformers.
    task
        Its class names and instruction are part of every prompt.
    limit
        Maximum number of tokens of a prompt with the longest answer.
    frame
        What is around a text; None for the prompt of `zero_shot`.
    chat_template
        `auto`: send the prompt as a user message if the tokenizer has a chat template. `never`: send it as plain text.

    Raises
    ------
    SpecError
        If the instruction and an answer do not fit into the limit.
    DataError
        If the chat template fails or changes the message, or the tokenizer does not report token positions.
    """

    def __init__(
        self,
        tokenizer: Any,
        task: Task,
        limit: int,
        frame: PromptFrame | None = None,
        chat_template: ChatTemplate = "auto",
    ) -> None:
        if not tokenizer.is_fast:
            raise DataError(
                f"{tokenizer.name_or_path}: the tokenizer does not report token positions, which are required to cut "
                "long texts; choose a model with a tokenizer.json"
            )
        self.tokenizer = tokenizer
        self.task = task
        if frame is None:
            frame = frame_prompt(task.class_names, task.instruction)
        self.frame = frame
        self.is_chat = chat_template == "auto" and bool(tokenizer.chat_template)
        self._before, self._after, self._gap = frame.before, frame.behind, " "
        self._special: list[int] = []
        """Special tokens before every prompt; a chat template writes its own."""
        if self.is_chat:
            self._before, self._after, self._gap = _frame_chat(tokenizer, frame.before, frame.behind)
        else:
            self._special = special_prefix(tokenizer)
        self._paragraph_start = len(self._before) - len(f"\n\n{frame.text_mark}")
        self._answers: dict[tuple[int, ...], AnswerTokens] = {}
        self._limit = limit
        (empty,) = self._encode_cut([""])
        longest = max(len(ids) for ids in self._with_all_answers(empty))
        if longest > limit:
            raise SpecError(
                f"task {task.name}: the prompt's instruction with {task.num_classes} class names and the longest "
                f"answer has {longest} tokens, but the context has {limit}; choose a larger context_length, a model "
                "with a longer context, or another task"
            )
        self._limit = limit - (longest - len(empty.ids))

    def encode(self, texts: Sequence[str]) -> list[Prompt]:
        """Return the prompt of each text, cut so that the longest answer fits after it."""
        return self._encode_cut([self.frame.cut(text) for text in texts])

    def answer_tokens(self, prompt: Prompt) -> AnswerTokens:
        """Return the tokens of each class's answer to a prompt.

        Tokenization depends only on nearby characters, so prompts with the same last tokens share their answers.

        Raises
        ------
        DataError
            If a class name adds no token to the prompt.
        """
        if (answers := self._answers.get(prompt.tail)) is None:
            try:
                answers = find_answer_tokens(prompt.ids, self._with_all_answers(prompt))
            except ValueError as error:
                names = ", ".join(map(repr, self.task.class_names))
                raise DataError(
                    f"task {self.task.name}: {error} for one of {names} with this model's tokenizer; give each class a "
                    "name with letters, or choose another model"
                ) from error
            if answers.num_replaced <= len(prompt.tail):
                self._answers[prompt.tail] = answers
        return answers

    def with_answer(self, prompt: Prompt, label: int) -> list[int]:
        """Return the token ids of a prompt followed by the name of a class."""
        answers = self.answer_tokens(prompt)
        return [*prompt.ids[: len(prompt.ids) - answers.num_replaced], *answers.tokens[label]]

    def join(self, prompts: Sequence[Prompt]) -> list[int]:
        """Return the token ids of several texts after one instruction, tokenized as a single string."""
        first, *others = prompts
        string = "".join([first.string, *(prompt.string[self._paragraph_start :] for prompt in others)])
        ((ids, _),) = self._tokenize([string])
        return ids

    def _with_all_answers(self, prompt: Prompt) -> list[list[int]]:
        """Return the token ids of a prompt followed by each class name."""
        strings = [f"{prompt.string}{self._gap}{name}" for name in self.task.class_names]
        return [ids for ids, _ in self._tokenize(strings)]

    def _encode_cut(self, texts: Sequence[str]) -> list[Prompt]:
        tokenized = self._tokenize([self._write(text) for text in texts])
        return [self._fit(text, ids, offsets) for text, (ids, offsets) in zip(texts, tokenized, strict=True)]

    def _fit(self, text: str, ids: list[int], offsets: Offsets) -> Prompt:
        """Return the prompt of a text, with the end of the text cut off until the prompt fits."""
        full_text = text
        while text and len(ids) > self._limit:
            text_end = len(self._before) + len(text)
            starts = [start for start, end in offsets if start >= len(self._before) and end <= text_end]
            excess = len(ids) - self._limit
            kept = starts[-excess] - len(self._before) if excess <= len(starts) else 0
            text = text[: min(kept, len(text) - 1)]
            ((ids, offsets),) = self._tokenize([self._write(text)])
        text_end = len(self._before) + len(text)
        tail = tuple(token for token, (_, end) in zip(ids, offsets, strict=True) if end > text_end)
        num_leading = sum(end <= self._paragraph_start for _, end in offsets)
        num_before = sum(end <= len(self._before) for _, end in offsets)
        return Prompt(self._write(text), ids, tail, num_leading, num_before, is_cut=text != full_text)

    def _write(self, text: str) -> str:
        return f"{self._before}{text}{self._after}"

    def _tokenize(self, strings: Sequence[str]) -> list[tuple[list[int], Offsets]]:
        """Return the token ids of each string, and the start and end of every token in it."""
        if not strings:
            return []
        encoded = self.tokenizer(
            list(strings),
            add_special_tokens=False,
            return_attention_mask=False,
            return_offsets_mapping=True,
            verbose=False,
        )
        empty = [(0, 0)] * len(self._special)
        return [
            ([*self._special, *ids], [*empty, *offsets])
            for ids, offsets in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
        ]


def _frame_chat(tokenizer: Any, before: str, after: str) -> tuple[str, str, str]:
    """Return the chat template's texts before and after a user message, and before the reply's first word."""

    def render(*messages: str, **settings: Any) -> str:
        roles = zip(("user", "assistant"), messages, strict=False)
        chat = [{"role": role, "content": content} for role, content in roles]
        return str(tokenizer.apply_chat_template(chat, tokenize=False, date_string=DATE, **settings))

    question = f"{before}{PLACEHOLDER}{after}"
    try:
        prompt = render(question, add_generation_prompt=True)
        conversation = render(question, f"{PLACEHOLDER}.")
    except (TemplateError, TypeError, ValueError) as error:
        raise _template_error(tokenizer, f"fails: {error}") from error
    if prompt.count(question) != 1 or prompt.count(PLACEHOLDER) != 1:
        raise _template_error(tokenizer, "changes a user's message")
    front, _, back = prompt.partition(PLACEHOLDER)
    # Some templates put a space before a reply that the generation prompt does not contain.
    gap = conversation.removeprefix(prompt).partition(PLACEHOLDER)[0] if conversation.startswith(prompt) else ""
    return front, back, gap


def _template_error(tokenizer: Any, problem: str) -> DataError:
    return DataError(
        f"{tokenizer.name_or_path}: its chat template {problem}; write `chat_template: never` to prompt without it"
    )


Example: TypeAlias = tuple[str, str]
"""A text and the name of its class."""


def choose_examples(train: Labeled, task: Task, max_per_class: int | None, seed: int) -> list[Example]:
    """Choose train texts as examples, in random order, with the classes taking turns.

    The first example of every class precedes the second example of any class.

    Parameters
    ----------
    train
        The train set.
    task
        The task, for its class names.
    max_per_class
        Maximum number of examples of a class; None for all.
    seed
        Seed of the random order.
    """
    generator = np.random.default_rng(seed)
    shuffled = generator.permutation(len(train.labels))
    labels = np.asarray(train.labels)[shuffled]
    turns = np.zeros(len(labels), dtype=np.int64)  # for each text, the number of earlier texts of its class
    for label in range(task.num_classes):
        turns[labels == label] = np.arange((labels == label).sum())
    order = np.argsort(turns, kind="stable")
    chosen = [int(shuffled[position]) for position in order if max_per_class is None or turns[position] < max_per_class]
    return [(str(train.inputs[row]), task.class_names[int(train.labels[row])]) for row in chosen]


@dataclass(frozen=True, slots=True)
class PromptBatch:
    """Prompts with the same number of examples."""

    num_examples: int
    encoder: PromptEncoder
    """The encoder that has these examples in its frame."""
    rows: IntArray
    """Positions of the texts among the inputs; shape `(len(prompts),)`."""
    prompts: list[Prompt]


class ExamplePrompts:
    """Puts texts into prompts, each with as many examples as fit without cutting the text.

    Parameters
    ----------
    make_encoder
        Returns the encoder of prompts with the given examples; raises SpecError if they do not fit into the context.
    examples
        Examples in the order of preference. An example that does not fit into the context by itself is not used.

    Raises
    ------
    SpecError
        If the instruction does not fit into the context even without examples.
    """

    def __init__(
        self, make_encoder: Callable[[Sequence[Example]], PromptEncoder], examples: Sequence[Example] = ()
    ) -> None:
        self._encoder_with: Callable[[int], PromptEncoder] = cache(
            lambda number: make_encoder(examples[:number] if number else ())
        )
        without_examples = self._encoder_with(0)
        self.num_classes = without_examples.task.num_classes
        alone = without_examples.encode([text for text, _ in examples])
        examples = [example for example, prompt in zip(examples, alone, strict=True) if not prompt.is_cut]
        longest = max(
            (text for text, _ in examples), key=lambda text: len(without_examples.encode([text])[0].ids), default=""
        )

        def fits(number: int) -> bool:
            try:
                (prompt,) = self._encoder_with(number).encode([longest])
            except SpecError:
                return False
            return not prompt.is_cut

        self.num_examples = bisect_left(range(1, len(examples) + 1), True, key=lambda number: not fits(number))
        """Number of examples that fit next to the longest example text; longer texts get fewer."""

    def build(self, inputs: Sequence[str]) -> Iterator[PromptBatch]:
        """Yield the prompts of all inputs, grouped by their number of examples, the largest number first.

        Parameters
        ----------
        inputs
            Texts to classify.

        Yields
        ------
        PromptBatch
            Each input is in exactly one batch.
        """
        remaining = np.arange(len(inputs))
        for number in range(self.num_examples, -1, -1):
            encoder = self._encoder_with(number)
            prompts = encoder.encode([inputs[row] for row in remaining.tolist()])
            fits = np.array([not (prompt.is_cut and number) for prompt in prompts], dtype=bool)
            if fits.any():
                fitting = [prompt for prompt, fit in zip(prompts, fits, strict=True) if fit]
                yield PromptBatch(number, encoder, remaining[fits], fitting)
            remaining = remaining[~fits]
            if not len(remaining):
                return
