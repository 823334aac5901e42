"""Tests of `bayes.prior_check` and `bayes.recovery`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import needs_bayes  # noqa: F401
import numpy as np
import pandas as pd
import pytest
from bayes_analyses import analyze, bias_arms, rows
from scipy.stats import norm

from peekbench.errors import DataError
from peekbench_bayes.model_checks import (
    QUANTILES,
    Components,
    estimate_components,
    simulate_differences,
    simulate_known,
)
from peekbench_bayes.options import DifferencePriors

if TYPE_CHECKING:
    Simulate = Callable[..., pd.DataFrame]

NAMES = [f"{100 * quantile:g}%" for quantile in QUANTILES]
TINY = {"task_sd": 1e-6, "cell_sd": 1e-6, "residual_sd": 1e-6, "own_sd": 1e-6}


def with_models(simulate: Simulate, bias: float, **options: Any) -> pd.DataFrame:
    """Simulate the same scores for two language models."""
    results = simulate(bias, **options)
    return pd.concat([results.assign(model=name) for name in ("bert", "gpt2")], ignore_index=True)


def test_mean_effects_of_the_priors_agree_with_the_formula(simulate: Simulate) -> None:
    results = with_models(simulate, 0.01)
    analysis = analyze(results, "prior_check", num_draws=20_000, difference_priors={**TINY, "model_sd": 0.08})
    (row,) = rows(analysis.tables[0])
    sd = (0.1**2 + 0.08**2 / 2) ** 0.5
    assert [row[name] for name in NAMES] == pytest.approx(norm.ppf(QUANTILES, scale=sd), abs=0.006)
    assert row["beyond 0.5 points"] == pytest.approx(2 * norm.cdf(-0.005 / sd), abs=0.01)
    assert row["percentile"] == pytest.approx(norm.cdf(row["observed"] / sd), abs=0.015)
    assert row["observed"] == pytest.approx(0.01, abs=0.005)


@pytest.mark.parametrize("preset", ["paper", "random_slopes"])
def test_accuracies_of_the_binomial_priors_agree_with_the_formula(simulate: Simulate, preset: str) -> None:
    priors = {"effect_sd": 0.001, "task_sd": 0.001, "pair_sd": 0.001, "slope_sd": 0.001, "intercept_sd": 0.7}
    results = simulate(0.0, subsamples=10, num_test=500)
    analysis = analyze(results, "prior_check", preset=preset, num_draws=10_000, count_priors=priors)
    mean = rows(analysis.tables[2])[0]
    assert [mean[name] for name in NAMES] == pytest.approx(1 / (1 + np.exp(-norm.ppf(QUANTILES, scale=0.7))), abs=0.015)
    assert mean["observed"] == pytest.approx(0.64, abs=0.03)
    single = rows(analysis.tables[1])[1]
    assert single["50%"] == pytest.approx((2 * 0.23 / 500) ** 0.5, rel=0.1)  # of two independent binomials


def test_quantities_that_a_design_does_not_determine_are_omitted(simulate: Simulate) -> None:
    def names(results: pd.DataFrame, preset: str) -> list[str]:
        return [
            row["quantity"] for row in rows(analyze(results, "prior_check", preset=preset, num_draws=100).tables[1])
        ]

    for preset in ("calibrated", "paper"):
        assert names(simulate(0.0, subsamples=1), preset) == ["sd of the tasks' means"]
        assert names(simulate(0.0, tasks=1), preset) == ["sd of single differences within tasks"]
        incomplete = with_models(simulate, 0.0)
        incomplete = incomplete[(incomplete["model"] == "bert") | (incomplete["task"] != "task0")]
        incomplete = incomplete[(incomplete["subsample"] < 20) | (incomplete["task"] != "task1")].reset_index(drop=True)
        assert len(names(incomplete, preset)) == 2
    scores = simulate(0.0).assign(num_correct=np.nan)
    with pytest.raises(DataError, match="preset paper .* use the preset calibrated"):
        analyze(scores, "prior_check", preset="paper")


@pytest.mark.parametrize("name", ["prior_check", "recovery"])
def test_results_depend_only_on_the_seed(simulate: Simulate, name: str) -> None:
    results = simulate(0.0, subsamples=5)
    size = {"num_draws": 100} if name == "prior_check" else {"num_data_sets": 20, "draws": 100, "biases": [0.01]}
    first, again, other = (analyze(results, name, seed=seed, **size) for seed in (1, 1, 2))
    assert first == again
    assert first.tables[0].rows != other.tables[0].rows


def test_simulated_data_have_the_requested_effect_and_spread() -> None:
    count = np.array([[4.0, 9.0, 1.0] * 100, [4.0, 0.0, 1.0] * 100])
    components = Components(count, 0.03, 0.02, np.full(count.shape, 1e-9))
    cells = simulate_known(components, 0.01, 50, np.random.default_rng(0))
    assert cells.mean[:, count > 0].mean(axis=1) == pytest.approx(0.01, abs=1e-9)
    first, second = cells.mean[:, 0, ::3], cells.mean[:, 1, ::3]
    assert (first - second).std() == pytest.approx(0.02 * 2**0.5, rel=0.05)
    assert (first * second).mean() - 0.01**2 == pytest.approx(0.03**2, rel=0.1)
    noise = simulate_differences(
        count, np.zeros((2000, *count.shape)), np.full(count.shape, 0.1), np.random.default_rng(1)
    )
    assert noise.mean[:, 0, 1].std() == pytest.approx(0.1 / 3, rel=0.07)
    assert noise.squares[:, 0, 1].mean() == pytest.approx(8 * 0.1**2, rel=0.07)
    assert not noise.squares[:, count == 1].any()


def test_components_are_estimated_from_the_results(simulate: Simulate) -> None:
    bias = {f"task{number}": 0.05 * (-1) ** number for number in range(20)}
    results = simulate(bias, tasks=20, noise=0.03)
    components = estimate_components(bias_arms(results), DifferencePriors(), np.random.default_rng(0))
    assert components.task == pytest.approx(0.05, rel=0.25)
    assert components.single.mean() == pytest.approx(0.03 * 2**0.5, rel=0.05)
    assert components.cell == 0


@pytest.mark.simulation
def test_known_biases_are_recovered(simulate: Simulate) -> None:
    """With 250 data sets, the standard error of a share is 2 points at 89%."""
    results = simulate(0.004, subsamples=20, noise=0.03)
    analysis = analyze(results, "recovery", biases=[-0.02, 0.0, 0.008], num_data_sets=250, draws=200)
    components = estimate_components(bias_arms(results), DifferencePriors(), np.random.default_rng(0))
    single = float(components.single.mean())
    assert single == pytest.approx(0.03 * 2**0.5, rel=0.15)
    error = single / 10  # standard error of a mean of 100 differences
    for row, true in zip(rows(analysis.tables[0]), (-0.02, 0.0, 0.008), strict=True):
        assert row["true bias"] == true
        assert row["error of the mean"] == pytest.approx(0, abs=4 * error / 16)
        assert row["mean estimate"] == pytest.approx(true + row["error of the mean"])
        assert row["sd of estimates"] == pytest.approx(error, rel=0.15)
        assert row["coverage"] == pytest.approx(0.89, abs=0.06)
        power = norm.cdf(abs(true) / error - norm.ppf(0.945)) + norm.cdf(-abs(true) / error - norm.ppf(0.945))
        assert row["interval excludes 0"] == pytest.approx(power, abs=0.09)
    down, none, _ = rows(analysis.tables[1])
    assert down["biased down"] > 0.97
    assert none["biased up"] + none["biased down"] < 0.1
    assert none["equivalent"] + none["inconclusive"] > 0.9
