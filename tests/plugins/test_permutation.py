"""Permutation tests: exactness, error rates, planted effects and tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd
import pytest
from analysis_tables import run_analysis, table_rows
from scipy.stats import ttest_1samp

from peekbench import PeekbenchError
from peekbench.results import load_results, tidy
from peekbench_stats import sign_flip_test

Simulate: TypeAlias = Callable[..., pd.DataFrame]
analyze = partial(run_analysis, "permutation")


@pytest.mark.simulation
def test_false_positive_rate_is_nominal() -> None:
    """Of 1,500 tests without an effect, 5% have p <= 0.05, within three standard errors; the same at other levels."""
    rng = np.random.default_rng(2)
    for differences in (rng.normal(0, 6, size=(1500, 25)).round() / 200, rng.normal(0, 6, size=(1500, 25))):
        tests = [sign_flip_test(task) for task in differences]
        for p_values in (np.array([test.two_sided for test in tests]), np.array([test.greater for test in tests])):
            for level in (0.05, 0.2, 0.5):
                assert abs((p_values <= level).mean() - level) < 3 * np.sqrt(level * (1 - level) / 1500) + 0.01


def test_the_average_over_these_tasks_is_tested(simulate: Simulate) -> None:
    """Six trials with biases of one sign: two of the 64 sign patterns are as extreme."""
    table = tidy(pd.DataFrame({"task": ["a", "b"] * 3, "num_test": 100, "extra": 0.5, "test": [0.51, 0.6] * 3}), "six")
    (overview,) = table_rows(analyze(table).tables[0])
    assert (overview["trials"], overview["p, these tasks"]) == (6, 2 / 64)
    assert overview["p, these tasks, test > extra"] == 1 / 64
    (null,) = table_rows(analyze(simulate(0.0, seed=1)).tables[0])
    assert null["p, these tasks"] > 0.05


def test_tests_of_several_methods_are_adjusted(simulate: Simulate) -> None:
    """One task with p = 0.03 is enough for a method alone, but not for one of ten."""
    methods = [simulate(0.0, method=str(number), seed=number, tasks=1, subsamples=20) for number in range(10)]
    methods[0] = simulate(0.012, method="0", seed=0, tasks=1, subsamples=20)
    results = pd.concat(methods, ignore_index=True)
    together, apart = (table_rows(analyze(results, family=choice).tables[0])[0] for choice in ("all", "none"))
    assert 0.005 < together["p, these tasks"] <= 0.05
    assert (apart["up"], together["up"]) == (1, 0)
    assert apart["adjusted p, these tasks"] == apart["p, these tasks"] < together["adjusted p, these tasks"]


def test_planted_effects_are_found_with_their_sign(simulate: Simulate) -> None:
    bias = {"task0": 0.04, "task1": -0.04, "task2": 0.0, "task3": 0.04, "task4": 0.0}
    overview, tasks = map(table_rows, analyze(simulate(bias, subsamples=60)).tables)
    assert (overview[0]["up"], overview[0]["down"]) == (2, 1)
    adjusted = {row["task"]: row["adjusted p"] for row in tasks}
    assert all((adjusted[task] < 0.05) == (bias[task] != 0) for task in bias)
    greater = {row["task"]: row["p, test > extra"] for row in tasks}
    assert greater["task0"] < 0.01
    assert greater["task1"] > 0.99


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
    tasks = table_rows(analyze(load_results(published / "zero_shot", independent_tasks=True)).tables[1])
    assert len(tasks) == 25
    assert min(row["adjusted p, test > extra"] for row in tasks) == pytest.approx(0.563, abs=0.0005)


def test_improved_log_losses_count_as_up(simulate: Simulate) -> None:
    results = simulate({"task0": 0.0, "task1": 0.0}, tasks=2, subsamples=60)
    rng = np.random.default_rng(3)
    improved = (results["arm"] == "test") & (results["task"] == "task0")
    results = results.assign(log_loss=0.5 + rng.normal(0, 0.05, len(results)) - 0.04 * improved)
    overview, tasks = map(table_rows, analyze(results, score="log_loss").tables)
    assert (overview[0]["up"], overview[0]["down"]) == (1, 0)
    assert tasks[0]["bias"] == pytest.approx(0.04, abs=0.02)
    assert tasks[0]["adjusted p"] < 0.01 < tasks[1]["adjusted p"]
    with pytest.raises(PeekbenchError, match="option score: log_loss is missing in 1 of 360 rows"):
        analyze(results.assign(log_loss=results["log_loss"].where(results.index != 5)), score="log_loss")
