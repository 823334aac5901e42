from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from peekbench import Analysis
from peekbench.figures import Curves, Densities, Forest
from peekbench.records.analysis import Table
from peekbench.spec.components import AnalysisSpec, make_component

Simulate = Callable[..., Any]


def ask(name: str, results: pd.DataFrame, **options: Any) -> Analysis:
    spec = make_component(AnalysisSpec, name, options)
    return spec.entry.analyze(results, options=spec.options)


def rows(table: Table) -> list[dict[str, Any]]:
    return [dict(zip([column.name for column in table.columns], row, strict=True)) for row in table.rows]


def two_models(simulate: Simulate) -> pd.DataFrame:
    tables: list[pd.DataFrame] = [simulate(0.03, seed=seed).assign(model=f"m{seed}") for seed in range(2)]
    return pd.concat(tables, ignore_index=True)


@pytest.mark.parametrize("preset", ["calibrated", "printed"])
def test_posteriors_and_shrunk_tasks_are_those_of_the_tables(simulate: Simulate, preset: str) -> None:
    analysis = ask("bayes.hierarchical", two_models(simulate), preset=preset, draws=100, save_posterior=False)
    effects, tasks, *_ = (rows(table) for table in analysis.tables)
    forest, bias, boost = analysis.figures
    assert isinstance(forest, Forest) and isinstance(bias, Densities) and isinstance(boost, Densities)
    for figure, effect in ((bias, "bias"), (boost, "boost")):
        assert [heading for heading, _ in figure.groups] == ["all models", "m0", "m1"]
        for (heading, (one,)), model in zip(figure.groups, ("all", "m0", "m1"), strict=True):
            (row,) = (row for row in effects if row["effect"] == effect and row["model"] == model)
            assert np.mean(one.values) == pytest.approx(row["mean"], abs=2e-4), heading
            assert np.quantile(one.values, 0.055) == pytest.approx(row["mean, low"], abs=1e-3)
    assert (bias.axis.region, boost.axis.region, forest.region) == (0.005, 0.0, 0.005)
    ((_, (*single, average)),) = forest.groups
    of_bias = [row for row in tasks if row["effect"] == "bias"]
    assert [(one.label, one.raw, one.estimate) for one in single] == [
        (row["task"], row["observed"], row["shrunk"]) for row in of_bias
    ]
    assert average.is_average and average.raw is None


@pytest.mark.parametrize("preset", ["calibrated", "printed"])
def test_conclusions_of_slices_have_the_share_that_the_table_has(simulate: Simulate, preset: str) -> None:
    analysis = ask("bayes.meta", two_models(simulate), preset=preset, num_slices=40, draws=100)
    (figure,) = analysis.figures
    assert isinstance(figure, Densities)
    ((_, (one,)),) = figure.groups
    (row,) = rows(analysis.tables[0])
    limit = 0.005 if preset == "calibrated" else 0.04
    assert figure.axis.region == limit
    assert ("points" if preset == "calibrated" else "log-odds") in figure.axis.label
    assert len(one.values) == 40
    share = np.mean(np.abs(one.values) > limit)
    assert f"{share:.0%} outside" in one.label
    assert np.mean(one.values) == pytest.approx(row["mean"], abs=1e-6)


def test_priors_are_drawn_with_what_was_observed(simulate: Simulate) -> None:
    analysis = ask("bayes.prior_check", simulate(0.03), num_draws=100)
    means, spreads = analysis.figures
    assert isinstance(means, Densities) and isinstance(spreads, Densities)
    ((_, (one,)),) = means.groups
    (row,) = rows(analysis.tables[0])
    assert one.mark == row["observed"]
    assert np.median(one.values) == pytest.approx(row["50%"], abs=1e-4)
    assert [(heading, sample.mark) for heading, (sample,) in spreads.groups] == [
        (row["quantity"], row["observed"]) for row in rows(analysis.tables[1])
    ]
    assert means.mark == spreads.mark == "observed"


def test_recovered_biases_stand_beside_the_truth_and_coverage_near_the_diagonal(simulate: Simulate) -> None:
    analysis = ask("bayes.recovery", simulate(0.0), biases=(0.0, 0.02), num_data_sets=60, draws=100)
    estimates, calibration = analysis.figures
    assert isinstance(estimates, Densities) and isinstance(calibration, Curves)
    table = rows(analysis.tables[0])
    ((_, samples),) = estimates.groups
    assert [sample.label for sample in samples] == ["true bias 0 points", "true bias 2 points"]
    for sample, row in zip(samples, table, strict=True):
        assert sample.mark == row["true bias"]
        assert np.mean(sample.values) == pytest.approx(row["mean estimate"], abs=1e-5)
    ((_, curves),) = calibration.panels
    for curve in curves:
        assert max(abs(x - y) for x, y in zip(curve.x, curve.y, strict=True)) < 0.25
        assert list(curve.y) == sorted(curve.y)
    assert calibration.is_diagonal_drawn
    assert "Of 60 data sets each" in calibration.note
    assert "13 points at 50% and 8 points at 90%" in calibration.note  # 1.96 standard errors of a share
