"""Is a task's bias more than chance? Sign flips of the paired differences say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peekbench import Analysis, Cell, Column, Table, Unit, configurations

if TYPE_CHECKING:
    import pandas as pd

    from peekbench import FloatArray
    from peekbench_permutation import Permutation

BATCH = 512  # resamples at a time: a few dozen MB for 25 tasks of 100 subsamples

OVERVIEW = (
    Column("tasks", "count"),
    Column("up", "count"),
    Column("down", "count"),
    Column("t over tasks", "number"),
    Column("p", "p_value"),
    Column("p, test > extra", "p_value"),
)
TESTS = (
    Column("p", "p_value"),
    Column("p adjusted", "p_value"),
    Column("p, test > extra", "p_value"),
    Column("p adjusted, test > extra", "p_value"),
)


@dataclass(frozen=True, slots=True)
class TaskTest:
    """The test of one task in one configuration."""

    task: str
    mean: float
    two_sided: float
    greater: float
    """Against the alternative that test scores above extra (the study's section 8, arXiv 2410.00179)."""


def test_tasks(results: pd.DataFrame, *, options: Permutation) -> Analysis:
    """Test every task, adjust over the tasks of a configuration, and set a paired t over tasks beside it.

    The adjustment is that of Benjamini and Hochberg (1995), https://doi.org/10.1111/j.2517-6161.1995.tb02031.x.
    """
    found = configurations(results)
    unit: Unit = "difference" if found.is_accuracy else "number"
    overview: list[tuple[Cell, ...]] = []
    by_task: list[tuple[Cell, ...]] = []
    for one in found.each:
        tests = _test_configuration(one.scores["bias"], options)
        two_sided = adjust([test.two_sided for test in tests])
        greater = adjust([test.greater for test in tests])
        nonzero = [test.mean for test, p in zip(tests, two_sided, strict=True) if p <= options.level]
        up = sum(mean > 0 for mean in nonzero)
        t_test = _t_over_tasks([test.mean for test in tests])
        overview.append((*one.cells, len(tests), up, len(nonzero) - up, *t_test))
        for test, *adjusted in zip(tests, two_sided, greater, strict=True):
            by_task.append((test.task, *one.cells, test.mean, test.two_sided, adjusted[0], test.greater, adjusted[1]))
    return Analysis(
        "permutation",
        tables=(
            Table(
                f"Tasks whose bias differs from zero, false discovery rate {options.level:g}",
                (*found.columns, *OVERVIEW),
                tuple(overview),
                "up, down: tasks that the two-sided permutation test tells from zero after Benjamini-Hochberg over the "
                "tasks. The paired t over tasks asks whether other tasks like these would show a bias on average.",
            ),
            Table(
                "Permutation tests of the bias by task",
                (Column("task"), *found.columns, Column("bias", unit), *TESTS),
                tuple(by_task),
                f"Sign flips of test - extra within subsamples: all of them, or {options.num_resamples:,} at random "
                "where there are more. Adjusted: Benjamini-Hochberg over the tasks of a configuration.",
            ),
        ),
    )


def _test_configuration(tasks: Mapping[str, Sequence[float]], options: Permutation) -> list[TaskTest]:
    import numpy as np

    found: dict[str, TaskTest] = {}
    for size in sorted({len(values) for values in tasks.values()}):
        names = [task for task, values in tasks.items() if len(values) == size]
        stacked = np.array([tasks[task] for task in names])
        for task, values, two_sided, greater in zip(names, stacked, *p_values(stacked, options), strict=True):
            found[task] = TaskTest(task, float(values.mean()), float(two_sided), float(greater))
    return [found[task] for task in tasks]


def p_values(differences: FloatArray, options: Permutation) -> tuple[FloatArray, FloatArray]:
    """Two-sided and one-sided (mean > 0) p-values of sign-flip tests.

    Parameters
    ----------
    differences
        Shape (n_tasks, n_subsamples). All tasks are tested with the same flips.
    """
    import numpy as np
    from scipy.stats import permutation_test

    ones = np.ones(len(differences))
    if differences.shape[1] < 2:
        return ones, np.where(differences[:, 0] > 0, 0.5, 1.0)
    tested = permutation_test(
        (differences,),
        lambda values, axis: values.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=options.num_resamples,
        batch=BATCH,
        alternative="two-sided",
        axis=-1,
        rng=np.random.default_rng(options.seed),
    )
    null = tested.null_distribution  # (n_resamples, n_tasks)
    # As scipy does: ties within rounding count as ties, and a random test counts the data as one more resample.
    observed = differences.mean(axis=-1)
    slack = np.abs(observed) * 1e-14 + 1e-15
    added = 0 if 2 ** differences.shape[1] <= options.num_resamples else 1
    greater = ((null >= observed - slack).sum(axis=0) + added) / (len(null) + added)
    return np.minimum(tested.pvalue, 1.0), greater


def adjust(p: Sequence[float]) -> list[float]:
    """Benjamini-Hochberg adjusted p-values."""
    from scipy.stats import false_discovery_control

    adjusted: list[float] = false_discovery_control(p, method="bh").tolist()
    return adjusted


def _t_over_tasks(means: Sequence[float]) -> tuple[Cell, ...]:
    """t statistic, two-sided and one-sided p of the task means against zero; nothing where they do not differ."""
    from scipy.stats import ttest_1samp

    if len(means) < 2 or len(set(means)) == 1:
        return (None, None, None)
    tested = ttest_1samp(means, 0)
    return float(tested.statistic), float(tested.pvalue), float(ttest_1samp(means, 0, alternative="greater").pvalue)
