"""Draws that tasks of a table share: which tables have them, and the units of their averages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from peekbench import load_results
from peekbench.errors import ResultsError
from peekbench.execution.runner import run
from peekbench.results import configurations, tidy
from peekbench_stats import SharedDraws, independent_units


def make_table(tasks: tuple[str, ...] = ("a", "b"), seeds: int = 4) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [(task, seed, 200, *rng.binomial(200, 0.7, 2) / 200) for task in tasks for seed in range(seeds)]
    return pd.DataFrame(rows, columns=["task", "seed", "num_test", "extra", "test"])


def shares_draws(results: pd.DataFrame) -> bool:
    (configuration,) = configurations(results).configurations
    return configuration.shares_draws


def test_tables_with_the_same_numbers_in_several_tasks_share_draws() -> None:
    table = make_table()
    assert shares_draws(tidy(table, "here"))
    assert not shares_draws(tidy(table, "here", independent_tasks=True))
    assert not shares_draws(tidy(table.assign(independent_tasks="yes"), "here"))
    assert not shares_draws(tidy(table.assign(seed=range(len(table))), "here")), "numbers differ between tasks"
    assert not shares_draws(tidy(table[table["task"] == "a"], "here"))
    assert not shares_draws(tidy(table.drop(columns="seed"), "here")), "unnumbered rows of tasks are not paired"
    partly = table.assign(independent_tasks=["yes", ""] * 4)
    assert shares_draws(tidy(partly, "here"))
    with pytest.raises(ResultsError, match=r"row 1, column 'independent_tasks': maybe is neither 'yes' nor empty"):
        tidy(table.assign(independent_tasks="maybe"), "here")


def test_runs_and_their_exported_tables_have_independent_tasks(make_spec: Callable[..., Any]) -> None:
    results = load_results(run(make_spec(methods=["toy.vote"])).store)
    assert not shares_draws(results)
    results.to_csv("scores.csv", index=False)
    assert not shares_draws(load_results("scores.csv"))
    results.drop(columns="independent_tasks").to_csv("anonymous.csv", index=False)
    assert shares_draws(load_results("anonymous.csv"))


def test_units_have_the_mean_of_task_means_and_its_variance() -> None:
    rng = np.random.default_rng(1)
    numbers = [list(range(20)), list(range(12)), [*range(4, 20)]]
    true_error, estimates, means = [], [], []
    for _ in range(4000):
        common = rng.normal(size=20)
        tasks = [(common[row] + (task + 1) * rng.normal(size=len(row))).tolist() for task, row in enumerate(numbers)]
        (units,) = independent_units(tasks, numbers, shares_draws=True)
        means.append(np.mean(units) - np.mean([np.mean(task) for task in tasks]))
        true_error.append(np.mean(units))
        estimates.append(np.var(units, ddof=1) / len(units))
    assert np.abs(means).max() < 1e-12
    assert np.mean(estimates) == pytest.approx(np.var(true_error), rel=0.1)
    ((unit,),) = independent_units([[0.1], [0.1, 0.3]], [[0], [0, 1]], shares_draws=True)
    assert unit == pytest.approx(0.15)


@pytest.mark.parametrize("sizes", [(20, 20), (20, 5, 20, 5)])
def test_intervals_of_uneven_tables_cover_as_often_as_stated(sizes: tuple[int, ...]) -> None:
    """As many degrees of freedom as subsamples would cover 90% if half of the tasks have a quarter of these."""
    rng = np.random.default_rng(3)
    covered, degrees = [], set()
    for _ in range(600):
        common = rng.normal(size=20)
        tasks = [(common[:size] + rng.normal(size=size)).tolist() for size in sizes]
        (units,) = independent_units(tasks, [range(size) for size in sizes], shares_draws=True)
        assert isinstance(units, SharedDraws)
        half = t.ppf(0.975, units.degrees) * np.std(units, ddof=1) / np.sqrt(20)
        covered.append(abs(np.mean(units)) <= half)
        degrees.add(units.degrees)
    assert (degrees == {19}) == (len(set(sizes)) == 1)
    assert np.mean(covered) == pytest.approx(0.95, abs=0.022)
