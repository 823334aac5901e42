"""The sources of variance of the paired difference, and the variance that they imply for other designs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

TYPICAL_SAMPLING = 0.15
"""Share of the binomial variance of two independent arms that remains in their difference on the same texts, fitted to
the accuracies published with arXiv 2410.00179 (0.12 for BERT, 0.17 for GPT-2)."""


@dataclass(frozen=True, slots=True)
class TaskNoise:
    """The measured noise of one task."""

    task: str
    subsamples: int
    variance: float
    """Variance between its subsamples."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The bias of one configuration and its variance; variances are in squared score fractions."""

    num_test: int | None
    num_tasks: int
    subsamples: float
    """Subsamples per task, on average."""
    within: float
    """Variance between subsamples of a task, averaged over tasks."""
    between: float
    """Variance of the bias between tasks that subsamples do not explain; the estimate may be negative."""
    squared_error: float
    """Squared standard error of the mean over these tasks."""
    degrees: float
    """Degrees of freedom of that error (Welch-Satterthwaite)."""
    squared_error_other: float
    """Squared standard error of the mean over other tasks, at least that over these; NaN for one task."""
    evenness: float
    """(Sum of task variances)^2 / (tasks x sum of their squares): 1 if all tasks are equally noisy."""
    binomial: float
    """Mean of 2 p (1 - p) over tasks, divided by the number of scored sets, for accuracies: n times the variance of the
    difference of independent arms."""
    tasks: tuple[TaskNoise, ...] = ()
    """Noise of each task with at least two subsamples."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Variance components of one method, model and `num_train`, from which the errors of any design follow."""

    label: str
    training: float
    """Variance of the difference that more test texts do not reduce, because training differs between fits."""
    sampling: float
    """Variance that the sampling of n test texts adds, times n."""
    between: float
    """Variance of the bias between tasks."""
    evenness: float
    seconds: tuple[float, float] | None = None
    """Seconds of a trial: a fixed part, and a part per test text; None if unknown."""

    def within(self, num_test: int | None) -> float:
        """Return the variance between subsamples of a task."""
        return self.training + (self.sampling / num_test if num_test else 0.0)

    def inflated(self, factor: float) -> Noise:
        """Return the noise with the variances within tasks multiplied by a factor."""
        return replace(self, training=self.training * factor, sampling=self.sampling * factor)

    def error_for_these_tasks(self, num_tasks: int, subsamples: float, num_test: int | None) -> tuple[float, float]:
        """Return the standard error of the mean over these tasks, and its degrees of freedom."""
        error = math.sqrt(self.within(num_test) / (num_tasks * subsamples))
        return error, self.evenness * num_tasks * (subsamples - 1)

    def error_for_other_tasks(self, num_tasks: int, subsamples: float, num_test: int | None) -> tuple[float, float]:
        """Return the standard error of the mean over other tasks, and its degrees of freedom."""
        return math.sqrt((self.between + self.within(num_test) / subsamples) / num_tasks), num_tasks - 1.0

    def trial_seconds(self, num_test: int | None) -> float | None:
        """Return the seconds of a trial, all arms together; None if unknown."""
        return None if self.seconds is None else self.seconds[0] + self.seconds[1] * (num_test or 0)


@dataclass(frozen=True, slots=True)
class MethodNoise:
    """The noise of one method, model and `num_train`, as measured and as fitted."""

    label: str
    num_train: int
    measurements: tuple[Measurement, ...]
    """One for each test size."""
    noise: Noise

    @property
    def num_tasks(self) -> int:
        """Largest number of tasks of a test size."""
        return max(measurement.num_tasks for measurement in self.measurements)

    @property
    def test_sizes(self) -> tuple[int | None, ...]:
        """Measured test sizes."""
        return tuple(measurement.num_test for measurement in self.measurements)


def fit_noise(label: str, measurements: Sequence[Measurement], seconds: tuple[float, float] | None) -> Noise:
    """Fit variance components to the measurements at one or several test sizes.

    With several sizes, fit the variance within tasks as training + sampling / n by least squares, both at least zero,
    weighted by how precisely each variance is known. With one size, set the sampling variance to `TYPICAL_SAMPLING`
    times the binomial variance, but at most to the whole variance within tasks.
    """
    weights = np.array([each.num_tasks * (each.subsamples - 1) for each in measurements])
    between = float(np.average([each.between for each in measurements], weights=weights))
    evenness = float(np.average([each.evenness for each in measurements], weights=weights))
    within = np.array([each.within for each in measurements])
    if any(each.num_test is None or each.binomial == 0 for each in measurements):
        training, sampling = float(np.average(within, weights=weights)), 0.0
    elif len(measurements) == 1:
        num_test = measurements[0].num_test or 1
        sampling = min(TYPICAL_SAMPLING * measurements[0].binomial, float(within[0]) * num_test)
        training = max(0.0, float(within[0]) - sampling / num_test)  # rounding can make it negative
    else:
        precision = np.sqrt(weights) / np.maximum(within, 1e-12)
        sizes = np.array([float(each.num_test or 1) for each in measurements])
        terms = np.column_stack([np.ones(len(sizes)), 1 / sizes])  # (n_sizes, 2)
        (training, sampling), _ = nnls(terms * precision[:, None], within * precision)
    return Noise(label, float(training), float(sampling), max(0.0, between), evenness, seconds)
