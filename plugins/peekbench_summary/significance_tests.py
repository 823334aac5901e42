"""Significance tests beside a verdict: t tests of each task, and the agreement of tests over tasks."""

from __future__ import annotations

from collections.abc import Sequence

from scipy.stats import false_discovery_control

from peekbench import Verdict
from peekbench_stats import t_test
from peekbench_summary.estimates import task_means

TOLERANCE = 1e-9


def count_biased_tasks(tasks: Sequence[Sequence[float]], level: float) -> tuple[int, int]:
    """Return the numbers of tasks whose own bias is significantly positive and significantly negative.

    Each task has a t test. The tests are adjusted to a false discovery rate of 1 - level over the tasks after Benjamini
    and Hochberg (1995), https://doi.org/10.1111/j.2517-6161.1995.tb02031.x.

    Parameters
    ----------
    tasks
        Bias of each subsample, one sequence of at least two per task.
    level
        One minus the false discovery rate.
    """
    means = task_means(tasks)
    p_values = []
    for task, mean in zip(tasks, means, strict=True):
        p = t_test(task)
        p_values.append(float(abs(mean) < TOLERANCE) if p is None else p)  # equal values differ from zero, or do not
    adjusted = false_discovery_control(p_values).tolist()
    significant = [mean for mean, p in zip(means, adjusted, strict=True) if p <= 1 - level]
    num_up = sum(mean > 0 for mean in significant)
    return num_up, len(significant) - num_up


def describe_other_tasks(verdict: Verdict, rejections: Sequence[bool]) -> str:
    """Describe in a few words whether other tasks would also show a bias.

    Parameters
    ----------
    verdict
        The verdict on these tasks.
    rejections
        For each test over tasks that can reject at all, whether it rejects a mean of zero: the t test and the sign-flip
        test, or the t test alone if there are few tasks.
    """
    if any(rejection != rejections[0] for rejection in rejections):
        return "the tests disagree"
    excludes_zero = verdict.low is not None and verdict.high is not None and (verdict.low > 0 or verdict.high < 0)
    if any(rejections):
        if not excludes_zero:
            return "only across tasks"
        return "yes" if len(rejections) > 1 else "yes, by the t test"
    return "not established" if excludes_zero else "no bias found"
