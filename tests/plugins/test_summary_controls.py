"""Controls in the analysis `summary`: outcomes, warnings, tables and figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np
import pandas as pd
import pytest
from analysis_tables import find_rows, judge, run_analysis, table_rows

from peekbench.records import Control, Forest
from peekbench.records.verdicts import ControlOutcome
from peekbench.report import state
from peekbench.report.render.sentences import OUTCOMES, warn_of_controls
from peekbench_summary.biased_rule import control_outcome

Simulate: TypeAlias = Callable[..., pd.DataFrame]

summarize = partial(run_analysis, "summary")
AVERAGES, BY_TASK = "Boost and bias over these tasks", "Scores, boost and bias by task"


def with_controls(simulate: Simulate, null: float, planted: float) -> pd.DataFrame:
    """Simulate a method without bias, a negative control and a positive control with the given biases."""
    biases = {"mine": 0.0, "null": null, "leak": planted}
    controls = {"mine": "", "null": "negative", "leak": "positive"}
    parts = [
        simulate(bias, method=name, subsamples=60, seed=seed, num_test=1000).assign(control=controls[name])
        for seed, (name, bias) in enumerate(biases.items())
    ]
    return pd.concat(parts, ignore_index=True)


def test_controls_are_reported_separately(simulate: Simulate) -> None:
    """Controls have their own verdicts and figures and are in no ranking."""
    table = with_controls(simulate, 0.0, 0.1)
    extra = table.query("method == 'leak' and arm == 'extra'")
    analysis = summarize(pd.concat([table.query("method != 'leak' or arm != 'base'"), extra.assign(arm="base")]))
    exact = [row for row in find_rows(analysis, BY_TASK) if row["method"] == "leak"]
    assert {(row["boost"], row["boost, low"]) for row in exact} == {(0.0, None)}, "a boost of exactly 0"
    assert [(verdict.method, verdict.control) for verdict in analysis.verdicts] == [
        ("mine", ""), ("null", "negative"), ("leak", "positive"),
    ]  # fmt: skip
    assert [verdict.decision for verdict in analysis.verdicts[1:]] == ["passed", "passed"]
    assert "As expected: a positive control has a planted bias." in state(analysis.verdicts[2])
    assert not [*warn_of_controls(analysis.verdicts)]
    assert [row["method"] for row in table_rows(analysis.tables[0])] == ["mine"]
    assert {row["method"] for row in find_rows(analysis, AVERAGES)} == {"mine"}
    assert {row["method"] for row in find_rows(analysis, BY_TASK)} == {"mine", "null", "leak"}
    outcomes = find_rows(analysis, "Controls")
    assert [(row["method"], row["control"], row["outcome"]) for row in outcomes] == [
        ("null", "negative", "passed"), ("leak", "positive", "passed"),
    ]  # fmt: skip
    mine, known = (figure for figure in analysis.figures if isinstance(figure, Forest))
    assert ([heading for heading, _ in mine.groups], [heading for heading, _ in known.groups]) == (
        ["mine"], ["null", "leak"],
    )  # fmt: skip


def test_unexpected_outcomes_of_controls_are_warnings(simulate: Simulate) -> None:
    analysis = summarize(with_controls(simulate, 0.05, -0.05))
    null, leak = warn_of_controls(analysis.verdicts)
    assert "The negative control null has a bias, by chance or because test texts leak to it" in null
    assert "The positive control leak has a bias of the wrong sign" in leak
    assert "This should be impossible: a negative control cannot have a bias." in state(analysis.verdicts[1])
    (missed,) = warn_of_controls(summarize(with_controls(simulate, 0.0, 0.0)).verdicts)
    assert "This run does not detect the bias that is planted in leak" in missed


@pytest.mark.parametrize(
    ("control", "bias", "noise", "outcome"),
    [
        ("negative", 0.002, 0.001, "failed"),  # negligible, but impossible
        ("positive", 0.002, 0.001, "passed"),  # the planted bias is small
        ("negative", 0.0, 0.001, "passed"),
        ("negative", 0.03, 0.3, "undecided"),  # a bias that is not negligible could be missed
        ("positive", 0.03, 0.3, "undecided"),
        ("positive", -0.03, 0.01, "failed"),
    ],
)
def test_a_control_passes_if_its_interval_shows_the_known_bias(
    control: Control, bias: float, noise: float, outcome: ControlOutcome
) -> None:
    rng = np.random.default_rng(2)
    tasks = [(bias + noise * rng.normal(size=20)).tolist() for _ in range(3)]
    verdict = replace(judge(tasks), control=control)
    assert control_outcome(verdict) == outcome
    assert state(replace(verdict, decision=outcome)).endswith(OUTCOMES[control, outcome])


def test_a_negative_control_without_any_difference_has_no_interval_by_task(simulate: Simulate) -> None:
    null = simulate(0.0, noise=0.0, method="null").assign(control="negative")
    analysis = summarize(pd.concat([simulate(0.0, noise=0.0, method="mine"), null], ignore_index=True))
    rows = [row for row in find_rows(analysis, BY_TASK) if row["task"] == "task0"]
    limits = {row["method"]: (row["bias, low"], row["bias, high"]) for row in rows}
    assert limits["null"] == (None, None)
    assert limits["mine"][0] < 0 < limits["mine"][1]
