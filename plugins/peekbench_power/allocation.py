"""Subsamples of each task in proportion to its noise, which need fewer trials than equal numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from peekbench.records import FloatArray
from peekbench_power.designs import MAX_SUBSAMPLES, fewest, plan_subsamples
from peekbench_power.detection import Criterion, minimum_detectable
from peekbench_power.noise import Measurement, Noise
from peekbench_stats import welch_satterthwaite

MIN_SHARE = 0.5
"""Least number of subsamples of a task, as a share of an equal number. A task may seem quiet by chance, and all tasks
need enough subsamples for an interval of their own."""
MIN_SUBSAMPLES = 2


@dataclass(frozen=True, slots=True)
class Allocation:
    """Numbers of subsamples that detect a bias."""

    equal: tuple[int, ...]
    """Subsamples of each task if all have the same number, but at least those that they have already."""
    by_task: tuple[int, ...]
    """Subsamples of each task by its noise, but at least those that it has already."""
    spreads: tuple[float, ...]
    """Standard deviations for which they are planned."""

    @property
    def equal_trials(self) -> int:
        """Trials of one method with equal numbers."""
        return sum(self.equal)

    @property
    def trials(self) -> int:
        """Trials of one method with numbers by noise."""
        return sum(self.by_task)

    @property
    def saving(self) -> float:
        """Share of the trials that numbers by noise save."""
        return 1 - self.trials / self.equal_trials


def shrink_variances(variances: Sequence[float] | FloatArray, degrees: Sequence[float]) -> FloatArray:
    r"""Move the variances of tasks towards their mean, as far as chance explains that they differ.

    An estimated variance :math:`s_j^2` of normal differences with :math:`\nu_j` degrees of freedom has itself the
    variance :math:`2 \sigma_j^4 / \nu_j`; :math:`s_j^4 \nu_j / (\nu_j + 2)` estimates :math:`\sigma_j^4` without bias.
    If the variances of the tasks vary more than that, the rest is a difference between tasks. The weight of the mean is
    the share of chance in the variance of :math:`s_j^2`, as in the estimator of James and Stein.

    Parameters
    ----------
    variances
        Estimated variances, shape (n_tasks,).
    degrees
        Their degrees of freedom.

    References
    ----------
    Efron and Morris (1973), https://doi.org/10.1080/01621459.1973.10481350

    Examples
    --------
    >>> shrink_variances([1.0, 2.0, 3.0], [4, 4, 4]).round(2)
    array([2., 2., 2.])
    >>> shrink_variances([1.0, 1.0, 16.0], [40, 40, 40]).round(1)
    array([ 1.3,  1.3, 15.5])
    """
    estimates, known = np.asarray(variances, dtype="float64"), np.asarray(degrees, dtype="float64")
    mean = np.average(estimates, weights=known)
    chance = 2 * (estimates**2 * known / (known + 2)).mean() / known
    spread = max(0.0, float(estimates.var(ddof=1) - chance.mean()))
    weights = np.divide(chance, chance + spread, out=np.ones(len(known)), where=chance + spread > 0)
    shrunken: FloatArray = weights * mean + (1 - weights) * estimates
    return shrunken


def allocate(spreads: Sequence[float] | FloatArray, total: int, least: Sequence[int]) -> tuple[int, ...]:
    """Divide subsamples among tasks in proportion to their standard deviations.

    The squared standard error of the mean over tasks is the sum of variance / subsamples, so this division has the
    lowest for a given total.

    Parameters
    ----------
    spreads
        Standard deviations of the tasks.
    total
        Subsamples to divide. The result has slightly more, because numbers are rounded up.
    least
        Subsamples that each task has already.

    References
    ----------
    Neyman (1934), https://doi.org/10.2307/2342192

    Examples
    --------
    >>> allocate([1.0, 1.0, 1.0, 5.0], total=80, least=[0, 0, 0, 0])
    (10, 10, 10, 50)
    >>> allocate([1.0, 1.0, 1.0, 5.0], total=80, least=[0, 0, 15, 0])
    (10, 10, 15, 50)
    """
    shares = np.asarray(spreads, dtype="float64")
    lowest = MIN_SHARE / len(shares)
    if not shares.any():
        shares = np.ones(len(shares))
    is_lowest = np.zeros(len(shares), dtype=bool)
    while True:  # a share that is raised to the lowest lowers the others
        shares = np.where(is_lowest, 0.0, shares)
        shares = shares / shares.sum() * (1 - lowest * is_lowest.sum())
        is_too_low = ~is_lowest & (shares < lowest - 1e-12)
        if not is_too_low.any():
            break
        is_lowest |= is_too_low
    shares = np.where(is_lowest, lowest, shares)
    return tuple(
        max(MIN_SUBSAMPLES, known, math.ceil(total * share - 1e-9))
        for share, known in zip(shares.tolist(), least, strict=True)
    )


def plan_allocation(measured: Measurement, noise: Noise, bias: float, criterion: Criterion) -> Allocation | None:
    """Return the fewest subsamples that detect a bias, with equal numbers and by the noise of the tasks.

    Parameters
    ----------
    measured
        Measured variances of the tasks.
    noise
        Noise to plan with, whose variance within tasks is the mean of the tasks.
    bias
        Bias to detect, as a mean over these tasks.
    criterion
        Power and significance level.

    Returns
    -------
    Allocation or None
        None if there is one task, or too many subsamples are needed.
    """
    equal = plan_subsamples(noise, measured.num_tasks, measured.num_test, bias, criterion)
    if equal is None or measured.num_tasks < 2:
        return None
    counts = [task.subsamples for task in measured.tasks]
    variances = shrink_variances([task.variance for task in measured.tasks], [count - 1 for count in counts])
    if variances.any():
        variances = variances * (noise.within(measured.num_test) / variances.mean())
    spreads = np.sqrt(variances).tolist()

    def detects(total: int) -> bool:
        numbers = np.array(allocate(spreads, total, counts))
        squared_errors = variances / numbers
        degrees = float(welch_satterthwaite(squared_errors, numbers - 1))
        detected = minimum_detectable(math.sqrt(squared_errors.sum()) / len(numbers), degrees, criterion)
        return detected is not None and detected <= bias

    total = fewest(detects, MAX_SUBSAMPLES * len(counts))
    if total is None:
        return None
    same = tuple(max(equal.subsamples, count) for count in counts)
    return Allocation(same, allocate(spreads, total, counts), tuple(spreads))
