"""Formatting of counts; the formatting of cells is tested with the reports."""

from __future__ import annotations

import pytest

from peekbench.formatting import pluralize


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
