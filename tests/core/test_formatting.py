"""Numbers as a reader expects them; those of reports are in test_report.py."""

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
def test_one_is_singular(number: int, words: tuple[str, ...], text: str) -> None:
    assert pluralize(number, *words) == text
