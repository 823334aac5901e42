"""The tokens of each class's answer after a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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
