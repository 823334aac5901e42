"""Figures of the analysis `summary`: forests, violins, and curves by dose, test size and number of subsamples."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pytest
from analysis_tables import find_rows, run_analysis

from peekbench import Analysis
from peekbench.records import Curves, Figure, Forest
from peekbench.results import paired_scores, tidy

Simulate: TypeAlias = Callable[..., Any]

summarize = partial(run_analysis, "summary")


def forest_of(analysis: Analysis) -> Forest:
    (forest,) = (figure for figure in analysis.figures if isinstance(figure, Forest))
    return forest


def test_forest_holds_every_task_and_the_average(simulate: Simulate) -> None:
    ((heading, intervals),) = forest_of(summarize(simulate(0.03))).groups
    assert heading == "method"
    assert [interval.label for interval in intervals] == [f"task{n}" for n in range(5)] + ["average of these tasks"]
    wide = paired_scores(simulate(0.03))
    assert intervals[0].estimate == pytest.approx(wide.loc[wide["task"] == "task0", "bias"].mean())
    assert all(interval.low <= interval.estimate <= interval.high for interval in intervals)


def find_figures(analysis: Analysis, title: str) -> list[Figure]:
    """Return the figures whose title begins with a text."""
    return [figure for figure in analysis.figures if figure.title.startswith(title)]


def test_progress_ends_with_the_overall_estimate(simulate: Simulate) -> None:
    analysis = summarize(simulate(0.03))
    (progress,) = find_figures(analysis, "Average bias by number of subsamples")
    assert isinstance(progress, Curves)
    ((_, (curve,)),) = progress.panels
    (row,) = (row for row in find_rows(analysis, "Boost and bias over these tasks") if row["effect"] == "bias")
    assert (curve.x[0], curve.x[-1]) == (5, 40)
    names = ("mean", "mean, low", "mean, high")
    assert (curve.y[-1], curve.low[-1], curve.high[-1]) == tuple(row[name] for name in names)
    assert curve.high[0] - curve.low[0] > 1.5 * (curve.high[-1] - curve.low[-1])


def simulate_doses() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = []
    for task in ("a", "b"):
        for _ in range(30):
            extra = rng.normal(0.6, 0.02)
            row = {"task": task, "extra": extra, "test": extra + 0.04}
            rows.append({**row, "mix-0.25": extra + 0.01, "mix-0.5": extra + rng.normal(0.02, 0.01)})
    return tidy(pd.DataFrame(rows), "doses")


def test_dose_response_goes_from_no_test_texts_to_all() -> None:
    (figure,) = find_figures(summarize(simulate_doses()), "Dose response")
    assert isinstance(figure, Curves)
    ((_, (curve,)),) = figure.panels
    assert curve.x == (0.0, 0.25, 0.5, 1.0)
    assert curve.y == pytest.approx((0.0, 0.01, 0.02, 0.04), abs=0.004)
    assert curve.low[2] < curve.y[2] < curve.high[2]


def test_each_model_is_a_line_over_sizes(simulate: Simulate) -> None:
    parts = [
        simulate(0.02 * number, num_test=size, seed=size).assign(model=model)
        for number, model in enumerate(("bert", "gpt2"))
        for size in (50, 200)
    ]
    analysis = summarize(pd.concat(parts, ignore_index=True))
    (figure,) = find_figures(analysis, "Bias by number of test texts")
    assert isinstance(figure, Curves)
    ((_, lines),) = figure.panels
    assert [line.label for line in lines] == ["bert", "gpt2"]
    assert all(line.x == (50, 200) for line in lines)
    expected = analysis.verdicts[2].estimate
    assert (lines[1].y[0], lines[1].low[0]) == (expected.mean, expected.low)


@pytest.mark.parametrize("bias", [0.0, 0.03])
def test_all_tables_and_figures_show_the_interval_of_the_verdict(simulate: Simulate, bias: float) -> None:
    analysis = summarize(simulate(bias, tasks=1))
    expected = analysis.verdicts[0].estimate
    limits = (expected.mean, *expected.limits)
    for title in ("Leaderboard", "Boost and bias over these tasks", "Scores, boost and bias by task"):
        rows = [row for row in find_rows(analysis, title) if row.get("effect", "bias") == "bias"]
        assert [(row.get("bias", row.get("mean")), *limits_of(row)) for row in rows] == [limits]
    (forest,), (progress,) = (find_figures(analysis, title) for title in ("Bias by task", "Average bias by number"))
    assert isinstance(forest, Forest) and isinstance(progress, Curves)
    (interval,), ((_, (curve,)),) = forest.groups[0][1], progress.panels
    assert (interval.estimate, interval.low, interval.high) == limits
    assert (curve.y[-1], curve.low[-1], curve.high[-1]) == limits


def limits_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return the ends of the interval of the bias."""
    name = "bias" if "bias, low" in row else "mean"
    return row[f"{name}, low"], row[f"{name}, high"]


def test_the_region_is_shaded_if_all_configurations_share_it(simulate: Simulate) -> None:
    tables: list[pd.DataFrame] = [simulate(0.0), simulate(0.0, method="other").assign(score=0.9)]
    results = pd.concat(tables, ignore_index=True)
    for options, expected in (({}, {0.005}), ({"region": 0.02}, {0.02})):
        figures = find_figures(summarize(results, **options), "Bias by task")
        assert {figure.axis.region for figure in figures if isinstance(figure, Forest)} == expected
    (figure,) = find_figures(summarize(results, region_unit="log_odds"), "Bias by task")
    assert isinstance(figure, Forest) and figure.axis.region == 0
