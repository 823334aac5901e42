"""Permutation tests: exactness, error rates, planted effects and tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pytest
from analysis_tables import run_analysis, table_rows
from scipy.stats import ttest_1samp

from peekbench import PeekbenchError
from peekbench.results import load_results, tidy
from peekbench.spec.components import AnalysisSpec, make_component
from peekbench.testing import check_analyzer, check_module_light
from peekbench_permutation import Permutation
from peekbench_permutation.permutation import adjust, compute_p_values

Simulate: TypeAlias = Callable[..., pd.DataFrame]
analyze = partial(run_analysis, "permutation")


def enumerate_sign_flips(task: Any) -> tuple[float, float]:
    """Compute the two-sided and the one-sided p-value from all sign flips."""
    null = np.array([np.sum(np.array(signs) * task) for signs in product((1, -1), repeat=len(task))])
    above, below = np.mean(null >= np.sum(task) - 1e-9), np.mean(null <= np.sum(task) + 1e-9)
    return float(min(1, 2 * min(above, below))), float(above)


@pytest.mark.parametrize("num_test", [100, None])
@pytest.mark.parametrize("size", [1, 2, 8, 12])
def test_tests_of_few_subsamples_are_exact(size: int, num_test: int | None) -> None:
    rng = np.random.default_rng(size)
    for whole in rng.integers(-5, 9, size=(12, size)):
        assert compute_p_values(whole / 100, num_test, Permutation()) == pytest.approx(enumerate_sign_flips(whole))


def test_ties_are_recognized_if_the_mean_is_near_zero() -> None:
    """The mean is zero except for rounding, so half of all sign flips reach it, and ties reach it too."""
    task = np.array([0.1, 0.1, 0.1, -0.3, 0.0])
    assert task.mean() != 0
    assert compute_p_values(task, None, Permutation()) == pytest.approx(enumerate_sign_flips(np.rint(task * 10)))
    assert compute_p_values(task, 10, Permutation()) == pytest.approx(enumerate_sign_flips(np.rint(task * 10)))


@pytest.mark.slow
def test_exact_and_random_flips_agree_on_many_subsamples() -> None:
    rng = np.random.default_rng(4)
    for whole in rng.normal(2, 9, size=(5, 100)).round():
        exact = compute_p_values(whole / 500, 500, Permutation())
        assert exact == pytest.approx(compute_p_values(whole / 500, None, Permutation(num_resamples=99_999)), abs=0.008)


def test_very_large_differences_of_counts_are_resampled(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = np.array([9.0, -2, 5, 3, 1, 8, -4, 6])
    exact = enumerate_sign_flips(whole)
    monkeypatch.setattr("peekbench_permutation.permutation.MAX_EXACT_SUM", 37)
    monkeypatch.delattr("peekbench_permutation.permutation.sign_flip_test_of_counts")
    assert compute_p_values(whole / 100, 100, Permutation()) == pytest.approx(exact)
    huge = np.array([1.0, -1.0, 0.5])
    assert compute_p_values(huge, 2**53, Permutation()) == pytest.approx(enumerate_sign_flips(huge))


def test_differences_that_are_not_whole_numbers_of_texts_are_resampled() -> None:
    """Accuracies of 300 texts, rounded to three digits."""
    rng = np.random.default_rng(5)
    rounded = np.round(rng.integers(-20, 25, size=40) / 300, 3)
    exact = compute_p_values(rounded, 1000, Permutation())
    assert compute_p_values(rounded, 300, Permutation()) == compute_p_values(rounded, None, Permutation())
    assert compute_p_values(rounded, 300, Permutation()) == pytest.approx(exact, abs=0.02)


def test_p_values_agree_with_the_t_test_for_normal_differences() -> None:
    for task in np.random.default_rng(1).normal(0.004, 0.02, size=(6, 60)):
        two_sided, greater = compute_p_values(task, None, Permutation())
        assert two_sided == pytest.approx(ttest_1samp(task, 0).pvalue, abs=0.02)
        assert greater == pytest.approx(ttest_1samp(task, 0, alternative="greater").pvalue, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("num_test", [200, None])
def test_false_positive_rate_is_nominal(num_test: int | None) -> None:
    """Of 1,500 tests without an effect, 5% have p <= 0.05, within three standard errors; the same at other levels."""
    differences = np.round(np.random.default_rng(2).normal(0, 6, size=(1500, 25))) / 200
    p_values = np.array([compute_p_values(task, num_test, Permutation(num_resamples=999)) for task in differences])
    for p in p_values.T:
        for level in (0.05, 0.2, 0.5):
            assert abs((p <= level).mean() - level) < 3 * np.sqrt(level * (1 - level) / 1500) + 0.01


def test_planted_effects_are_found_with_their_sign(simulate: Simulate) -> None:
    bias = {"task0": 0.04, "task1": -0.04, "task2": 0.0, "task3": 0.04, "task4": 0.0}
    overview, tasks = map(table_rows, analyze(simulate(bias, subsamples=60)).tables)
    assert (overview[0]["up"], overview[0]["down"]) == (2, 1)
    adjusted = {row["task"]: row["adjusted p"] for row in tasks}
    assert all((adjusted[task] < 0.05) == (bias[task] != 0) for task in bias)
    greater = {row["task"]: row["p, test > extra"] for row in tasks}
    assert greater["task0"] < 0.01
    assert greater["task1"] > 0.99


def test_equal_scores_give_no_evidence() -> None:
    table = tidy(pd.DataFrame({"task": ["a"] * 30, "extra": 0.5, "test": 0.5}), "same")
    overview, tasks = map(table_rows, analyze(table).tables)
    assert (tasks[0]["p"], tasks[0]["p, test > extra"]) == (1, 1)
    assert (overview[0]["up"], overview[0]["down"], overview[0]["p, paired t over tasks"]) == (0, 0, None)


def test_one_subsample_gives_no_evidence() -> None:
    table = tidy(pd.DataFrame({"task": ["a", "b"], "extra": [0.5, 0.5], "test": [0.9, 0.1]}), "one")
    tasks = table_rows(analyze(table).tables[1])
    assert [row["p"] for row in tasks] == [1, 1]
    assert [row["p, test > extra"] for row in tasks] == [0.5, 1]


def test_p_values_do_not_depend_on_the_subsamples_of_other_tasks(simulate: Simulate) -> None:
    results = simulate(0.01, tasks=2, subsamples=30)
    shorter = results[~((results["task"] == "task1") & (results["subsample"] >= 12))]
    both = {row["task"]: row["p"] for row in table_rows(analyze(shorter).tables[1])}
    alone = {row["task"]: row["p"] for row in table_rows(analyze(shorter[shorter["task"] == "task1"]).tables[1])}
    assert both["task1"] == alone["task1"]
    assert list(both) == ["task0", "task1"]


def test_adjustment_is_benjamini_hochberg() -> None:
    assert adjust([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.16 / 3, 0.16 / 3, 0.5])


def test_overview_has_the_paired_t_test_over_tasks(simulate: Simulate) -> None:
    results = simulate(0.02)
    wide = results.pivot(index=["task", "subsample"], columns="arm", values="score")
    means = (wide["test"] - wide["extra"]).groupby("task").mean()
    overview = table_rows(analyze(results).tables[0])[0]
    assert overview["p, paired t over tasks"] == pytest.approx(ttest_1samp(means, 0).pvalue)
    assert overview["p, paired t over tasks, test > extra"] == pytest.approx(
        ttest_1samp(means, 0, alternative="greater").pvalue
    )


def test_published_zero_shot_accuracies_show_no_bias(published: Path) -> None:
    """The smallest adjusted one-sided p-value in the paper is 0.563."""
    tasks = table_rows(analyze(load_results(published / "zero_shot")).tables[1])
    assert len(tasks) == 25
    assert min(row["adjusted p, test > extra"] for row in tasks) == pytest.approx(0.563, abs=0.0005)


def test_improved_log_losses_count_as_up(simulate: Simulate) -> None:
    results = simulate({"task0": 0.0, "task1": 0.0}, tasks=2, subsamples=60)
    rng = np.random.default_rng(3)
    improved = (results["arm"] == "test") & (results["task"] == "task0")
    results = results.assign(log_loss=0.5 + rng.normal(0, 0.05, len(results)) - 0.04 * improved)
    overview, tasks = map(table_rows, analyze(results, measure="log_loss").tables)
    assert (overview[0]["up"], overview[0]["down"]) == (1, 0)
    assert tasks[0]["bias"] == pytest.approx(0.04, abs=0.02)
    assert tasks[0]["adjusted p"] < 0.01 < tasks[1]["adjusted p"]
    with pytest.raises(PeekbenchError, match="option measure: log_loss is missing in 1 of 360 rows"):
        analyze(results.assign(log_loss=results["log_loss"].where(results.index != 5)), measure="log_loss")


def test_contract(simulate: Simulate) -> None:
    spec = make_component(AnalysisSpec, "permutation")
    check_analyzer(spec.entry, spec.options, simulate(0.01, subsamples=30))
    check_module_light("peekbench_permutation")
