"""Scores other than accuracy in the analysis `summary`: effects, and the log loss in verdicts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import pandas as pd
import pytest
from analysis_tables import find_table, run_analysis, simulate_brier, table_rows

from peekbench.report import state

Simulate: TypeAlias = Callable[..., pd.DataFrame]

summarize = partial(run_analysis, "summary")
BY_SCORE = "Bias and boost by score"


def test_other_scores_have_the_same_effects() -> None:
    analysis = summarize(simulate_brier(noise=0.5))
    table = find_table(analysis, BY_SCORE)
    names = {column.name for column in table.columns if column.unit != "text"}
    assert names == {"accuracy", "negative Brier score"}  # the data have neither log loss nor F1
    assert "Accuracy is in points. Means" in table.note
    bias, boost = table_rows(table)
    assert (bias["effect"], boost["effect"]) == ("bias", "boost")
    assert boost["accuracy"] == pytest.approx(0.08)
    assert boost["negative Brier score"] == pytest.approx(0.04)
    assert bias["accuracy, low"] < 0.02 < bias["accuracy, high"]
    assert bias["negative Brier score, low"] < 0.01 < bias["negative Brier score, high"]  # a smaller loss is better


@pytest.mark.parametrize(("sign", "word"), [(-1, "However, the log loss worsens by 0.0100"), (1, None)])
def test_a_log_loss_that_disagrees_is_in_the_verdict(sign: int, word: str | None) -> None:
    """The accuracy rises by 2 points; the log loss improves too, or worsens."""
    table = simulate_brier(noise=1)
    table["log_loss"] = 0.9 - sign * 0.01 * (table["arm"] == "test") + 1e-4 * (table["subsample"] % 7)
    (verdict,) = summarize(table).verdicts
    assert verdict.decision == "biased up"
    assert (word is not None) == ("log loss" in state(verdict))
    assert (word or "") in state(verdict)
