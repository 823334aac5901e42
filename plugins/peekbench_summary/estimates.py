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
    parts = [Part.of(task) for task in tasks]
    return _of_parts(math.fsum(part.mean for part in parts), parts, len(parts), level)


def of_change(before: Sequence[Sequence[float]], after: Sequence[Sequence[float]], level: float) -> Estimate:
    """Mean over tasks of what two independent sets of subsamples differ by: after - before, the tasks given.

    Errors and degrees of freedom as in `of_these_tasks`, each task having a part of either side.
    """
    old, new = [Part.of(task) for task in before], [Part.of(task) for task in after]
    total = math.fsum([*(part.mean for part in new), *(-part.mean for part in old)])
    return _of_parts(total, [*old, *new], len(new), level)


@dataclass(frozen=True, slots=True)
class Part:
    """A mean of `count` subsamples and the variance of that mean, NaN of a single one."""

    mean: float
    variance: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Part:
        mean, error = _mean_and_error(values)
        return cls(mean, error**2, len(values))


def _of_parts(total: float, parts: Sequence[Part], num_tasks: int, level: float) -> Estimate:
    variance = math.fsum(part.variance for part in parts)
    spread = math.fsum(part.variance**2 / (part.count - 1) for part in parts if part.count > 1)
    degrees = variance**2 / spread if spread > 0 else math.inf
    return interval(total / num_tasks, math.sqrt(variance) / num_tasks, degrees, level)


def of_other_tasks(tasks: Sequence[Sequence[float]], level: float) -> Estimate:
    """Mean of task means, the tasks a sample: what other tasks like these would show. A paired t over tasks."""
    return of_one_task([math.fsum(task) / len(task) for task in tasks], level)


def _mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, NAN
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, math.sqrt(variance / len(values))
