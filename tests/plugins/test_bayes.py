"""`bayes.hierarchical` as it is by default, and what its presets share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from asked_bayes import ask, bias_of, binomial, rows
from scipy.stats import t as student_t

from peekbench.errors import DataError, SpecError
from peekbench.results.decisions import decide
from peekbench.results.table import tidy
from peekbench.spec.components import AnalysisSpec, make_component
from peekbench.testing import check_analyzer, check_module_light
from peekbench_bayes import Hierarchical
from peekbench_bayes.calibrated import fit_differences
from peekbench_bayes.diagnostics import check_chains, check_weights
from peekbench_bayes.gaussian import sample, summarize_cells
from peekbench_bayes.model import DifferencePriors
from peekbench_bayes.verdict import summarize

if TYPE_CHECKING:
    from peekbench.records import FloatArray

    Simulate = Callable[..., pd.DataFrame]


def test_intervals_of_known_differences_hold_as_often_as_they_say() -> None:
    """250 data sets at once, whose tasks and models differ in effect and in noise."""
    rng = np.random.default_rng(3)
    noise = np.array([0.09, 0.03])[:, None] * np.exp(rng.normal(0, 0.4, (2, 20)))
    truth = rng.normal(0.01, 0.01, (250, 1, 20)) + rng.normal(0, 0.005, (250, 2, 20))
    data = truth[..., None] + noise[..., None] * rng.standard_normal((250, 2, 20, 15))
    states = list(sample(summarize_cells(data), DifferencePriors(), 220, rng))[60:]
    for name, true in (
        ("alone", truth.mean(axis=(1, 2))),
        ("theta", truth),
        ("mu", np.full(250, 0.01)),
    ):
        draws = np.array([getattr(state, name) for state in states])
        if name == "alone":
            draws = draws.mean(axis=(2, 3))
        if name == "mu":
            draws = draws.mean(axis=2)
        low, high = np.quantile(draws, [0.055, 0.945], axis=0)
        assert np.mean((low < true) & (true < high)) == pytest.approx(0.89, abs=0.05), name


def test_sampler_is_right_where_the_answer_is_known() -> None:
    """With one model, next to no differences between tasks and many subsamples, the mean is the pooled one."""
    rng = np.random.default_rng(1)
    data = 0.02 + 0.05 * rng.standard_normal((1, 10, 400))
    states = list(sample(summarize_cells(np.repeat(data[None], 8, axis=0)), DifferencePriors(), 500, rng))[100:]
    average = np.array([state.alone.mean(axis=(1, 2)) for state in states])
    assert average.mean() == pytest.approx(data.mean(), abs=1e-4)
    assert average.std() == pytest.approx(0.05 / np.sqrt(4000), rel=0.06)
    assert np.mean([state.variance.mean() for state in states]) == pytest.approx(0.0025, rel=0.05)


def test_bias_is_found_and_signed(simulate: Simulate) -> None:
    for bias, decision in ((0.03, "biased up"), (-0.03, "biased down"), (0.0, "equivalent")):
        (verdict,) = ask(simulate(bias, subsamples=150), effects=["bias"]).verdicts
        assert verdict.decision == decision
        assert verdict.low is not None
        assert verdict.high is not None
        assert verdict.low - 0.002 < bias < verdict.high + 0.002
    assert ask(simulate(0.002, subsamples=10), effects=["bias"]).verdicts[0].decision == "inconclusive"


def test_verdicts_rest_on_a_level_of_their_own(simulate: Simulate) -> None:
    results = simulate(0.002, subsamples=10)
    analysis = ask(results, effects=["bias"])
    (verdict,), (average, *_) = analysis.verdicts, rows(analysis.tables[0])
    assert verdict.level == 0.95
    assert "95% interval" in verdict.sentence
    assert verdict.low is not None
    assert verdict.low < 0 < average["mean, low"]
    assert ask(results, effects=["bias"], verdict_level=0.89).verdicts[0].decision == "biased up"


def test_tasks_are_drawn_towards_each_other(simulate: Simulate) -> None:
    results = simulate({"task0": 0.02, "task1": 0.0, "task2": 0.0, "task3": 0.0, "task4": -0.02}, subsamples=15)
    tasks = [row for row in rows(ask(results, draws=200).tables[1]) if row["effect"] == "bias"]
    assert np.std([row["shrunk"] for row in tasks]) < np.std([row["observed"] for row in tasks])
    assert tasks[0]["shrunk"] > tasks[2]["shrunk"] > tasks[4]["shrunk"]


def checked(draws: FloatArray) -> dict[str, tuple[float, bool]]:
    """Value and outcome of each check of chains that are fine but for the given ones."""
    fine = np.random.default_rng(1).standard_normal((4, 5000, 2))
    return {check.name: (check.value, check.passed) for check in check_chains({"fine": fine, "x": draws})}


def test_chains_that_disagree_fail_and_good_ones_pass() -> None:
    rng = np.random.default_rng(0)
    good = rng.standard_normal((4, 1000, 3))
    found = checked(good)
    assert all(passed for _, passed in found.values())
    assert found["bulk ESS, x"][0] == pytest.approx(4000, rel=0.15)
    assert found["tail ESS, x"][0] == pytest.approx(4000, rel=0.3)
    elsewhere, wider = good.copy(), good.copy()
    elsewhere[:, :, 1] += np.arange(4)[:, None]
    wider[0, :, 2] *= 5
    assert checked(elsewhere)["R-hat, x"][0] > 1.3
    assert checked(wider)["R-hat, x"][0] > 1.05  # which only the folded draws show
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
    weights_ = 1 + ((1 - rng.random(20_000)) ** -k - 1) / k
    check = check_weights(np.log(weights_), "another engine")
    assert check.value == pytest.approx(k, abs=0.12)
    assert check.passed == (k < 0.7)


def test_no_difference_at_all_is_exact(simulate: Simulate) -> None:
    results = simulate(0.0, subsamples=10)
    table = results.pivot(index=["task", "subsample"], columns="arm", values="score").reset_index()
    table["test"] = table["extra"]
    (verdict,) = ask(tidy(table[["task", "subsample", "extra", "test"]], "same"), draws=100).verdicts
    assert verdict.decision == "equivalent"
    assert "exactly 0 in all 50 trials" in verdict.sentence


def test_methods_and_sizes_are_fitted_each_and_models_together() -> None:
    both = binomial(0.05, 0.0, tasks=6, subsamples=8)
    other = both.assign(method="other", num_test=250, num_correct=(both["num_correct"] // 2).astype("Int64"))
    results = pd.concat([both, other.assign(score=other["num_correct"] / 250)], ignore_index=True)
    analysis = ask(results, draws=100)
    assert [verdict.method for verdict in analysis.verdicts] == ["method (n=500)", "other (n=250)"]
    assert [row["model"] for row in rows(analysis.tables[0])] == ["all", "bert", "gpt2"] * 2
    alone = ask(both, draws=100)
    assert rows(alone.tables[0])[0]["mean"] == rows(analysis.tables[0])[0]["mean"]


def test_models_are_paired_by_subsample_number() -> None:
    results = binomial(0.0, 0.0, tasks=3, subsamples=5)
    shuffled = results.sample(frac=1, random_state=1).reset_index(drop=True)
    first, again = bias_of(results), bias_of(shuffled)
    order = [[again.models.index(name) for name in first.models], [again.tasks.index(name) for name in first.tasks]]
    assert np.array_equal(first.difference, again.difference[np.ix_(*order)])


def test_holes_single_subsamples_and_scores_that_are_no_accuracies(simulate: Simulate) -> None:
    results = simulate(0.02, subsamples=12)
    shorter = results[~((results["task"] == "task1") & (results["subsample"] >= 5))]
    for preset in ("calibrated", "printed"):
        assert np.isfinite(rows(ask(shorter, draws=100, preset=preset).tables[0])[0]["mean"])
    single = results[results["subsample"] == 0]
    assert ask(single, draws=100).verdicts[0].decision == "inconclusive"
    table = pd.DataFrame({"task": ["a"] * 9 + ["b"] * 9, "extra": [0.1, -0.2, 0.3] * 6, "test": [0.3, 0.1, 0.2] * 6})
    (verdict,) = ask(tidy(table, "r2"), draws=100).verdicts
    assert "points" not in verdict.sentence
    with pytest.raises(DataError, match="preset printed models numbers of right answers"):
        ask(tidy(table, "r2"), preset="printed")


def test_options_that_contradict_each_other_are_refused(simulate: Simulate) -> None:
    with pytest.raises(SpecError, match="bambi fits the presets printed and random_slopes"):
        ask(simulate(0.0, subsamples=3), engine="bambi")
    no_base = simulate(0.0, subsamples=3)
    with pytest.raises(SpecError, match="effects: boost cannot be had"):
        ask(no_base[no_base["arm"] != "base"], effects=["boost"])
    with pytest.raises(SpecError):
        ask(no_base, difference_priors={"task_sd": 0})


@pytest.mark.parametrize(
    ("low", "high", "decision"),
    [
        (-0.004, 0.004, "equivalent"),
        (0.001, 0.004, "equivalent"),
        (0.001, 0.006, "biased up"),
        (-0.006, -0.001, "biased down"),
        (-0.006, 0.001, "inconclusive"),
    ],
)
def test_decisions(low: float, high: float, decision: str) -> None:
    assert decide(low, high, 0.005) == decision


def test_checks_of_the_default_engine_pass(simulate: Simulate) -> None:
    fit = fit_differences(bias_of(simulate(0.01)), Hierarchical())
    assert fit.failed == ()
    assert {check.name.split(",")[0] for check in fit.checks} == {"R-hat", "bulk ESS", "tail ESS"} | {
        "dispersion of differences"
    }


def test_such_tasks_are_judged_as_a_paired_t_over_tasks_does() -> None:
    """Bias goes with noise here, so that a mean that weighs stable tasks more would lie elsewhere."""
    rng = np.random.default_rng(3)
    noise = np.linspace(0.005, 0.05, 30)
    difference = (noise - 0.01)[:, None] + noise[:, None] * rng.standard_normal((30, 40))
    table = pd.DataFrame({"task": np.repeat([f"t{number}" for number in range(30)], 40), "extra": 0.5})
    fit = fit_differences(bias_of(tidy(table.assign(test=0.5 + difference.ravel()), "noisy")), Hierarchical())
    assert fit.such_tasks is not None
    found, means = summarize(fit.such_tasks, 0.89), difference.mean(axis=1)
    assert found.mean == pytest.approx(means.mean(), abs=0.0005)
    half = student_t.ppf(0.945, 29) * means.std(ddof=1) / np.sqrt(30)
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.1)


@pytest.mark.parametrize("name", ["hierarchical", "meta"])
def test_contract(simulate: Simulate, name: str) -> None:
    spec = make_component(AnalysisSpec, f"bayes.{name}", {"draws": 100})
    check_analyzer(spec.entry, spec.options, simulate(0.01, subsamples=10))
    check_module_light("peekbench_bayes")
