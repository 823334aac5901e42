"""Independent values of tasks that may share draws.

Runs and their exported tables have independent draws, because the seed of a subsample depends on the task. In any other
table, subsamples with the same number may move all tasks in the same direction, as if one random seed had split the
rows of all of them. Their average over tasks is then the unit of inference, whose variance includes the covariances.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from peekbench.results import Configuration

MIN_SIZE = 1e-12  # smaller averages are zero except for rounding


class SharedDraws(list[float]):
    """Values of subsamples that tasks share, each averaged over tasks.

    Parameters
    ----------
    values
        One value for each subsample.
    degrees
        Degrees of freedom of their variance: the number of subsamples minus one if all tasks have all subsamples,
        otherwise fewer.

    Examples
    --------
    >>> SharedDraws([0.5, 0.7, 0.6], 2.0).degrees
    2.0
    """

    def __init__(self, values: Iterable[float], degrees: float) -> None:
        super().__init__(values)
        self.degrees = degrees


def units_of(configuration: Configuration, values: Mapping[str, Sequence[float]]) -> list[Sequence[float]]:
    """Return sequences of independent values, whose means have the same average as those of the tasks.

    Parameters
    ----------
    configuration
        What the values are about.
    values
        Values of each subsample by task, such as ``configuration.scores["bias"]``.

    Returns
    -------
    list of sequence of float
        The values of each task; if tasks share draws, one sequence with the average of each subsample over tasks.
    """
    numbers = [configuration.subsamples[task] for task in values]
    return independent_units(list(values.values()), numbers, shares_draws=configuration.shares_draws)


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
    if not shares_draws:
        return list(tasks)
    return [_average(tasks, subsamples)]


def _average(tasks: Sequence[Sequence[float]], subsamples: Sequence[Sequence[int]]) -> SharedDraws:
    r"""Return the value of each subsample on average over tasks, in order of the numbers.

    Subsample k has the value :math:`m + \sum_j w_j (d_{jk} - m_j)` over the tasks j that have it, where :math:`m_j` are
    the means of tasks and m is their mean. With K subsamples, of which a task has :math:`K_j`, the weights
    :math:`w_j = \sqrt{K (K - 1) / (K_j (K_j - 1))} / J` make the variance of the values, divided by K, an unbiased
    estimate of the squared error of m. If all tasks have all subsamples, the values are plain averages. Otherwise the
    subsamples of tasks with few of them have large weights, and degrees of freedom are those of Satterthwaite.
    """
    means = [math.fsum(task) / len(task) for task in tasks]
    mean = math.fsum(means) / len(means)
    if min(map(len, tasks)) < 2:
        return SharedDraws([mean], 0.0)
    parts: dict[int, list[float]] = {number: [mean] for number in sorted(set().union(*subsamples))}
    for task, numbers, center in zip(tasks, subsamples, means, strict=True):
        weight = math.sqrt(len(parts) * (len(parts) - 1) / (len(task) * (len(task) - 1))) / len(tasks)
        for value, number in zip(task, numbers, strict=True):
            parts[number].append(weight * (value - center))
    averages = np.array([math.fsum(values) for values in parts.values()])
    inflation, degrees = _calibrate(tasks, subsamples, list(parts))
    averages = mean + inflation * (averages - mean)
    averages[abs(averages) <= MIN_SIZE] = 0.0
    return SharedDraws(map(float, averages), degrees)


def _calibrate(
    tasks: Sequence[Sequence[float]], subsamples: Sequence[Sequence[int]], numbers: Sequence[int]
) -> tuple[float, float]:
    r"""Return a factor for the deviations of the values of `_average`, and the degrees of freedom of their variance.

    The worst case are seeds whose normal effects e move all tasks in proportion to their standard deviations. The
    deviations are then :math:`A e`, whose sum of squares has the mean :math:`\mathrm{tr}(A^2)` and, by Satterthwaite,
    :math:`\mathrm{tr}(A^2)^2 / \mathrm{tr}(A^4)` degrees of freedom. The factor makes the squared error unbiased.
    """
    total = len(numbers)
    if all(len(task) == total for task in tasks):
        return 1.0, total - 1.0
    place = {number: position for position, number in enumerate(numbers)}
    of_mean, deviations = np.zeros(total), np.zeros((total, total))
    for task, own in zip(tasks, subsamples, strict=True):
        places, size, spread = [place[number] for number in own], len(task), float(np.std(task, ddof=1))
        of_mean[places] += spread / size
        deviations[np.ix_(places, places)] += spread * (np.eye(size) - 1 / size) / math.sqrt(size * (size - 1))
    squared = deviations @ deviations
    trace = float(np.trace(squared))
    if not trace > 0:
        return 1.0, total - 1.0
    return math.sqrt(max(float((of_mean**2).sum()) / trace, 1.0)), trace**2 / float((squared**2).sum())
