"""Variance of an average over subsamples that share texts: texts crossed with subsamples.

References
----------
Kish (1965), Survey Sampling, Wiley
Owen (2007), "The pigeonhole bootstrap", https://doi.org/10.1214/07-AOAS122
Satterthwaite (1946), https://doi.org/10.2307/3002019
Zou and Donner (2008), "Construction of confidence limits about effect measures", https://doi.org/10.1002/sim.3095
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.stats import t as student_t

from peekbench.records import Estimate, FloatArray, IntArray
from peekbench_stats.shared_draws import SharedDraws
from peekbench_stats.t_tests import welch_satterthwaite

MIN_P = 1e-12
"""Smallest p-value that is computed."""


@dataclass(frozen=True, slots=True)
class CrossedMean:
    """Mean effect on the texts of one task, with the components of its variance."""

    mean: float
    """Mean over texts and subsamples."""
    subsample_variance: float
    """Variance of the mean over other subsamples of the given texts."""
    degrees: int
    """Degrees of freedom of `subsample_variance`: subsamples - 1."""
    least_variance: float
    """Part of this variance that comes from single answers, estimated from all of them. The means of few subsamples can
    be equal by chance."""
    text_variance: float
    """What other texts add to the variance. It is an unbiased estimate, so it can be negative."""
    num_texts: int
    """Number of different texts."""
    num_answers: int
    """Number of texts of all subsamples together."""
    num_units: float
    """Number of different texts or, if texts have groups, of groups; uneven groups count as fewer (Kish 1965)."""
    num_groups: int = 0
    """Number of different groups; 0 if texts have none."""


@dataclass(frozen=True, slots=True)
class CrossedInterval(Estimate):
    """Interval of an average over tasks for other texts of these tasks."""

    text_share: float = 0.0
    """Share of the variance that other texts add."""


def cross_texts(differences: FloatArray, rows: IntArray, groups: IntArray | None = None) -> CrossedMean:
    """Estimate how much the mean of a task would vary with other subsamples of other texts.

    The difference of text i in subsample k is modeled as mu + a_i + b_k + e_ik, with independent effects of texts and
    of subsamples. The mean of K subsamples of n texts, of which two share m texts on average, then has the variance

        s^2 / K  +  m var(a) / n^2

    where s^2 is the variance between the means of subsamples. Shared texts make these means more alike, so s^2 / K
    alone holds only for the given texts. var(a) is the covariance of the differences of one text in two subsamples,
    with each difference taken from the mean of its subsample.

    If texts have groups, the effects of groups are independent, and those of texts need not be: sums over the texts of
    a group take the place of the differences of texts.

    Parameters
    ----------
    differences
        Score of treatment - score of control of each test text: (n_subsamples, n_test).
    rows
        Number of each text in the data of the task: (n_subsamples, n_test). A subsample has no text twice.
    groups
        Number of the group of each text: (n_subsamples, n_test); by default, each text is a group of its own.

    Returns
    -------
    CrossedMean
        Mean and components of its variance; `subsample_variance` is nan for a single subsample.

    Examples
    --------
    >>> differences = np.array([[1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1.0]])
    >>> rows = np.array([[4, 7, 1, 0], [4, 1, 2, 3]])
    >>> crossed = cross_texts(differences, rows)
    >>> crossed.mean, crossed.num_texts, crossed.text_variance > 0
    (0.375, 6, True)
    """
    order = np.argsort(rows, axis=1)  # so that not even the last digit depends on the order of the texts
    differences = np.take_along_axis(differences, order, axis=1)
    rows = np.take_along_axis(rows, order, axis=1)
    num_texts = len(np.unique(rows))
    if groups is not None:
        rows = np.take_along_axis(groups, order, axis=1)
    num_subsamples, num_test = differences.shape
    means = differences.mean(axis=1)
    unit, sizes, sums = _add_up(differences - means[:, None], rows)
    num_units = len(unit) / num_subsamples  # of a subsample
    within = (sums**2).sum() / (num_subsamples * max(num_units - 1, 1))
    # Over ordered pairs of subsamples:
    products = np.bincount(unit, weights=sums) ** 2 - np.bincount(unit, weights=sums**2)
    counts, squares, cubes = (np.bincount(unit, weights=sizes**power) for power in (1, 2, 3))
    num_pairs = float((counts**2 - squares).sum())
    coefficient = 0.0
    if num_pairs and num_units > 1:
        ordered = num_subsamples * (num_subsamples - 1)
        # Differences are taken from means that contain them: correct for it, up to the square of a unit's share.
        size = float((counts * squares - cubes).sum()) / num_pairs  # texts of a unit, weighted as in the products
        correction = 1 - 2 / num_test * size + num_pairs / ordered / num_test**2
        coefficient = 1 / (correction * ordered * num_test**2)
    return CrossedMean(
        mean=float(means.mean()),
        subsample_variance=float(means.var(ddof=1) / num_subsamples) if num_subsamples > 1 else np.nan,
        least_variance=float(within / (num_test * num_subsamples) * (num_units / num_test)),
        degrees=num_subsamples - 1,
        text_variance=float(products.sum() * coefficient),
        num_texts=num_texts,
        num_answers=differences.size,
        num_units=num_texts if groups is None else float(counts.sum() ** 2 / (counts**2).sum()),
        num_groups=0 if groups is None else len(counts),
    )


def _add_up(values: FloatArray, rows: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Add up the values of each unit in each subsample. Return unit, size and sum of each pair."""
    units, position = np.unique(rows, return_inverse=True)
    keys = position.reshape(rows.shape) + len(units) * np.arange(len(rows))[:, None]
    pairs, pair = np.unique(keys, return_inverse=True)
    pair = pair.ravel()
    sizes: FloatArray = np.bincount(pair).astype(float)
    sums: FloatArray = np.bincount(pair, values.ravel()).astype(float)
    return pairs % len(units), sizes, sums


