"""Verdicts on tables whose tasks share draws, and what analyses state about them."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from analysis_tables import find_rows, find_table, run_analysis
from scipy.stats import t
from typer.testing import CliRunner

from peekbench.cli.app import app
from peekbench.results import tidy
from peekbench_stats import independent_units
from peekbench_summary.biased_rule import Bias, Region
from peekbench_summary.families import judge_family

TASKS, SEEDS = 5, 20


def make_table(correlation: float, *, bias: float = 0.02, seeds: int = SEEDS, seed: int = 0) -> pd.DataFrame:
    """Return scores whose differences have a correlation between tasks, with a seed for all tasks."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=seeds)
    own = rng.normal(size=(TASKS, seeds))
    noise = 0.02 * (np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own)
    extra = 0.7 + rng.normal(0, 0.02, size=(TASKS, seeds))
    rows = [
        (f"task{task}", number, 100_000, extra[task, number], extra[task, number] + bias + noise[task, number])
        for task in range(TASKS)
        for number in range(seeds)
    ]
    table = pd.DataFrame(rows, columns=["task", "seed", "num_test", "extra", "test"])
    return table.assign(extra=table["extra"].round(5), test=table["test"].round(5))


def by_seed(table: pd.DataFrame) -> pd.Series[float]:
    return (table["test"] - table["extra"]).groupby(table["seed"]).mean()


tidied = partial(tidy, origin="simulated")


def test_the_interval_is_that_of_the_averages_of_seeds_over_tasks() -> None:
    table = make_table(0.5)
    (verdict,) = run_analysis("summary", tidied(table)).verdicts
    averages = by_seed(table)
    assert verdict.estimate.mean == pytest.approx(averages.mean())
    assert verdict.estimate.standard_error == pytest.approx(averages.sem())
    (alone,) = run_analysis("summary", tidied(table, independent_tasks=True)).verdicts
    assert alone.estimate.mean == pytest.approx(verdict.estimate.mean)
    assert alone.estimate.standard_error < 0.75 * verdict.estimate.standard_error
    rows = find_rows(run_analysis("summary", tidied(table)), "Boost and bias over these tasks")
    assert rows[0]["se"] == pytest.approx(averages.sem())


@pytest.mark.simulation
def test_shared_seeds_rarely_give_wrong_verdicts() -> None:
    rng = np.random.default_rng(0)
    wrong: list[bool] = []
    wrong_as_run: list[bool] = []
    for _ in range(200):
        tasks = (0.014 * rng.normal(size=SEEDS) + 0.014 * rng.normal(size=(TASKS, SEEDS))).tolist()
        (shared,) = independent_units(tasks, [range(SEEDS)] * TASKS, shares_draws=True)
        for found, units in ((wrong, shared), (wrong_as_run, ())):
            ((verdict, _),) = judge_family([Bias(tasks, Region(0.005), shared=units)], 0.95)
            found.append(verdict.decision.startswith("biased"))
    assert np.mean(wrong) < 0.09
    assert np.mean(wrong_as_run) > 0.15


def test_other_tasks_have_the_covariance_of_shared_seeds() -> None:
    table = make_table(0.5)
    (row,) = find_rows(run_analysis("summary", tidied(table)), "Boost and bias over these tasks")
    differences = (table["test"] - table["extra"]).to_numpy().reshape(TASKS, SEEDS)
    between = differences.mean(axis=1).var(ddof=1) / TASKS
    covariances = np.cov(differences)[np.triu_indices(TASKS, 1)]
    half = t.ppf(0.975, TASKS - 1) * np.sqrt(between + covariances.mean() / SEEDS)
    assert row["other tasks, high"] == pytest.approx(differences.mean() + half)
    (other,) = find_rows(run_analysis("summary", tidied(table)), "Would other tasks like these")
    assert other["p, sign flips"] is None
    assert 0 < other["p, paired t test"] < 0.05


def test_permutations_flip_a_seed_in_all_tasks() -> None:
    table = make_table(0.9)
    table["test"] = (table["test"] - by_seed(table).mean() + 0.007).round(5)
    shared, alone = (
        find_rows(run_analysis("permutation", tidied(table, independent_tasks=independent)), "Permutation tests over")
        for independent in (False, True)
    )
    assert shared[0]["p, these tasks"] > 3 * alone[0]["p, these tasks"]
    assert shared[0]["p, paired t over tasks"] is None
    assert alone[0]["p, paired t over tasks"] is not None


def test_power_counts_shared_seeds_once() -> None:
    table = make_table(0.5)
    shared, alone = (
        find_rows(run_analysis("power", tidied(table, independent_tasks=independent)), "Subsamples until")
        for independent in (False, True)
    )
    (verdict,) = run_analysis("summary", tidied(table)).verdicts
    assert shared[0]["detectable"] > 1.3 * alone[0]["detectable"]
    assert shared[0]["detectable"] == pytest.approx(3 * verdict.estimate.standard_error, rel=0.1)


def describe(*arguments: str) -> str:
    """Return what `peekbench analyze` prints, as one line."""
    done = CliRunner().invoke(app, ["analyze", *arguments, "--analysis", "summary"])
    assert done.exit_code == 0, done.output
    return re.sub(r"\s+", " ", done.output)


def test_reports_name_the_unit_and_the_option() -> None:
    make_table(0.5).to_csv("scores.csv", index=False)
    text = describe("scores.csv", "--full")
    assert "the 20 subsamples (draws of rows, or seeds), each averaged over tasks, are independent samples" in text
    assert "--independent-tasks (in Python, independent_tasks=True)" in text
    alone = describe("scores.csv", "--full", "--independent-tasks")
    assert "the 100 pairs of scores" in alone and "taken as one draw" not in alone
    assert "taken as one draw" in find_table(run_analysis("summary", tidied(make_table(0.5))), "Leaderboard").note
