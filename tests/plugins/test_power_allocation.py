"""Subsamples by the noise of tasks: fewer trials for the same power, and intervals that keep their coverage."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from analysis_tables import run_analysis, table_rows

from peekbench.results import tidy
from peekbench_power.allocation import allocate, plan_allocation, shrink_variances
from peekbench_power.detection import Criterion
from peekbench_power.measure import measure_noise, pair_trials
from peekbench_power.noise import Measurement, MethodNoise
from peekbench_summary.evidence import Bias
from peekbench_summary.region import Region

CRITERION = Criterion(power=0.8, alpha=0.05)
SPREADS = np.array([1.0, 1.0, 1.0, 4.0])
TARGET = 0.005
SCALE = 0.02  # sd of the quiet tasks
analyze = partial(run_analysis, "power")


def simulate(spreads: Any, subsamples: int, seed: int = 0) -> pd.DataFrame:
    """Scores whose bias varies between subsamples with a standard deviation by task."""
    rng = np.random.default_rng(seed)
    rows = [
        {"task": f"task{task}", "subsample": subsample, "arm": arm, "score": score}
        for task, spread in enumerate(spreads)
        for subsample in range(subsamples)
        for arm, score in (("extra", 0.7), ("test", 0.7 + rng.normal(0, SCALE * spread)))
    ]
    return tidy(pd.DataFrame(rows), "noisy")


def measure(results: pd.DataFrame) -> tuple[MethodNoise, Measurement]:
    (method,) = measure_noise(pair_trials(results), is_accuracy=False)
    return method, method.measurements[0]


def test_numbers_are_proportional_to_the_noise_and_at_least_half_of_an_equal_share() -> None:
    assert allocate(SPREADS, 70, [0] * 4) == (10, 10, 10, 40)
    assert allocate([0.0, 1.0, 3.0, 8.0], 96, [0] * 4) == (12, 12, 20, 53)  # 72 are left for 3 and 8
    assert allocate([0.0, 0.0], 10, [0, 7]) == (5, 7)
    assert allocate([1.0, 1.0], 2, [0, 0]) == (2, 2)
    rng = np.random.default_rng(0)
    for _ in range(200):
        numbers = allocate(rng.exponential(size=7) ** 3, 700, [0] * 7)
        assert 700 <= sum(numbers) < 707
        assert min(numbers) >= 50


def test_the_allocation_has_the_smallest_error() -> None:
    numbers = np.array(allocate(SPREADS, 70, [0] * 4))
    error = (SPREADS**2 / numbers).sum()
    for other in (np.full(4, 17.5), SPREADS**2 / (SPREADS**2).sum() * 70, numbers + np.array([2, 0, 0, -2])):
        assert (SPREADS**2 / other).sum() > error


def test_noise_is_shrunken_as_far_as_chance_explains_its_differences() -> None:
    """Tasks of equal noise get about equal numbers, also after few subsamples; different noise stays different."""
    rng = np.random.default_rng(0)
    raw, shrunken, quiet = [], [], []
    for _ in range(500):
        estimates = rng.normal(size=(6, 5)).var(axis=1, ddof=1)
        raw.append(estimates.max() / estimates.min())
        shrunken.append(np.ptp(shrink_variances(estimates, [4] * 6)))
        different = (rng.normal(size=(4, 40)) * SPREADS[:, None]).var(axis=1, ddof=1)
        quiet.append(shrink_variances(different, [39] * 4))
    assert np.median(raw) > 6
    assert np.median(shrunken) < 0.1
    assert np.sqrt(np.median(quiet, axis=0)) == pytest.approx(SPREADS, rel=0.25)
    assert not shrink_variances([0.0, 0.0], [4, 4]).any()


@pytest.mark.parametrize(
    ("spreads", "pilot", "most"),
    [(np.ones(4), 3, 1.01), (np.ones(4), 10, 1.01), (SPREADS, 5, 0.78), (SPREADS, 10, 0.7)],
)
def test_numbers_from_a_small_pilot_cost_little_and_save_much(spreads: Any, pilot: int, most: float) -> None:
    """The squared error for the same trials, relative to equal numbers; 0.645 is possible for different tasks."""
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(1000):
        variances = (rng.normal(size=(4, pilot)) * spreads[:, None]).var(axis=1, ddof=1)
        numbers = allocate(np.sqrt(shrink_variances(variances, [pilot - 1] * 4)), 8000, [0] * 4)
        errors.append((spreads**2 / numbers).sum() / (spreads**2 / 2000).sum())
    assert np.mean(errors) < most


@pytest.mark.slow
def test_the_allocation_reaches_the_power_with_fewer_trials() -> None:
    method, measured = measure(simulate(SPREADS, 40))
    plan = plan_allocation(measured, method.noise, TARGET, CRITERION)
    assert plan is not None
    assert plan.trials < 0.75 * plan.equal_trials
    assert plan.by_task[3] > 2 * max(plan.by_task[:3])
    rng = np.random.default_rng(1)

    def detected(numbers: tuple[int, ...], repeats: int = 2000) -> float:
        tasks = [
            TARGET + SCALE * spread * rng.normal(size=(repeats, number))
            for spread, number in zip(SPREADS, numbers, strict=True)
        ]
        biases = (Bias([task[each].tolist() for task in tasks], Region(0.005)) for each in range(repeats))
        return float(np.mean([bias.estimate(0.05).excludes_zero for bias in biases]))

    assert detected(plan.by_task) == pytest.approx(0.8, abs=0.06)  # the noise was measured, with an error
    assert detected(plan.equal) == pytest.approx(0.8, abs=0.06)
    fewer = allocate([1.0] * 4, plan.trials, [0] * 4)
    assert detected(fewer) < 0.72, "equal numbers need more trials"


@pytest.mark.slow
@pytest.mark.parametrize("spreads", [SPREADS, np.ones(4)], ids=["different", "equal"])
@pytest.mark.parametrize("pilot", [5, 20])
def test_intervals_keep_their_coverage_if_numbers_depend_on_a_pilot(spreads: Any, pilot: int) -> None:
    """The subsamples of the pilot are part of the results, as in a run that grows."""
    rng = np.random.default_rng(pilot)
    covers = []
    for _ in range(2000):
        first = rng.normal(size=(4, pilot)) * spreads[:, None]
        variances = shrink_variances(first.var(axis=1, ddof=1), [pilot - 1] * 4)
        numbers = allocate(np.sqrt(variances), 8 * pilot, [pilot] * 4)
        tasks = [
            [*known, *(spread * rng.normal(size=number - pilot))]
            for known, spread, number in zip(first.tolist(), spreads, numbers, strict=True)
        ]
        estimate = Bias(tasks, Region(0.005)).estimate(0.05)
        covers.append(estimate.low <= 0 <= estimate.high)
    assert 0.93 <= np.mean(covers) <= 0.97


def test_the_report_lists_the_numbers_of_each_task() -> None:
    analysis = analyze(simulate(SPREADS, 20), target_bias=TARGET)
    titles = [table.title for table in analysis.tables]
    (total,) = table_rows(analysis.tables[titles.index(next(title for title in titles if title.startswith("Trials")))])
    rows = table_rows(analysis.tables[-1])
    assert analysis.tables[-1].title == "Subsamples of each task that detect a bias of 0.005"
    assert [row["task"] for row in rows] == ["task0", "task1", "task2", "task3"]
    assert sum(row["num_subsamples"] for row in rows) == total["trials, by noise"] < total["trials, equal"]
    assert total["saved"] == pytest.approx(1 - total["trials, by noise"] / total["trials, equal"])
    assert [row["now"] for row in rows] == [20] * 4
    assert min(row["num_subsamples"] for row in rows) >= 20
    even = analyze(simulate(np.ones(4), 20), target_bias=TARGET)
    assert not any(table.title.startswith("Subsamples of each task") for table in even.tables)
    single = analyze(simulate([1.0], 20), target_bias=TARGET)
    assert not any(table.title.startswith("Trials that") for table in single.tables)
