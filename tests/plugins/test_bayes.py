"""Tests of `bayes.hierarchical`: the default preset, and behavior that all presets share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import needs_bayes  # noqa: F401
import numpy as np
import pandas as pd
import pytest
from bayes_analyses import analyze, bias_arms, rows, simulate_binomial
from scipy.stats import t as student_t

from peekbench.errors import DataError, SpecError
from peekbench.report import state
from peekbench.results import tidy
from peekbench_bayes.calibrated import fit_differences, sample, sample_population, summarize_cells
from peekbench_bayes.options import DifferencePriors, Hierarchical
from peekbench_bayes.posterior import check_chains, check_weights, summarize
from peekbench_testing import check_entry

if TYPE_CHECKING:
    from peekbench.records import FloatArray

    Simulate = Callable[..., pd.DataFrame]
SCORES = ("score", "macro_f1")


@pytest.mark.simulation
def test_intervals_have_their_nominal_coverage() -> None:
    """150 data sets are sampled together; their tasks and models differ in effect and in noise."""
    rng = np.random.default_rng(3)
    noise = np.array([0.09, 0.03])[:, None] * np.exp(rng.normal(0, 0.4, (2, 20)))
    truth = rng.normal(0.01, 0.01, (150, 1, 20)) + rng.normal(0, 0.005, (150, 2, 20))
    cells = summarize_cells(truth[..., None] + noise[..., None] * rng.standard_normal((150, 2, 20, 15)))
    states = list(sample(cells, DifferencePriors(), 200, rng))[50:]
    populations = list(sample_population(cells, states, DifferencePriors(), rng))
    for name, draws, true in (
        ("average", [draw.unshrunk.mean(axis=(1, 2)) for draw in states], truth.mean(axis=(1, 2))),
        ("theta", [draw.theta for draw in states], truth),
        ("mu", [population.mu.mean(axis=1) for population in populations], np.full(150, 0.01)),
        ("mean", [population.mean for population in populations], np.full(150, 0.01)),
    ):
        low, high = np.quantile(np.array(draws), [0.055, 0.945], axis=0)
        assert np.mean((low < true) & (true < high)) == pytest.approx(0.89, abs=0.06), name


def test_interval_of_a_contaminated_task_is_hardly_shrunk() -> None:
    """One normal distribution for all tasks would cover 10 points in less than 60% of data sets."""
    rng = np.random.default_rng(0)
    truth = np.zeros((40, 1, 25))
    truth[:, 0, 7] = 0.1
    cells = summarize_cells(truth[..., None] + 0.09 * rng.standard_normal((40, 1, 25, 20)))
    states = list(sample(cells, DifferencePriors(), 150, rng))[50:]
    low, high = np.quantile([state.theta[:, 0] for state in states], [0.055, 0.945], axis=0)
    assert np.mean((low < truth[:, 0]) & (truth[:, 0] < high), axis=0)[7] > 0.8
    own = np.sqrt(cells.squares / 19 / 20)[:, 0]
    assert np.mean((high - low) / own, axis=0)[8] < 0.75 * 2 * 1.67  # the others are still shrunk


def test_sampler_agrees_with_a_known_posterior() -> None:
    """With one model, no differences between tasks and many subsamples, the mean is the pooled mean."""
    rng = np.random.default_rng(1)
    data = 0.02 + 0.05 * rng.standard_normal((1, 10, 400))
    states = list(sample(summarize_cells(np.repeat(data[None], 8, axis=0)), DifferencePriors(), 500, rng))[100:]
    average = np.array([draw.unshrunk.mean(axis=(1, 2)) for draw in states])
    assert average.mean() == pytest.approx(data.mean(), abs=1e-4)
    assert average.std() == pytest.approx(0.05 / np.sqrt(4000), rel=0.06)
    assert np.mean([state.variance.mean() for state in states]) == pytest.approx(0.0025, rel=0.05)


@pytest.mark.slow
def test_verdicts_have_the_sign_of_the_bias(simulate: Simulate) -> None:
    for bias, decision in ((0.03, "biased up"), (-0.03, "biased down"), (0.0, "equivalent")):
        (verdict,) = analyze(simulate(bias, subsamples=150), effects=["bias"]).verdicts
        assert verdict.decision == decision
        assert verdict.estimate.low - 0.002 < bias < verdict.estimate.high + 0.002
    assert analyze(simulate(0.002, subsamples=10), effects=["bias"]).verdicts[0].decision == "inconclusive"


def test_tasks_are_shrunk_toward_each_other(simulate: Simulate) -> None:
    results = simulate({"task0": 0.02, "task1": 0.0, "task2": 0.0, "task3": 0.0, "task4": -0.02}, subsamples=15)
    tasks = [row for row in rows(analyze(results, draws=200).tables[1]) if row["effect"] == "bias"]
    assert np.std([row["shrunk"] for row in tasks]) < np.std([row["observed"] for row in tasks])
    assert tasks[0]["shrunk"] > tasks[2]["shrunk"] > tasks[4]["shrunk"]


def checked(draws: FloatArray) -> dict[str, tuple[float, bool]]:
    """Return value and outcome of each check, for the given chains and some good ones."""
    fine = np.random.default_rng(1).standard_normal((4, 5000, 2))
    return {check.name: (check.value, check.passed) for check in check_chains({"fine": fine, "x": draws})}


def test_checks_fail_for_chains_that_disagree() -> None:
    rng = np.random.default_rng(0)
    good = rng.standard_normal((4, 1000, 3))
    checks = checked(good)
    assert all(passed for _, passed in checks.values())
    assert checks["bulk ESS, x"][0] == pytest.approx(4000, rel=0.15)
    assert checks["tail ESS, x"][0] == pytest.approx(4000, rel=0.3)
    elsewhere, wider = good.copy(), good.copy()
    elsewhere[:, :, 1] += np.arange(4)[:, None]
    wider[0, :, 2] *= 5
    assert checked(elsewhere)["R-hat, x"][0] > 1.3
    assert checked(wider)["R-hat, x"][0] > 1.05  # only the folded draws show it
    assert not checked(wider)["R-hat, x"][1]
    slow = np.zeros((4, 4000))
    for step in range(1, 4000):
        slow[:, step] = 0.9 * slow[:, step - 1] + rng.standard_normal(4)
    assert checked(slow)["bulk ESS, x"][0] == pytest.approx(16000 / 19, rel=0.3)
    assert checked(slow)["bulk ESS, x"][1]
    assert not checked(slow[:, :1000])["bulk ESS, x"][1]


@pytest.mark.parametrize("k", [0.2, 0.5, 0.9])
def test_pareto_k_is_the_shape_of_the_tail(k: float) -> None:
    rng = np.random.default_rng(1)
    weights = 1 + ((1 - rng.random(20_000)) ** -k - 1) / k
    check = check_weights(np.log(weights), "another engine")
    assert check.value == pytest.approx(k, abs=0.12)
    assert check.passed == (k < 0.7)


def test_equal_scores_have_a_bias_of_exactly_zero(simulate: Simulate) -> None:
    results = simulate(0.0, subsamples=10)
    table = results.pivot(index=["task", "subsample"], columns="arm", values="score").reset_index()
    table["test"] = table["extra"]
    (verdict,) = analyze(tidy(table[["task", "subsample", "extra", "test"]], "same"), draws=100).verdicts
    assert verdict.decision == "equivalent"
    assert "none of 50 trials has a bias" in state(verdict)


def test_methods_and_sizes_are_fitted_separately_and_models_together() -> None:
    both = simulate_binomial(0.05, 0.0, tasks=6, subsamples=8)
    other = both.assign(method="other", num_test=250, num_correct=(both["num_correct"] // 2).astype("Int64"))
    results = pd.concat([both, other.assign(score=other["num_correct"] / 250)], ignore_index=True)
    analysis = analyze(results, draws=100)
    assert [verdict.method for verdict in analysis.verdicts] == ["method (num_test=500)", "other (num_test=250)"]
    assert [row["model"] for row in rows(analysis.tables[0])] == ["all", "bert", "gpt2"] * 2
    alone = analyze(both, draws=100)
    assert rows(alone.tables[0])[0]["mean"] == rows(analysis.tables[0])[0]["mean"]


@pytest.mark.slow
def test_missing_subsamples_single_subsamples_and_other_scores(simulate: Simulate) -> None:
    results = simulate(0.02, subsamples=12)
    shorter = results[~((results["task"] == "task1") & (results["subsample"] >= 5))]
    for preset in ("calibrated", "paper"):
        assert np.isfinite(rows(analyze(shorter, draws=100, preset=preset).tables[0])[0]["mean"])
    single = results[results["subsample"] == 0]
    assert analyze(single, draws=100).verdicts[0].decision == "inconclusive"
    table = pd.DataFrame({"task": ["a"] * 9 + ["b"] * 9, "extra": [0.1, -0.2, 0.3] * 6, "test": [0.3, 0.1, 0.2] * 6})
    table["seed"] = [*range(9), *range(9)]
    (verdict,) = analyze(tidy(table, "r2"), draws=100).verdicts
    assert "points" not in state(verdict)
    with pytest.raises(DataError, match="preset paper .* use the preset calibrated"):
        analyze(tidy(table, "r2"), preset="paper")


def test_other_scores_can_be_analyzed(simulate: Simulate) -> None:
    results = simulate(0.0, subsamples=10)
    loss = 1 - results["score"] - 0.05 * (results["arm"] == "test")  # lower is better
    results = results.assign(log_loss=loss, macro_f1=results["score"] - 0.02)
    (verdict,) = analyze(results, effects=["bias"], score="log_loss", draws=100).verdicts
    assert verdict.decision == "biased up"
    assert (verdict.unit, verdict.region) == ("change", 0.01)
    assert "the log-likelihood" in state(verdict)
    accuracy, macro_f1 = (analyze(results, effects=["bias"], score=score, draws=100).verdicts[0] for score in SCORES)
    assert macro_f1.estimate == pytest.approx(accuracy.estimate)
    assert analyze(results, "meta", score="macro_f1", num_slices=4).tables
    with pytest.raises(SpecError, match="preset paper models counts of correct answers and cannot analyze log_loss"):
        analyze(results, preset="paper", score="log_loss")
    with pytest.raises(SpecError, match=r"bayes.hierarchical, option score: brier is missing .*: score, log_loss"):
        analyze(results, score="brier")


def test_contradictory_options_are_errors(simulate: Simulate) -> None:
    with pytest.raises(SpecError, match="engine bambi: .* paper and random_slopes"):
        analyze(simulate(0.0, subsamples=3), engine="bambi")
    no_base = simulate(0.0, subsamples=3)
    with pytest.raises(SpecError, match="effects: boost is unavailable"):
        analyze(no_base[no_base["arm"] != "base"], effects=["boost"])
    with pytest.raises(SpecError):
        analyze(no_base, difference_priors={"task_sd": 0})


def test_interval_of_other_tasks_agrees_with_a_paired_t_over_tasks() -> None:
    """Bias is correlated with noise here, so a mean with more weight on stable tasks would differ."""
    rng = np.random.default_rng(3)
    noise = np.linspace(0.005, 0.05, 30)
    difference = (noise - 0.01)[:, None] + noise[:, None] * rng.standard_normal((30, 40))
    table = pd.DataFrame({"task": np.repeat([f"t{number}" for number in range(30)], 40), "extra": 0.5})
    fit = fit_differences(bias_arms(tidy(table.assign(test=0.5 + difference.ravel()), "noisy")), Hierarchical())
    assert fit.other_tasks is not None
    summary, means = summarize(fit.other_tasks, 0.89), difference.mean(axis=1)
    assert summary.mean == pytest.approx(means.mean(), abs=0.0005)
    half = student_t.ppf(0.945, 29) * means.std(ddof=1) / np.sqrt(30)
    assert (summary.high - summary.low) / 2 == pytest.approx(half, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), [("hierarchical", {}), ("meta", {"num_slices": 20})])
def test_analyses_pass_the_contract_checks(name: str, options: dict[str, int]) -> None:
    outcomes = check_entry(f"bayes.{name}", {"draws": 100, **options})
    assert [outcome for outcome in outcomes if not outcome.passed] == []