def cross_interval(tasks: Sequence[CrossedMean], level: float, shared: Sequence[float] = ()) -> CrossedInterval | None:
    """Return the interval of the average over tasks for other subsamples of other texts of these tasks.

    Parameters
    ----------
    tasks
        Estimates of each task.
    level
        Coverage of the interval.
    shared
        Effect of each subsample on average over tasks, if tasks share their subsamples.

    Returns
    -------
    CrossedInterval or None
        The squared half-width is the sum of those of two intervals: for other subsamples of these texts, and for other
        texts (Zou and Donner 2008). The first one is Student's t interval of the means of subsamples. Its half-width is
        at least the standard error of independent answers, because the means of few subsamples can be alike by chance;
        a larger minimum would cover the truth too often. If the means are equal, it is the interval of independent
        answers. Satterthwaite's degrees of freedom of the sum would let many texts make up for few subsamples. If no
        answer differs between the arms, or all of them differ in the same direction, the limits are the largest share
        of differing trials that is plausible if none was observed (rule of three, counted in texts if there are fewer
        of them).
        None if a task has a single subsample.

    Examples
    --------
    >>> rows = np.tile(np.arange(4), (2, 1))
    >>> task = cross_texts(np.array([[1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1.0]]), rows)
    >>> interval = cross_interval([task], 0.95)
    >>> interval.mean, interval.low < 0 < interval.high
    (0.375, True)
    """
    if any(task.degrees == 0 for task in tasks):
        return None
    average = _Average.over(tasks, shared)
    half = average.half_width(level)
    known = max(average.of_subsamples, average.least)
    return CrossedInterval(
        average.mean,
        average.mean - half,
        average.mean + half,
        math.sqrt(known + average.of_texts),
        level,
        text_share=average.of_texts / (known + average.of_texts) if known > 0 else 0.0,
    )


def cross_p_value(tasks: Sequence[CrossedMean], shared: Sequence[float] = ()) -> float:
    """Return the two-sided p-value of an average of zero for other subsamples of other texts of these tasks.

    Parameters
    ----------
    tasks, shared
        As for `cross_interval`.

    Returns
    -------
    float
        One minus the level of the interval of `cross_interval` that touches zero, at least 1e-12; 1 without interval or
        tasks.

    Examples
    --------
    >>> task = cross_texts(np.tile([[1.0, 0.0, 1.0, 1.0]], (4, 1)), np.tile(np.arange(4), (4, 1)))
    >>> round(cross_p_value([task]), 2)
    0.06
    """
    if not tasks or any(task.degrees == 0 for task in tasks):
        return 1.0
    average = _Average.over(tasks, shared)

    def excess(p_value: float) -> float:
        return average.half_width(1 - p_value) - abs(average.mean)

    if excess(1.0) >= 0:
        return 1.0
    if excess(MIN_P) <= 0:
        return MIN_P
    return float(brentq(excess, MIN_P, 1.0, xtol=MIN_P))


@dataclass(frozen=True, slots=True)
class _Average:
    """The average over tasks, with the components of its variance."""

    mean: float
    of_subsamples: float
    """Variance over other subsamples of these texts."""
    degrees: float
    """Its degrees of freedom."""
    least: float
    """Variance of independent answers."""
    of_texts: float
    """Variance that other texts add."""
    degrees_of_texts: float
    num_trials: float
    """Independent trials or, if there are fewer, units of texts."""

    @classmethod
    def over(cls, tasks: Sequence[CrossedMean], shared: Sequence[float]) -> _Average:
        """Average over tasks that each have several subsamples."""
        squared = len(tasks) ** 2
        num_units = sum(task.num_units for task in tasks)
        of_subsamples = sum(task.subsample_variance for task in tasks) / squared
        degrees = welch_satterthwaite([task.subsample_variance for task in tasks], [task.degrees for task in tasks])
        num_trials = sum(task.degrees + 1 for task in tasks)
        if shared:
            of_subsamples = float(np.var(shared, ddof=1)) / len(shared)
            num_trials = len(shared)
            degrees = shared.degrees if isinstance(shared, SharedDraws) else num_trials - 1.0
        return cls(
            mean=float(np.mean([task.mean for task in tasks])),
            of_subsamples=of_subsamples,
            degrees=degrees,
            least=sum(task.least_variance for task in tasks) / squared,
            of_texts=max(sum(task.text_variance for task in tasks), 0.0) / squared,
            degrees_of_texts=max(num_units - len(tasks), 1),
            num_trials=min(num_units, num_trials),
        )

    def half_width(self, level: float) -> float:
        """Return half of the width of the interval of `cross_interval`."""
        if not self.least + self.of_subsamples > 0:
            return float(1 - (1 - level) ** (1 / self.num_trials))
        of_means, of_answers, of_other_texts = (
            float(student_t.ppf((1 + level) / 2, degrees)) for degrees in (self.degrees, np.inf, self.degrees_of_texts)
        )
        minimum = self.least
        if not self.of_subsamples > 0:
            minimum *= of_answers**2
        return math.sqrt(max(of_means**2 * self.of_subsamples, minimum) + of_other_texts**2 * self.of_texts)
