"""Is a task's bias more than chance? Sign flips of the paired differences say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peekbench import Analysis, Column, Table
from peekbench.errors import SpecError
from peekbench.records import Cell, Unit
from peekbench.results import configurations

if TYPE_CHECKING:
    import pandas as pd

    from peekbench.records import FloatArray, IntArray
    from peekbench_permutation import Permutation

BATCH = 512  # resamples at a time
ROUNDING = 1e-9

OVERVIEW = (
    Column("tasks", "count"),
    Column("up", "count"),
    Column("down", "count"),
    Column("p, paired t over tasks", "p_value"),
    Column("p, paired t, test > extra", "p_value"),
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

    Raises
    ------
    SpecError
        Where log losses are to be tested and are missing.
    """
    of_log_loss = options.measure == "log_loss"
    found = configurations(_with_log_loss(results) if of_log_loss else results)
    measure = " in minus log loss" if of_log_loss else ""
    unit: Unit = "difference" if found.is_accuracy else "change"
    overview: list[tuple[Cell, ...]] = []
    by_task: list[tuple[Cell, ...]] = []
    for one in found.configurations:
        tests = _test_configuration(one.scores["bias"], one.num_test if found.is_accuracy else None, options)
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
                f"Tasks whose bias{measure} differs from zero, false discovery rate {options.level:g}",
                (*found.columns, *OVERVIEW),
                tuple(overview),
                "up, down: tasks that the two-sided permutation test tells from zero after Benjamini-Hochberg over the "
                "tasks, each by itself. The paired t over task means takes these tasks for a sample and asks whether "
                "others like these have a bias on average.",
            ),
            Table(
                f"Permutation tests of the bias{measure} by task",
                (Column("task"), *found.columns, Column("bias", unit), *TESTS),
                tuple(by_task),
                "Signs of test - extra are flipped within subsamples: exactly for accuracies, which count texts, else "
                f"{options.num_resamples:,} times at random. Adjusted: Benjamini-Hochberg over the tasks of a row's "
                "method.",
            ),
        ),
    )


def _with_log_loss(results: pd.DataFrame) -> pd.DataFrame:
    """The same table, its scores minus the log loss, so that more is better."""
    missing = int(results["log_loss"].isna().sum())
    if missing:
        raise SpecError(
            f"analysis permutation, option measure: log_loss is missing in {missing:,} of {len(results):,} rows; add "
            "it, or use 'score'"
        )
    return results.assign(score=-results["log_loss"], num_correct=None)


def _test_configuration(
    tasks: Mapping[str, Sequence[float]], num_test: int | None, options: Permutation
) -> list[TaskTest]:
    import numpy as np

    return [
        TaskTest(task, float(np.mean(values)), *p_values(np.array(values), num_test, options))
        for task, values in tasks.items()
    ]


def p_values(differences: FloatArray, num_test: int | None, options: Permutation) -> tuple[float, float]:
    """Two-sided and one-sided (mean > 0) p-values of a sign-flip test.

    Exact where the differences are whole numbers of test texts: the distribution of their sum under random signs is the
    convolution of as many two-point distributions.

    Parameters
    ----------
    differences
        Of the scores, shape (n_subsamples,).
    num_test
        Test texts of each subsample, where scores are accuracies and it is known.
    """
    import numpy as np

    if num_test is not None:
        in_texts = differences * num_test
        whole = np.rint(in_texts).astype(np.int64)
        if np.abs(in_texts - whole).max() < ROUNDING:
            return _exact(whole)
    return _by_resampling(differences, options)


def _exact(differences: IntArray) -> tuple[float, float]:
    import numpy as np

    most = int(np.abs(differences).sum())
    chances = np.zeros(2 * most + 1)  # of the sums -most, ..., most
    chances[most] = 1.0
    for size in np.abs(differences[differences != 0]).tolist():
        chances = (np.roll(chances, size) + np.roll(chances, -size)) / 2  # what is rolled over the ends is zero
    observed = most + int(differences.sum())
    greater, less = float(chances[observed:].sum()), float(chances[: observed + 1].sum())
    return min(1.0, 2 * greater, 2 * less), min(1.0, greater)


def _by_resampling(differences: FloatArray, options: Permutation) -> tuple[float, float]:
    """With all sign flips, or so many at random, to which the data are added as one more."""
    import numpy as np
    from scipy.stats import permutation_test

    if len(differences) < 2:  # for which scipy has no test
        return 1.0, 0.5 if differences[0] > 0 else 1.0
    tested = permutation_test(
        (differences,),
        lambda values, axis: values.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=options.num_resamples,
        batch=BATCH,
        rng=np.random.default_rng(options.seed),
    )
    null = tested.null_distribution
    observed = differences.mean()
    slack = ROUNDING * np.abs(differences).max()  # ties within rounding are ties, for a mean near zero too
    added = 0 if 2 ** len(differences) <= options.num_resamples else 1
    greater, less = (
        (np.count_nonzero(tail) + added) / (len(null) + added)
        for tail in (null >= observed - slack, null <= observed + slack)
    )
    return min(1.0, 2 * greater, 2 * less), greater


def adjust(p: Sequence[float]) -> list[float]:
    """Benjamini-Hochberg adjusted p-values."""
    from scipy.stats import false_discovery_control

    adjusted: list[float] = false_discovery_control(p, method="bh").tolist()
    return adjusted


def _t_over_tasks(means: Sequence[float]) -> tuple[Cell, Cell]:
    """Two-sided and one-sided p of the task means against zero; nothing where they do not differ."""
    from scipy.stats import ttest_1samp

    if len(means) < 2 or max(means) - min(means) < ROUNDING:
        return (None, None)
    return float(ttest_1samp(means, 0).pvalue), float(ttest_1samp(means, 0, alternative="greater").pvalue)
