"""Means of paired differences with standard errors and intervals, for one task and over several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import t

from peekbench_stats import welch_satterthwaite


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its standard error and interval, which are NaN if the data do not determine them."""

    mean: float
    standard_error: float
    low: float
    high: float

    @property
    def has_interval(self) -> bool:
        """Whether there is an interval."""
        return not math.isnan(self.low)

    @property
    def limits(self) -> tuple[float, float] | tuple[None, None]:
        """Limits of the interval as cells of a table; (None, None) if there is none."""
        return (self.low, self.high) if self.has_interval else (None, None)

    @property
    def excludes_zero(self) -> bool:
        """Whether there is an interval and zero lies outside it."""
        return self.low > 0 or self.high < 0


def t_interval(mean: float, standard_error: float, degrees: float, level: float) -> Estimate:
    """Return Student's t interval around a mean; its width is zero if the standard error is.

    Parameters
    ----------
    mean, standard_error
        The estimate and its standard error.
    degrees
        Degrees of freedom of the standard error.
    level
        Nominal coverage of the interval.
    """
    if math.isnan(standard_error) or degrees <= 0:
        return Estimate(mean, math.nan, math.nan, math.nan)
    half_width = standard_error * float(t.ppf((1 + level) / 2, degrees)) if standard_error > 0 else 0.0
    return Estimate(mean, standard_error, mean - half_width, mean + half_width)


def estimate_one_task(differences: Sequence[float], level: float) -> Estimate:
    """Estimate the mean of one task; the interval is for new subsamples of the same data set.

    Parameters
    ----------
    differences
        Paired differences, shape (n_subsamples,).
    level
        Nominal coverage of the interval.
    """
    sample = SampleMean.of(differences)
    return t_interval(sample.mean, sample.standard_error, sample.count - 1, level)


def estimate_these_tasks(tasks: Sequence[Sequence[float]], level: float) -> Estimate:
    """Estimate the mean of task means; the interval is for new subsamples of the same data sets.

    The standard error is sqrt(sum of squared task errors) / number of tasks, with degrees of freedom after Welch and
    Satterthwaite.

    Parameters
    ----------
    tasks
        Paired differences, one sequence per task.
    level
        Nominal coverage of the interval.
    """
    samples = [SampleMean.of(task) for task in tasks]
    return _combine(math.fsum(sample.mean for sample in samples), samples, len(samples), level)


def estimate_change(before: Sequence[Sequence[float]], after: Sequence[Sequence[float]], level: float) -> Estimate:
    """Estimate the mean over tasks of the difference between two independent sets of subsamples, after - before.

    Standard error and degrees of freedom are as in `estimate_these_tasks`, where each task has a part in both sets.

    Parameters
    ----------
    before, after
        Values of each set, one sequence per task, with the same tasks.
    level
        Nominal coverage of the interval.
    """
    old, new = [SampleMean.of(task) for task in before], [SampleMean.of(task) for task in after]
    total = math.fsum([*(sample.mean for sample in new), *(-sample.mean for sample in old)])
    return _combine(total, [*old, *new], len(new), level)


def estimate_other_tasks(tasks: Sequence[Sequence[float]], level: float) -> Estimate:
    """Estimate the mean of task means; the interval is for other tasks, of which these are a sample.

    This is the interval of a paired t test over tasks.

    Parameters
    ----------
    tasks
        Paired differences, one sequence per task.
    level
        Nominal coverage of the interval.
    """
    return estimate_one_task(task_means(tasks), level)


def task_means(tasks: Sequence[Sequence[float]]) -> list[float]:
    """Return the mean of each task."""
    return [math.fsum(task) / len(task) for task in tasks]


def mean_over_tasks(tasks: Sequence[Sequence[float]]) -> float:
    """Return the mean of task means, in which all tasks have equal weight."""
    return math.fsum(task_means(tasks)) / len(tasks)


@dataclass(frozen=True, slots=True)
class SampleMean:
    """The mean of `count` subsamples and its standard error, NaN for a single one."""

    mean: float
    standard_error: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> SampleMean:
        """Compute mean and standard error from the values."""
        mean = math.fsum(values) / len(values)
        if len(values) < 2:
            return cls(mean, math.nan, len(values))
        variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
        return cls(mean, math.sqrt(variance / len(values)), len(values))


def _combine(total: float, samples: Sequence[SampleMean], num_tasks: int, level: float) -> Estimate:
    squared_errors = [sample.standard_error**2 for sample in samples]
    squared_error = math.fsum(squared_errors)
    if math.isnan(squared_error):
        return Estimate(total / num_tasks, math.nan, math.nan, math.nan)
    degrees = welch_satterthwaite(squared_errors, [sample.count - 1 for sample in samples], exact_sum=True)
    return t_interval(total / num_tasks, math.sqrt(squared_error) / num_tasks, degrees, level)
