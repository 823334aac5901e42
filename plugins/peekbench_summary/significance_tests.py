"""Significance tests beside a verdict: sign flips of each task, and the agreement of tests over tasks."""

from __future__ import annotations

from collections.abc import Sequence

from peekbench.records import OtherTasks
from peekbench_stats import hierarchical_rejections, procedure_p_value, sign_flip_test, t_test
from peekbench_summary.estimates import task_means
from peekbench_summary.evidence import Bias, Conclusion


def count_biased_tasks(family: Sequence[Bias], alpha: float) -> list[tuple[int, int]]:
    """Return the numbers of tasks whose own bias is significantly positive and significantly negative.

    Each task has a sign-flip test, which few subsamples can support. The tasks of a configuration are examined only if
    the family shows that it has any biased task; see `peekbench_stats.hierarchical_rejections`.

    Parameters
    ----------
    family
        Configurations that are judged together.
    alpha
        False discovery rate.

    Returns
    -------
    list of (int, int)
        One pair for each configuration.
    """
    p_values = [
        [procedure_p_value(sign_flip_test(task).two_sided, bias.levels.now) for task in bias.tasks] for bias in family
    ]
    counts = []
    for bias, rejections in zip(family, hierarchical_rejections(p_values, alpha), strict=True):
        significant = [mean for mean, rejected in zip(task_means(bias.tasks), rejections, strict=True) if rejected]
        num_up = sum(mean > 0 for mean in significant)
        counts.append((num_up, len(significant) - num_up))
    return counts


def examine_other_tasks(means: Sequence[float], conclusion: Conclusion, alpha: float) -> OtherTasks:
    """Return whether other tasks would also show a bias.

    Parameters
    ----------
    means
        Mean bias of each task.
    conclusion
        The conclusion about these tasks.
    alpha
        Level of the two tests over tasks: the paired t test, and sign flips of the means, which are left out if there
        are too few tasks to reach this level.

    Returns
    -------
    str
        Empty for a single task.
    """
    if len(means) < 2:
        return ""
    by_t_test = t_test(means)
    rejections = [by_t_test is not None and by_t_test <= alpha]
    if smallest_p(len(means)) <= alpha:
        rejections.append(sign_flip_test(means).two_sided <= alpha)
    if any(rejection != rejections[0] for rejection in rejections):
        return "the tests disagree"
    excludes_zero = conclusion.estimate.excludes_zero
    if any(rejections):
        if not excludes_zero:
            return "only across tasks"
        return "yes" if len(rejections) > 1 else "yes, by the t test"
    return "not established" if excludes_zero else "none found"


def smallest_p(num_tasks: int) -> float:
    """Return the smallest p-value that sign flips of task means can reach."""
    return 2.0 ** (1 - num_tasks)
