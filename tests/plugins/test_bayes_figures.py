"""Tests of the figures of the Bayesian analyses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import needs_bayes  # noqa: F401
import numpy as np
import pandas as pd
import pytest
from bayes_analyses import analyze, rows

from peekbench.records import Densities, Forest

Simulate = Callable[..., Any]


def two_models(simulate: Simulate) -> pd.DataFrame:
    tables: list[pd.DataFrame] = [simulate(0.03, seed=seed).assign(model=f"m{seed}") for seed in range(2)]
    return pd.concat(tables, ignore_index=True)


@pytest.mark.parametrize("preset", ["calibrated", "paper"])
def test_figures_of_posteriors_agree_with_the_tables(simulate: Simulate, preset: str) -> None:
    analysis = analyze(two_models(simulate), "hierarchical", preset=preset, draws=100)
    effects, tasks, *_ = (rows(table) for table in analysis.tables)
    forest, bias, boost = analysis.figures
    assert isinstance(forest, Forest) and isinstance(bias, Densities) and isinstance(boost, Densities)
    for figure, effect in ((bias, "bias"), (boost, "boost")):
        assert [heading for heading, _ in figure.groups] == ["all models", "m0", "m1"]
        for (heading, (sample,)), model in zip(figure.groups, ("all", "m0", "m1"), strict=True):
            (row,) = (row for row in effects if row["effect"] == effect and row["model"] == model)
            assert np.mean(sample.values) == pytest.approx(row["mean"], abs=2e-4), heading
            assert np.quantile(sample.values, 0.055) == pytest.approx(row["mean, low"], abs=1e-3)
    assert (bias.axis.region, boost.axis.region, forest.region) == (0.005, 0.0, 0.005)
    ((_, (*intervals, average)),) = forest.groups
    bias_rows = [row for row in tasks if row["effect"] == "bias"]
    assert [(interval.label, interval.raw, interval.estimate) for interval in intervals] == [
        (row["task"], row["observed"], row["shrunk"]) for row in bias_rows
    ]
    assert average.is_average and average.raw is None


@pytest.mark.parametrize("preset", ["calibrated", "paper"])
def test_figure_of_slices_agrees_with_the_table(simulate: Simulate, preset: str) -> None:
    analysis = analyze(two_models(simulate), "meta", preset=preset, num_slices=40, draws=100)
    (figure,) = analysis.figures
    assert isinstance(figure, Densities)
    ((_, (sample,)),) = figure.groups
    (row,) = rows(analysis.tables[0])
    limit = 0.005 if preset == "calibrated" else 0.04
    assert figure.axis.region == limit
    assert ("points" if preset == "calibrated" else "log-odds") in figure.axis.label
    assert len(sample.values) == 40
    share = np.mean(np.abs(sample.values) > limit)
    assert f"{share:.0%} outside" in sample.label
    assert np.mean(sample.values) == pytest.approx(row["mean"], abs=1e-6)


def test_figure_of_recovery_marks_the_truth(simulate: Simulate) -> None:
    analysis = analyze(simulate(0.0), "recovery", biases=(0.0, 0.02), num_data_sets=60, draws=100)
    (estimates,) = analysis.figures
    assert isinstance(estimates, Densities)
    ((_, samples),) = estimates.groups
    assert [sample.label for sample in samples] == ["true bias 0 points", "true bias 2 points"]
    for sample, row in zip(samples, rows(analysis.tables[0]), strict=True):
        assert sample.mark == row["true bias"]
        assert np.mean(sample.values) == pytest.approx(row["mean estimate"], abs=1e-5)
