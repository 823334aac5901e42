"""Sign-flip tests of the bias over these tasks and of each task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control

from peekbench import Analysis, Column, Table
from peekbench.records import Cell
from peekbench.results import Configuration, Configurations, configurations, find_score
from peekbench_permutation import Permutation
from peekbench_stats import (
    SignFlips,
    find_families,
    hierarchical_rejections,
    resolve_score,
    select_score,
    sign_flip_test,
    stratified_sign_flip_test,
    t_test,
    units_of,
)

OVERVIEW_COLUMNS = (
    Column("tasks", "count"),
    Column("trials", "count"),
    Column("p, these tasks", "p_value"),
    Column("adjusted p, these tasks", "p_value"),
    Column("p, these tasks, test > extra", "p_value"),
    Column("up", "count"),
    Column("down", "count"),
    Column("p, paired t over tasks", "p_value"),
    Column("p, paired t over tasks, test > extra", "p_value"),
)
TEST_COLUMNS = (
    Column("p", "p_value"),
    Column("adjusted p", "p_value"),
    Column("p, test > extra", "p_value"),
    Column("adjusted p, test > extra", "p_value"),
)


@dataclass(frozen=True, slots=True)
class Tests:
    """The sign-flip tests of one configuration."""

    configuration: Configuration
    these_tasks: SignFlips
    by_task: Sequence[SignFlips]
    means: Sequence[float]
    """Mean bias of each task."""

    @classmethod
    def of(cls, configuration: Configuration) -> Tests:
        """Test the bias of a configuration."""
        tasks = list(configuration.scores["bias"].values())
        means = [float(np.mean(task)) for task in tasks]
        units = units_of(configuration, configuration.scores["bias"])
        return cls(configuration, stratified_sign_flip_test(units), [sign_flip_test(task) for task in tasks], means)


def analyze_permutations(results: pd.DataFrame, *, options: Permutation) -> Analysis:
    """Test the average bias over these tasks and the bias of every task; adjust for several tests.

    Within a configuration, p-values of tasks are adjusted after Benjamini and Hochberg (1995),
    https://doi.org/10.1111/j.2517-6161.1995.tb02031.x. Over configurations, tasks are tested hierarchically; see
    `peekbench_stats.hierarchical_rejections`.

    Parameters
    ----------
    results
        The results table.
    options
        Score to test, false discovery rate, and the configurations that form a family.

    Returns
    -------
    Analysis
        A table with one row per configuration, and a table with one row per task and configuration.

    Raises
    ------
    SpecError
        If the results lack the score.
    """
    options = options.model_copy(update={"score": resolve_score(results, options.score)})
    paired = configurations(select_score(results, options.score, "permutation"))
    tests = [Tests.of(configuration) for configuration in paired.configurations]
    measure = "" if options.score == "score" else f" in {find_score(options.score).title}"
    return Analysis(
        "permutation", (_overview_table(paired, tests, measure, options), _task_table(paired, tests, measure))
    )


def _overview_table(paired: Configurations, tests: Sequence[Tests], measure: str, options: Permutation) -> Table:
    rows: dict[int, tuple[Cell, ...]] = {}
    for members in find_families(paired.configurations, options.family):
        family = [tests[member] for member in members]
        adjusted = adjust([test.these_tasks.two_sided for test in family])
        rejections = hierarchical_rejections(
            [[task.two_sided for task in test.by_task] for test in family], options.level
        )
        for member, test, adjusted_p, rejected in zip(members, family, adjusted, rejections, strict=True):
            nonzero = [mean for mean, is_rejected in zip(test.means, rejected, strict=True) if is_rejected]
            num_up = sum(mean > 0 for mean in nonzero)
            num_trials = sum(map(len, test.configuration.scores["bias"].values()))
            p_values = (test.these_tasks.two_sided, adjusted_p, test.these_tasks.greater)
            t_tests: tuple[float | None, float | None] = (None, None)
            if not test.configuration.shares_draws:
                t_tests = (t_test(test.means), t_test(test.means, alternative="greater"))
            counts = (num_up, len(nonzero) - num_up)
            cells = (*test.configuration.cells, len(test.means), num_trials, *p_values, *counts, *t_tests)
            rows[member] = cells
    return Table(
        f"Permutation tests over these tasks{measure}",
        (*paired.columns, *OVERVIEW_COLUMNS),
        tuple(row for _, row in sorted(rows.items())),
        "p, these tasks: exact sign flips of all trials; adjusted over the configurations (Benjamini-Hochberg). "
        "up, down: number of tasks whose own bias the two-sided permutation test distinguishes from zero at a false "
        f"discovery rate of {options.level:g}, adjusted over the tasks and configurations. The paired t test treats "
        "the tasks as a sample and tests whether other tasks like these have a bias on average. If tasks share draws, "
        "the signs of a subsample are flipped together in all of them, and only the analysis summary has a t test.",
    )


def _task_table(paired: Configurations, tests: Sequence[Tests], measure: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for test in tests:
        two_sided = adjust([task.two_sided for task in test.by_task])
        greater = adjust([task.greater for task in test.by_task])
        names = test.configuration.scores["bias"]
        for name, mean, task, *adjusted in zip(names, test.means, test.by_task, two_sided, greater, strict=True):
            p_values = (task.two_sided, adjusted[0], task.greater, adjusted[1])
            rows.append((name, *test.configuration.cells, mean, *p_values))
    return Table(
        f"Permutation tests of the bias{measure} by task",
        (Column("task"), *paired.columns, Column("bias", paired.units.difference), *TEST_COLUMNS),
        tuple(rows),
        "The tests flip the signs of test - extra within subsamples. With k differences that are not zero, p cannot "
        "be smaller than 2^(1 - k). Adjusted: Benjamini-Hochberg over the tasks of the row's method.",
    )


def adjust(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for the false discovery rate (Benjamini-Hochberg), in the order given."""
    adjusted: list[float] = false_discovery_control(p_values, method="bh").tolist()
    return adjusted
