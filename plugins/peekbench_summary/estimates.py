"""Mean differences with their standard errors, for one task and over several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

NAN = math.nan


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its standard error and interval; these are NaN where they cannot be had from the data."""

    mean: float
    error: float
    low: float
    high: float

    @property
    def has_interval(self) -> bool:
        return not math.isnan(self.low)


def interval(mean: float, error: float, degrees: float, level: float) -> Estimate:
    """Student's t interval; of no width where the error is 0."""
    from scipy.stats import t

    if math.isnan(error) or degrees <= 0:
        return Estimate(mean, NAN, NAN, NAN)
    width = error * float(t.ppf((1 + level) / 2, degrees)) if error > 0 else 0.0
    return Estimate(mean, error, mean - width, mean + width)


def of_one_task(differences: Sequence[float], level: float) -> Estimate:
    """Mean over a task's subsamples; its error is that of further subsamples of the same data set."""
    mean, error = _mean_and_error(differences)
    return interval(mean, error, len(differences) - 1, level)


def of_these_tasks(tasks: Sequence[Sequence[float]], level: float) -> Estimate:
    """Mean of task means, the tasks given: what further subsamples of the same data sets would show.

    The error is sqrt(sum of squared task errors) / number of tasks; degrees of freedom after Welch and Satterthwaite.
    Source: Satterthwaite (1946), https://doi.org/10.2307/3002019
    """
    pairs = [_mean_and_error(task) for task in tasks]
    mean = math.fsum(pair[0] for pair in pairs) / len(pairs)
    variances = [pair[1] ** 2 for pair in pairs]
    total = math.fsum(variances)
    spread = math.fsum(
        variance**2 / (len(task) - 1) for variance, task in zip(variances, tasks, strict=True) if len(task) > 1
    )
    degrees = total**2 / spread if spread > 0 else math.inf
    return interval(mean, math.sqrt(total) / len(pairs), degrees, level)


def of_such_tasks(tasks: Sequence[Sequence[float]], level: float) -> Estimate:
    """Mean of task means, the tasks a sample: what other tasks like these would show. A paired t over tasks."""
    return of_one_task([math.fsum(task) / len(task) for task in tasks], level)


def _mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, NAN
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, math.sqrt(variance / len(values))
