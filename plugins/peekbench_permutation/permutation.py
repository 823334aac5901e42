"""Sign-flip tests of the bias of each task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control, permutation_test

from peekbench import Analysis, Column, Table
from peekbench.errors import SpecError
from peekbench.formatting import difference_unit
from peekbench.records import Cell, FloatArray
from peekbench.results import Configurations, configurations
from peekbench_permutation import Permutation
from peekbench_stats import sign_flip_test_of_counts, t_test

BATCH_SIZE = 512  # resamples
TOLERANCE = 1e-9
MAX_EXACT_SUM = 10**7  # sum of differences in texts, which bounds the memory of the exact test

OVERVIEW_COLUMNS = (
    Column("tasks", "count"),
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
class TaskTest:
    """The test of one task in one configuration."""

    task: str
    mean: float
    two_sided: float
    greater: float
    """p-value against the alternative that test scores above extra (section 8 of arXiv 2410.00179)."""


def analyze_permutations(results: pd.DataFrame, *, options: Permutation) -> Analysis:
    """Test the bias of every task, adjust the p-values over tasks, and add a paired t test over tasks.

    The adjustment is that of Benjamini and Hochberg (1995), https://doi.org/10.1111/j.2517-6161.1995.tb02031.x.

    Parameters
    ----------
    results
        The results table.
    options
        Quantity to test, number of resamples, seed and false discovery rate.

    Returns
    -------
    Analysis
        A table with one row per configuration, and a table with one row per task and configuration.

    Raises
    ------
    SpecError
        If log losses are to be tested and some are missing.
    """
    tests_log_loss = options.measure == "log_loss"
    paired = configurations(_replace_score_by_log_loss(results) if tests_log_loss else results)
    overview: list[tuple[Cell, ...]] = []
    by_task: list[tuple[Cell, ...]] = []
    for configuration in paired.configurations:
        num_test = configuration.num_test if paired.is_accuracy else None
        tests = _test_tasks(configuration.scores["bias"], num_test, options)
        two_sided = adjust([test.two_sided for test in tests])
        greater = adjust([test.greater for test in tests])
        nonzero = [test.mean for test, p in zip(tests, two_sided, strict=True) if p <= options.level]
        num_up = sum(mean > 0 for mean in nonzero)
        means = [test.mean for test in tests]
        t_tests = (t_test(means), t_test(means, alternative="greater"))
        overview.append((*configuration.cells, len(tests), num_up, len(nonzero) - num_up, *t_tests))
        for test, p_two_sided, p_greater in zip(tests, two_sided, greater, strict=True):
            p_values = (test.two_sided, p_two_sided, test.greater, p_greater)
            by_task.append((test.task, *configuration.cells, test.mean, *p_values))
    measure = " in negative log loss" if tests_log_loss else ""
    tables = (_overview_table(paired, overview, measure, options), _task_table(paired, by_task, measure, options))
    return Analysis("permutation", tables)


def _overview_table(
    paired: Configurations, rows: Sequence[tuple[Cell, ...]], measure: str, options: Permutation
) -> Table:
    return Table(
        f"Tasks whose bias{measure} differs from zero, false discovery rate {options.level:g}",
        (*paired.columns, *OVERVIEW_COLUMNS),
        tuple(rows),
        "up, down: number of tasks whose bias the two-sided permutation test distinguishes from zero, after "
        "Benjamini-Hochberg adjustment over the tasks. The paired t test treats the tasks as a sample and tests "
        "whether other tasks like these have a bias on average.",
    )


def _task_table(paired: Configurations, rows: Sequence[tuple[Cell, ...]], measure: str, options: Permutation) -> Table:
    unit = difference_unit(paired.is_accuracy)
    return Table(
        f"Permutation tests of the bias{measure} by task",
        (Column("task"), *paired.columns, Column("bias", unit), *TEST_COLUMNS),
        tuple(rows),
        "The tests flip the signs of test - extra within subsamples: exactly for accuracies, which count texts, and "
        f"{options.num_resamples:,} times at random for other scores. Adjusted: Benjamini-Hochberg over the tasks of "
        "the row's method.",
    )


def _replace_score_by_log_loss(results: pd.DataFrame) -> pd.DataFrame:
    """Return the results with the negative log loss as score, so that higher is better."""
    num_missing = int(results["log_loss"].isna().sum())
    if num_missing:
        raise SpecError(
            f"analysis permutation, option measure: log_loss is missing in {num_missing:,} of {len(results):,} rows; "
            "add it, or use 'score'"
        )
    return results.assign(score=-results["log_loss"], num_correct=None)


def _test_tasks(biases: Mapping[str, Sequence[float]], num_test: int | None, options: Permutation) -> list[TaskTest]:
    return [
        TaskTest(task, float(np.mean(values)), *compute_p_values(np.array(values), num_test, options))
        for task, values in biases.items()
    ]


def compute_p_values(differences: FloatArray, num_test: int | None, options: Permutation) -> tuple[float, float]:
    """Return the two-sided and the one-sided (mean > 0) p-value of a sign-flip test.

    The test is exact if the differences are whole numbers of test texts, unless their sum is very large.

    Parameters
    ----------
    differences
        Differences of scores, shape (n_subsamples,).
    num_test
        Number of test texts of each subsample; None if it is unknown or scores are not accuracies.
    options
        Number of resamples and seed, for differences that are not whole numbers of texts.
    """
    if num_test is not None:
        in_texts = differences * num_test
        whole = np.rint(in_texts).astype(np.int64)
        if np.abs(in_texts - whole).max() < TOLERANCE and np.abs(whole).sum(dtype="float64") <= MAX_EXACT_SUM:
            return sign_flip_test_of_counts(whole)
    return _resample(differences, options)


def _resample(differences: FloatArray, options: Permutation) -> tuple[float, float]:
    """Enumerate all sign flips, or draw random ones and count the data as one more."""
    if len(differences) < 2:  # for which scipy has no test
        return 1.0, 0.5 if differences[0] > 0 else 1.0
    null_distribution = permutation_test(
        (differences,),
        lambda values, axis: values.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=options.num_resamples,
        batch=BATCH_SIZE,
        rng=np.random.default_rng(options.seed),
    ).null_distribution
    observed = differences.mean()
    tolerance = TOLERANCE * np.abs(differences).max()  # relative to the values, because the mean may be near zero
    added = 0 if 2 ** len(differences) <= options.num_resamples else 1
    greater, less = (
        (np.count_nonzero(tail) + added) / (len(null_distribution) + added)
        for tail in (null_distribution >= observed - tolerance, null_distribution <= observed + tolerance)
    )
    return min(1.0, 2 * greater, 2 * less), greater


def adjust(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for the false discovery rate (Benjamini-Hochberg), in the order given."""
    adjusted: list[float] = false_discovery_control(p_values, method="bh").tolist()
    return adjusted
