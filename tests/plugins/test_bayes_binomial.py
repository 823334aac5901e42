"""Tests of the binomial models of `bayes.hierarchical`, and of their engines."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import needs_bayes  # noqa: F401
import numpy as np
import pandas as pd
import pytest
from bayes_analyses import analyze, bias_arms, rows, simulate_binomial

from peekbench.report import state
from peekbench.results import load_results, tidy
from peekbench_bayes.arrays import split_results
from peekbench_bayes.counts import fit_counts, make_count_rows
from peekbench_bayes.laplace import approximate, find_mode, grid_weights, log_joint
from peekbench_bayes.options import CountPriors, Hierarchical
from peekbench_bayes.posterior import summarize

if TYPE_CHECKING:
    Simulate = Callable[..., pd.DataFrame]

HAS_BAMBI = importlib.util.find_spec("bambi") is not None and importlib.util.find_spec("nutpie") is not None
needs_bambi = pytest.mark.skipif(not HAS_BAMBI, reason="peekbench[bambi] is not installed")


@pytest.mark.parametrize(("preset", "slope_sd"), [("paper", 0.0), ("random_slopes", 0.1)])
def test_binomial_models_recover_simulated_effects(preset: Any, slope_sd: float) -> None:
    results = simulate_binomial(0.15, slope_sd)
    fit = fit_counts(bias_arms(results), Hierarchical(preset=preset, draws=250))
    assert fit.log_odds is not None
    effect = summarize(fit.log_odds, 0.99)
    assert effect.low < 0.15 < effect.high
    assert effect.standard_error == pytest.approx(np.sqrt(2 / 20) * slope_sd if slope_sd else 0.0048, rel=0.4)
    sds = {name: float(draws.mean()) for name, draws in fit.spreads.items()}
    assert sds["subsamples, log-odds"] == pytest.approx(0.2, abs=0.03)
    assert sds["tasks, log-odds"] == pytest.approx(0.9, abs=0.35)
    if slope_sd:
        assert sds["arms within a task, log-odds"] == pytest.approx(slope_sd, rel=0.4)
    assert fit.failed == ()
    wide = results.pivot(index=["model", "task", "subsample"], columns="arm", values="score")
    assert fit.average.mean() == pytest.approx((wide["test"] - wide["extra"]).mean(), abs=0.001)


def test_log_density_of_the_sds_agrees_with_direct_integration() -> None:
    """One task, one subsample, one model: four effects and a pair of counts, integrated numerically."""
    table = tidy(pd.DataFrame({"task": ["a"], "extra": [0.4], "test": [0.6], "num_test": [200]}), "tiny")
    count_rows = make_count_rows(bias_arms(table), "paper", CountPriors())
    log_sd = np.log(np.array([[0.5, 0.5], [1.0, 0.2]]))
    mode = find_mode(count_rows, log_sd)
    # The likelihood depends only on the sum of intercept, task and subsample effect.
    steps = np.linspace(-4, 4, 401)
    direct = []
    for point in log_sd:
        sd = np.sqrt(1 + np.exp(2 * point).sum())
        total, effect = np.meshgrid(steps * sd, steps, indexing="ij")
        at = np.zeros((total.size, 1))
        top = np.stack([at[:, 0], effect.ravel()], axis=1)
        fit = log_joint(count_rows, np.zeros((total.size, 2)), top * [0, 1], at[:, None], total.reshape(-1, 1, 1))
        fit = fit + 0.5 * total.ravel() ** 2 - 0.5 * (total.ravel() / sd) ** 2 - np.log(sd)
        direct.append(np.log(np.exp(fit - fit.max()).sum()) + fit.max() + np.log(sd))
    prior = (log_sd - 0.5 * np.exp(2 * log_sd)).sum(axis=1)
    actual, expected = mode.log_density - prior, np.array(direct)
    assert actual[0] - actual[1] == pytest.approx(expected[0] - expected[1], abs=0.02)


PUBLISHED = {
    # Mean, low and high of the log-odds, for counts truncated as in the published code.
    (200, "paper"): (0.0077, 0.0005, 0.015),
    (500, "paper"): (-0.0094, -0.017, -0.002),
    (500, "random_slopes"): (-0.0081, -0.026, 0.010),
}


@pytest.mark.slow
@pytest.mark.parametrize(("num_test", "preset"), [(500, "paper"), (500, "random_slopes"), (200, "paper")])
def test_published_accuracies_reproduce_the_published_effect(published: Path, num_test: int, preset: Any) -> None:
    arms = next(
        arms
        for arms in split_results(load_results(published / "few_shot", independent_tasks=True), ("bias",))[1]
        if arms.num_scored == num_test
    )
    truncated = replace(
        arms,
        control=np.trunc(arms.control * num_test) / num_test,
        treatment=np.trunc(arms.treatment * num_test) / num_test,
    )
    fit = fit_counts(truncated, Hierarchical(preset=preset))
    assert fit.log_odds is not None
    summary, expected = summarize(fit.log_odds, 0.89), PUBLISHED[num_test, preset]
    assert (summary.mean, summary.low, summary.high) == pytest.approx(expected, abs=0.0009)


def test_misspecified_binomial_models_give_no_verdict(simulate: Simulate) -> None:
    """With unstable training, the arms of a subsample differ far more than binomial counts of 200 do."""
    results = simulate(0.0, noise=0.08)
    analysis = analyze(results, preset="paper", effects=["bias"], draws=100)
    (verdict,) = analysis.verdicts
    assert verdict.decision == "inconclusive"
    assert "dispersion of differences" in state(verdict)
    assert "use the preset calibrated" in state(verdict)
    assert any("dispersion" in warning for warning in analysis.warnings)
    assert {row["passed"] for row in rows(analysis.tables[3])} == {True, False}
    assert analyze(results, effects=["bias"]).warnings == ()


def test_grid_covers_the_posterior_of_the_sds() -> None:
    mode, _ = approximate(make_count_rows(bias_arms(simulate_binomial(0.0, 0.1)), "random_slopes", CountPriors()))
    assert mode.converged
    weights = grid_weights(mode)
    assert weights.max() < 0.5
    outermost = np.abs(mode.log_sd - np.median(mode.log_sd, axis=0)).argmax(axis=0)
    assert weights[outermost].max() < 0.02


@needs_bambi
@pytest.mark.simulation
@pytest.mark.parametrize(("preset", "sampler"), [("paper", "nutpie"), ("random_slopes", "nutpie"), ("paper", "bambi")])
def test_reference_agrees_with_the_fast_engine(preset: Any, sampler: Any) -> None:
    from peekbench_bayes.mcmc import fit_with_bambi

    arms = bias_arms(simulate_binomial(0.1, 0.1 if preset == "random_slopes" else 0.0, tasks=8, subsamples=8))
    options = Hierarchical(preset=preset, sampler=sampler, draws=250)
    fast, reference = (summarize(fit(arms, options).average, 0.89) for fit in (fit_counts, fit_with_bambi))
    assert (fast.mean, fast.low, fast.high) == pytest.approx(
        (reference.mean, reference.low, reference.high), abs=0.2 * fast.standard_error
    )
