"""Which tokens an answer is made of, behind a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answers:
    """The class names as a tokenizer writes them behind one prompt."""

    num_replaced: int
    """Tokens at the prompt's end that are written otherwise before some answer, and so are part of the answers."""
    tokens: tuple[tuple[int, ...], ...]
    """Of each class's answer, at least one."""


def find_answers(prompt: Sequence[int], whole: Sequence[Sequence[int]]) -> Answers:
    """Where the answers begin.

    A tokenizer may write a prompt's last tokens otherwise where something follows. What an answer is made of is
    therefore read off the prompt and the answer written together: all that stands behind what every class has in common
    with the bare prompt, so that classes are compared from the same token on.

    Parameters
    ----------
    prompt
        Token ids of the bare prompt.
    whole
        Of the prompt with each class's answer.

    Raises
    ------
    ValueError
        Where an answer adds no token.
    """
    stem = min(_common(prompt, each) for each in whole)
    if any(len(each) <= stem for each in whole):
        raise ValueError("an answer is no token long")
    return Answers(len(prompt) - stem, tuple(tuple(each[stem:]) for each in whole))


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Tokens that both begin with."""
    for place, (token, another) in enumerate(zip(one, other, strict=False)):
        if token != another:
            return place
    return min(len(one), len(other))
