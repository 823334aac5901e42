"""Draws that several tasks share, as if one random seed had split the rows of all of them.

Runs and their exported tables have independent draws, because the seed of a subsample depends on the task. In any other
table, subsamples with the same number may move all tasks in the same direction. Their average over tasks is then the
unit of inference, whose variance includes the covariances between tasks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

MIN_SIZE = 1e-12  # smaller averages are zero except for rounding


def independent_units(
    tasks: Sequence[Sequence[float]], subsamples: Sequence[Sequence[int]], *, shares_draws: bool
) -> list[Sequence[float]]:
    """Return sequences of independent values whose means have the same average as those of the tasks.

    Parameters
    ----------
    tasks
        Values of each task.
    subsamples
        Numbers of the subsamples of these values.
    shares_draws
        Whether tasks share the draws with the same numbers.

    Returns
    -------
    list of sequence of float
        The values of each task; if tasks share draws, a single sequence, with one value for each subsample. If a task
        then has a single subsample, the covariances are unknown, and so is the uncertainty of the only value, the mean.

    Examples
    --------
    >>> tasks, numbers = [[0.5, 1.0], [1.0, 1.5]], [[7, 8], [7, 8]]
    >>> independent_units(tasks, numbers, shares_draws=True)
    [[0.75, 1.25]]
    """
    return [_average(tasks, subsamples)] if shares_draws else list(tasks)


def _average(tasks: Sequence[Sequence[float]], subsamples: Sequence[Sequence[int]]) -> list[float]:
    r"""Return the value of each subsample on average over tasks, in order of the numbers.

    Subsample k has the value :math:`m + \sum_j w_j (d_{jk} - m_j)` over the tasks j that have it, where :math:`m_j` are
    the means of tasks and m is their mean. With K subsamples, of which a task has :math:`K_j`, the weights
    :math:`w_j = \sqrt{K (K - 1) / (K_j (K_j - 1))} / J` make the variance of the values, divided by K, an unbiased
    estimate of the squared error of m. If all tasks have all subsamples, the values are plain averages.
    """
    means = [math.fsum(task) / len(task) for task in tasks]
    mean = math.fsum(means) / len(means)
    if min(map(len, tasks)) < 2:
        return [mean]
    parts: dict[int, list[float]] = {number: [mean] for number in sorted({each for row in subsamples for each in row})}
    for task, numbers, center in zip(tasks, subsamples, means, strict=True):
        weight = math.sqrt(len(parts) * (len(parts) - 1) / (len(task) * (len(task) - 1))) / len(tasks)
        for value, number in zip(task, numbers, strict=True):
            parts[number].append(weight * (value - center))
    averages = map(math.fsum, parts.values())
    return [average if abs(average) > MIN_SIZE else 0.0 for average in averages]
