"""Train texts with their classes as examples in prompts, as many as fit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np

from peekbench import Labeled, Task
from peekbench.errors import SpecError
from peekbench.records import IntArray
from peekbench_prompting.prompts import Prompt, Prompts

Example: TypeAlias = tuple[str, str]
"""A text and the name of its class."""


def choose_examples(train: Labeled, task: Task, num_each: int | None, seed: int) -> list[Example]:
    """Train texts in an order drawn by the seed, the first of each class before the second of any.

    Parameters
    ----------
    num_each
        Most examples of a class; None for all.
    """
    generator = np.random.default_rng(seed)
    shuffled = generator.permutation(len(train.labels))
    labels = np.asarray(train.labels)[shuffled]
    turns = np.zeros(len(labels), dtype=np.int64)  # how many of its class stand before a text
    for label in range(task.num_classes):
        turns[labels == label] = np.arange((labels == label).sum())
    order = np.argsort(turns, kind="stable")
    chosen = [int(shuffled[place]) for place in order if num_each is None or turns[place] < num_each]
    return [(str(train.inputs[row]), task.class_names[int(train.labels[row])]) for row in chosen]


class Questions:
    """Puts texts into prompts, each with as many of the examples as leave it uncut."""

    def __init__(self, make: Callable[[Sequence[Example]], Prompts], examples: Sequence[Example] = ()) -> None:
        """Find out how many examples fit beside the longest text among them.

        Parameters
        ----------
        make
            Prompts with these examples; raises SpecError where they do not fit into the context.

        Raises
        ------
        SpecError
            Where the instruction does not fit without any.
        """
        self._with: Callable[[int], Prompts] = cache(lambda number: make(examples[:number] if number else ()))
        self.num_classes = self._with(0).task.num_classes
        # One that does not fit by itself is no example; the others still are.
        alone = self._with(0).prompts([text for text, _ in examples])
        examples = [example for example, prompt in zip(examples, alone, strict=True) if not prompt.is_cut]
        longest = max((text for text, _ in examples), key=lambda text: len(self._with(0).encode([text])[0]), default="")

        def fits(number: int) -> bool:
            try:
                (prompt,) = self._with(number).prompts([longest])
            except SpecError:
                return False
            return not prompt.is_cut

        self.num_examples = bisect_left(range(1, len(examples) + 1), True, key=lambda number: not fits(number))
        """That a prompt has; fewer where a text is longer than all examples."""

    def put(self, inputs: Sequence[str]) -> Iterator[tuple[int, Prompts, IntArray, list[Prompt]]]:
        """Prompts of one number of examples at a time.

        Yields
        ------
        number, prompts, rows, asked
            How many examples, the task's prompts with these, and which of the inputs, with their prompts.
        """
        left = np.arange(len(inputs))
        for number in range(self.num_examples, -1, -1):
            prompts = self._with(number)
            asked = prompts.prompts([inputs[row] for row in left.tolist()])
            fits = np.array([not (prompt.is_cut and number) for prompt in asked], dtype=bool)
            if fits.any():
                yield number, prompts, left[fits], [prompt for prompt, fit in zip(asked, fits, strict=True) if fit]
            left = left[~fits]
            if not len(left):
                return
