"""Formatting of counts; the formatting of cells is tested with the reports."""

from __future__ import annotations

import pytest

from peekbench.formatting import ScoreWords, pluralize
from peekbench.records import Decision


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


@pytest.mark.parametrize(
    ("decision", "limits", "text"),
    [
        (
            "equivalent",
            (0.001, 0.004),
            "by less than 0.5 points here, although the bias is not zero: +0.20 points (95%",
        ),
        ("equivalent", (-0.001, 0.004), "by less than 0.5 points here: +0.20 points (95% interval -0.10 to +0.40)"),
        ("inconclusive", (-0.01, 0.02), "a bias of +0.20 points here (95% interval -1.00 to +2.00): too uncertain"),
        ("biased up", (0.001, 0.01), "raised accuracy by 0.20 points here (95% interval +0.10 to +1.00)"),
        ("biased down", (-0.01, -0.001), "lowered accuracy by"),
    ],
)
def test_verdicts_of_all_analyses_use_the_same_words(
    decision: Decision, limits: tuple[float, float], text: str
) -> None:
    words = ScoreWords(is_accuracy=True)
    assert text in words.state_bias(decision, 0.002, limits, interval="95% interval", region="0.5 points", scope="here")
