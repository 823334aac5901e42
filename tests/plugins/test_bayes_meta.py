"""`bayes.meta`: slices of one subsample for each task and model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from asked_bayes import bias_of, binomial, rows

from peekbench.records.analysis import Table
from peekbench.spec.components import AnalysisSpec, make_component
from peekbench_bayes import Hierarchical
from peekbench_bayes.calibrated import fit_differences
from peekbench_bayes.counts import fit_counts
from peekbench_bayes.model import CountPriors, DifferencePriors
from peekbench_bayes.slices import fit_count_slices, fit_difference_slices, mixture_quantile, take_slices
from peekbench_bayes.verdict import summarize


def test_slices_keep_one_subsample_of_each_task_and_model() -> None:
    arms = bias_of(binomial(0.0, 0.0, tasks=4, subsamples=30))
    slices = list(take_slices(arms, 200, np.random.default_rng(0)))
    assert {one.control.shape for one in slices} == {(2, 4, 2)}
    assert all((np.isfinite(one.difference).sum(axis=2) == 1).all() for one in slices)
    for model, task in np.ndindex(2, 4):
        pairs = {(one.control[model, task, model], one.treatment[model, task, model]) for one in slices}
        assert pairs <= set(zip(arms.control[model, task], arms.treatment[model, task], strict=True))
        assert len(pairs) > 20
    again = list(take_slices(arms, 200, np.random.default_rng(0)))
    assert all(np.array_equal(a.control, b.control, equal_nan=True) for a, b in zip(slices, again, strict=True))


@pytest.mark.parametrize(("preset", "slope_sd"), [("printed", 0.0), ("random_slopes", 0.2)])
def test_slices_are_fitted_as_each_alone_would_be(preset: Any, slope_sd: float) -> None:
    arms = bias_of(binomial(0.1, slope_sd, subsamples=6))
    slices = list(take_slices(arms, 4, np.random.default_rng(1)))
    found = fit_count_slices(slices, preset, CountPriors(), 0.89)
    for number, one in enumerate(slices):
        draws = fit_counts(one, Hierarchical(preset=preset)).log_odds
        assert draws is not None
        alone = summarize(draws, 0.89)
        expected = pytest.approx((alone.mean, alone.low, alone.high), abs=0.12 * alone.sd)
        assert (found.mean[number], found.low[number], found.high[number]) == expected


def test_calibrated_slices_hold_the_true_effect_as_often_as_they_say() -> None:
    arms = bias_of(binomial(0.1, 0.0, subsamples=200))
    slices = list(take_slices(arms, 300, np.random.default_rng(1)))
    found = fit_difference_slices(slices, DifferencePriors(), 60, 0.89, np.random.default_rng(2))
    truth = float(np.nanmean(arms.difference))
    assert np.mean((found.low < truth) & (truth < found.high)) == pytest.approx(0.89, abs=0.06)


def test_calibrated_slices_are_fitted_as_each_alone_would_be() -> None:
    arms = bias_of(binomial(0.1, 0.2, subsamples=6))
    slices = list(take_slices(arms, 4, np.random.default_rng(1)))
    found = fit_difference_slices(slices, DifferencePriors(), 2000, 0.89, np.random.default_rng(2))
    for number, one in enumerate(slices):
        alone = summarize(fit_differences(one, Hierarchical(draws=1000)).average, 0.89)
        assert found.mean[number] == pytest.approx(np.nanmean(one.difference), abs=1e-12)
        expected = pytest.approx((alone.mean, alone.low, alone.high), abs=0.1 * alone.sd)
        assert (found.mean[number], found.low[number], found.high[number]) == expected


def test_meta_counts_what_slices_conclude() -> None:
    for effect, decision in ((0.4, "biased up"), (-0.4, "biased down")):
        overview, conclusions = ask_meta(binomial(effect, 0.0, tasks=10, subsamples=8), preset="printed", num_slices=20)
        assert rows(conclusions)[0][decision] == 1
        assert rows(overview)[0]["beyond 0.04"] == rows(overview)[0]["interval excludes 0"] == 1
    null = binomial(0.0, 0.0, tasks=10, subsamples=8)
    overview, conclusions = ask_meta(null, num_slices=40)
    assert rows(overview)[0]["interval excludes 0"] < 0.4
    assert sum(rows(conclusions)[0][name] for name in ("biased up", "biased down", "equivalent", "inconclusive")) == 1
    assert rows(ask_meta(null, num_slices=20, region=0.5)[1])[0]["equivalent"] == 1


def ask_meta(results: pd.DataFrame, **options: Any) -> tuple[Table, ...]:
    spec = make_component(AnalysisSpec, "bayes.meta", options)
    return spec.entry.analyze(results, options=spec.options).tables


def test_quantiles_of_mixtures_of_normals() -> None:
    rng = np.random.default_rng(0)
    chances, means, sds = np.array([[0.3, 0.7]]), np.array([[-1.0, 2.0]]), np.array([[0.5, 1.5]])
    part = (rng.random(400_000) < 0.7).astype(int)
    draws = means[0, part] + sds[0, part] * rng.standard_normal(len(part))
    for q in (0.055, 0.5, 0.945):
        assert mixture_quantile(chances, means, sds, q) == pytest.approx(np.quantile(draws, q), abs=0.02)
