"""Formatting of counts and durations; the formatting of cells is tested with the reports."""

from __future__ import annotations

import pytest

from peekbench.formatting import format_duration, pluralize


@pytest.mark.parametrize(
    ("number", "words", "text"),
    [
        (1, ("trial",), "1 trial"),
        (0, ("trial",), "0 trials"),
        (1200, ("trial",), "1,200 trials"),
        (1, ("analysis", "analyses"), "1 analysis"),
        (2, ("analysis", "analyses"), "2 analyses"),
    ],
)
def test_counts_have_nouns_in_singular_or_plural(number: int, words: tuple[str, ...], text: str) -> None:
    assert pluralize(number, *words) == text


@pytest.mark.parametrize(("seconds", "words"), [(3.6, "4 s"), (125, "2 min 05 s"), (11400, "3 h 10 min")])
def test_durations(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words
