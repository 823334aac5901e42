"""Tests of `bayes.meta`: slices with one subsample per task and model."""

from __future__ import annotations

from typing import Any

import needs_bayes  # noqa: F401
import numpy as np
import pandas as pd
import pytest
from bayes_analyses import analyze, bias_arms, rows, simulate_binomial

from peekbench import Table
from peekbench_bayes.calibrated import fit_differences
from peekbench_bayes.counts import fit_counts
from peekbench_bayes.options import CountPriors, DifferencePriors, Hierarchical
from peekbench_bayes.posterior import summarize
from peekbench_bayes.slices import draw_slices, fit_count_slices, fit_difference_slices, mixture_quantile


def test_slices_keep_one_subsample_of_each_task_and_model() -> None:
    arms = bias_arms(simulate_binomial(0.0, 0.0, tasks=4, subsamples=30))
    slices = list(draw_slices(arms, 200, np.random.default_rng(0)))
    assert {part.control.shape for part in slices} == {(2, 4, 2)}
    assert all((np.isfinite(part.difference).sum(axis=2) == 1).all() for part in slices)
    for model, task in np.ndindex(2, 4):
        pairs = {(part.control[model, task, model], part.treatment[model, task, model]) for part in slices}
        assert pairs <= set(zip(arms.control[model, task], arms.treatment[model, task], strict=True))
        assert len(pairs) > 20
    again = list(draw_slices(arms, 200, np.random.default_rng(0)))
    assert all(np.array_equal(a.control, b.control, equal_nan=True) for a, b in zip(slices, again, strict=True))


@pytest.mark.parametrize(("preset", "slope_sd"), [("paper", 0.0), ("random_slopes", 0.2)])
def test_binomial_fits_of_slices_agree_with_single_fits(preset: Any, slope_sd: float) -> None:
    arms = bias_arms(simulate_binomial(0.1, slope_sd, subsamples=6))
    slices = list(draw_slices(arms, 4, np.random.default_rng(1)))
    effects = fit_count_slices(slices, preset, CountPriors(), 0.89)
    for number, part in enumerate(slices):
        draws = fit_counts(part, Hierarchical(preset=preset)).log_odds
        assert draws is not None
        alone = summarize(draws, 0.89)
        expected = pytest.approx((alone.mean, alone.low, alone.high), abs=0.12 * alone.standard_error)
        assert (effects.mean[number], effects.low[number], effects.high[number]) == expected


@pytest.mark.simulation
def test_calibrated_intervals_of_slices_have_their_nominal_coverage() -> None:
    arms = bias_arms(simulate_binomial(0.1, 0.0, subsamples=200))
    slices = list(draw_slices(arms, 300, np.random.default_rng(1)))
    effects = fit_difference_slices(slices, DifferencePriors(), 60, 0.89, np.random.default_rng(2))
    truth = float(np.nanmean(arms.difference))
    assert np.mean((effects.low < truth) & (truth < effects.high)) == pytest.approx(0.89, abs=0.06)


@pytest.mark.slow
def test_calibrated_fits_of_slices_agree_with_single_fits() -> None:
    arms = bias_arms(simulate_binomial(0.1, 0.2, subsamples=6))
    slices = list(draw_slices(arms, 4, np.random.default_rng(1)))
    effects = fit_difference_slices(slices, DifferencePriors(), 1000, 0.89, np.random.default_rng(2))
    for number, part in enumerate(slices):
        alone = summarize(fit_differences(part, Hierarchical()).average, 0.89)
        assert effects.mean[number] == pytest.approx(np.nanmean(part.difference), abs=1e-12)
        expected = pytest.approx((alone.mean, alone.low, alone.high), abs=0.2 * alone.standard_error)
        assert (effects.mean[number], effects.low[number], effects.high[number]) == expected


def test_meta_counts_the_conclusions_of_slices() -> None:
    for effect, decision in ((0.4, "biased up"), (-0.4, "biased down")):
        overview, conclusions = analyze_meta(
            simulate_binomial(effect, 0.0, tasks=10, subsamples=8), preset="paper", num_slices=20
        )
        assert rows(conclusions)[0][decision] == 1
        assert rows(overview)[0]["beyond 0.04"] == rows(overview)[0]["interval excludes 0"] == 1
    null = simulate_binomial(0.0, 0.0, tasks=10, subsamples=8)
    overview, conclusions = analyze_meta(null, num_slices=40)
    assert rows(overview)[0]["interval excludes 0"] < 0.4
    assert sum(rows(conclusions)[0][name] for name in ("biased up", "biased down", "equivalent", "inconclusive")) == 1
    assert rows(analyze_meta(null, num_slices=20, region=0.2)[1])[0]["equivalent"] == 1


def analyze_meta(results: pd.DataFrame, **options: Any) -> tuple[Table, ...]:
    return analyze(results, "meta", **options).tables


def test_quantiles_of_mixtures_of_normals() -> None:
    rng = np.random.default_rng(0)
    weights, means, sds = np.array([[0.3, 0.7]]), np.array([[-1.0, 2.0]]), np.array([[0.5, 1.5]])
    part = (rng.random(400_000) < 0.7).astype(int)
    draws = means[0, part] + sds[0, part] * rng.standard_normal(len(part))
    for q in (0.055, 0.5, 0.945):
        assert mixture_quantile(weights, means, sds, q) == pytest.approx(np.quantile(draws, q), abs=0.02)
