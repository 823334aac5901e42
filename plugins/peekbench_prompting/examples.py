"""Train texts with their classes as examples in prompts, as many as fit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np

from peekbench import Labeled, Task
from peekbench.errors import SpecError
from peekbench.records import IntArray
from peekbench_prompting.prompts import Prompt, PromptEncoder

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
