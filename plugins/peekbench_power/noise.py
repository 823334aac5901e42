"""Where the variance of the paired difference comes from, and what it would be in other designs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

TYPICAL_SAMPLING = 0.15
"""Share of the binomial variance of two independent arms that is left in their difference on the same texts; as fitted
to the accuracies published with arXiv 2410.00179 (0.12 for BERT, 0.17 for GPT-2)."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The bias in one configuration: its components of variance, squares of score fractions."""

    num_test: int | None
    num_tasks: int
    subsamples: float
    """Of a task, on average."""
    within: float
    """Variance between subsamples of a task, averaged over tasks."""
    between: float
    """Variance of the bias between tasks, beyond what subsamples explain; may come out below zero."""
    squared_error: float
    """Of the mean over these tasks."""
    degrees: float
    """Of freedom of that error, after Welch and Satterthwaite."""
    squared_error_such: float
    """Of the mean over such tasks, no less than over these; NaN where there is one task."""
    unevenness: float
    """(Sum of task variances)^2 / (tasks x sum of their squares): 1 where all tasks are equally noisy."""
    binomial: float
    """Mean of 2 p (1 - p) over tasks, for accuracies: n times the variance of the difference of independent arms."""
    seconds: float | None
    """That a trial takes, all arms; None where the table has no times."""


@dataclass(frozen=True, slots=True)
class Noise:
    """The components of one method, model and `num_train`, as a function of the numbers of the design."""

    label: str
    training: float
    """Variance of the difference that more test texts do not lower: training differs from run to run."""
    sampling: float
    """What n texts add, times n: they are a sample, on which the arms disagree here and there."""
    between: float
    unevenness: float
    seconds: tuple[float, float] | None = None
    """Of a trial: fixed, and for each test text."""

    def within(self, num_test: int | None) -> float:
        return self.training + (self.sampling / num_test if num_test else 0.0)

    def these_tasks(self, num_tasks: int, subsamples: float, num_test: int | None) -> tuple[float, float]:
        """Standard error of the mean over these tasks, and its degrees of freedom."""
        error = math.sqrt(self.within(num_test) / (num_tasks * subsamples))
        return error, self.unevenness * num_tasks * (subsamples - 1)

    def such_tasks(self, num_tasks: int, subsamples: float, num_test: int | None) -> tuple[float, float]:
        """The same where the tasks are a sample."""
        return math.sqrt((self.between + self.within(num_test) / subsamples) / num_tasks), num_tasks - 1.0

    def trial_seconds(self, num_test: int | None) -> float | None:
        return None if self.seconds is None else self.seconds[0] + self.seconds[1] * (num_test or 0)


def fit(label: str, measured: Sequence[Measured], seconds: tuple[float, float] | None) -> Noise:
    """Components from one test size or several.

    With several, the variance within tasks is fitted as training + sampling / n, neither below zero, weighted by how
    well each is known. With one, sampling is taken to be `TYPICAL_SAMPLING` of the binomial variance, or all there is.
    """
    import numpy as np
    from scipy.optimize import nnls

    weights = np.array([one.num_tasks * (one.subsamples - 1) for one in measured])
    between = float(np.average([one.between for one in measured], weights=weights))
    unevenness = float(np.average([one.unevenness for one in measured], weights=weights))
    within = np.array([one.within for one in measured])
    if any(one.num_test is None or one.binomial == 0 for one in measured):
        training, sampling = float(np.average(within, weights=weights)), 0.0
    elif len(measured) == 1:
        num_test = measured[0].num_test or 1
        sampling = min(TYPICAL_SAMPLING * measured[0].binomial, float(within[0]) * num_test)
        training = float(within[0]) - sampling / num_test
    else:
        exactness = np.sqrt(weights) / np.maximum(within, 1e-12)
        sizes = np.array([float(one.num_test or 1) for one in measured])
        terms = np.column_stack([np.ones(len(sizes)), 1 / sizes])
        (training, sampling), _ = nnls(terms * exactness[:, None], within * exactness)
    return Noise(label, float(training), float(sampling), max(0.0, between), unevenness, seconds)
