"""Means of paired differences with standard errors and intervals, for one task and over several."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from scipy.special import stdtr, stdtrit

from peekbench import Estimate
from peekbench.records import POINTS, ScoreUnits
from peekbench.results import Configuration
from peekbench_stats import SharedDraws, cross_interval, units_of, welch_satterthwaite
from peekbench_summary.text_noise import ARMS, cross_effect

MIN_SKEWNESS = 1e-6  # below which the correction is negligible, and its inverse a rounding error
MIN_TRIALS = 6  # of a verdict; fewer do not show a skewness
MIN_SPREAD = 1e-9  # values that differ by less are equal except for rounding


@dataclass(frozen=True, slots=True)
class MeanEstimate(Estimate):
    """A mean of paired differences, with what its p-values depend on."""

    degrees: float = math.nan
    """Degrees of freedom of the standard error."""
    skewness: float = 0.0
    """Skewness of the mean, for which Student's t is corrected; see `correct_skewness`."""
    num_equal: float = math.nan
    """Number of trials, if all values are zero. The interval then bounds the share of trials that may differ."""

    @property
    def p_zero(self) -> float:
        """The two-sided p-value of a mean of zero: one minus the level of the interval that touches zero."""
        return self.p_within(0.0)

    def p_within(self, limit: float) -> float:
        """Return the two-sided p-value of the mean between -limit and limit that is nearest to the estimate."""
        if not self.has_interval or self.num_equal > 0 or abs(self.mean) < limit:
            return 1.0
        return min(1.0, 2 * float(stdtr(self.degrees, -abs(self._score(math.copysign(limit, self.mean))))))

    def p_outside(self, region: float) -> float:
        """Return the larger p-value of two one-sided tests, of a mean below -region and of one above region."""
        if not self.has_interval or not abs(self.mean) < region:
            return 1.0
        if self.num_equal > 0:
            return math.exp(self.num_equal * math.log1p(-region)) if region < 1 else 0.0
        return float(stdtr(self.degrees, max(self._score(region), -self._score(-region))))

    def _score(self, mean: float) -> float:
        """Return Student's t for the hypothesis of a mean, corrected for skewness."""
        return correct_skewness((self.mean - mean) / self.standard_error, self.skewness)

    def within(self, low: float, high: float) -> MeanEstimate:
        """Return the estimate with the part of its interval that lies in the possible range."""
        return replace(self, low=max(self.low, low), high=min(self.high, high)) if self.has_interval else self

    def with_zero(self) -> MeanEstimate:
        """Return the estimate with the shortest interval that contains both this one and zero."""
        return replace(self, low=min(self.low, 0.0), high=max(self.high, 0.0)) if self.has_interval else self


NO_EFFECT = MeanEstimate(0.0, 0.0, 0.0, 0.0)


def correct_skewness(score: float, skewness: float) -> float:
    r"""Return Student's t, corrected for the skewness of the mean.

    If a few trials fail, and most samples of trials contain too few of these failures, the mean and its standard error
    are correlated, and Student's t rejects too often on one side. Hall's monotone transformation of t,
    :math:`t + g t^2 / 3 + g^2 t^3 / 27 + g / 6`, removes the effect of the skewness g of the mean to first order.

    References
    ----------
    Hall (1992), https://doi.org/10.1111/j.2517-6161.1992.tb01872.x
    """
    return score + skewness * score**2 / 3 + skewness**2 * score**3 / 27 + skewness / 6


def _undo_correction(corrected: float, skewness: float) -> float:
    """Return the score that `correct_skewness` turns into `corrected`."""
    if abs(skewness) < MIN_SKEWNESS:
        return corrected
    return 3 / skewness * (math.cbrt(1 + skewness * (corrected - skewness / 6)) - 1)


def t_interval(mean: float, standard_error: float, degrees: float, level: float, skewness: float = 0.0) -> MeanEstimate:
    """Return Student's t interval around a mean.

    Parameters
    ----------
    mean, standard_error
        The estimate and its standard error.
    degrees
        Degrees of freedom of the standard error.
    level
        Nominal coverage of the interval.
    skewness
        Skewness of the mean; the interval contains the means that `correct_skewness` does not reject.
    """
    if not standard_error > 0 or not degrees > 0:
        return MeanEstimate(mean)
    quantile = float(stdtrit(degrees, (1 + level) / 2))
    low, high = (mean - standard_error * _undo_correction(end, skewness) for end in (quantile, -quantile))
    return MeanEstimate(mean, low, high, standard_error, degrees=degrees, skewness=skewness)


def estimate_these_tasks(
    tasks: Sequence[Sequence[float]], level: float, step: float | None = None, *, is_skewed: bool = True
) -> MeanEstimate:
    """Estimate the mean of task means; the interval is for new subsamples of the same data sets.

    The standard error is sqrt(sum of squared task errors) / number of tasks, with degrees of freedom after Welch and
    Satterthwaite. The error of a task whose subsamples do not vary is replaced as described in `floor_errors`. If all
    differences are zero, the interval contains the shares of differing trials with which M equal trials have a
    probability of at least 1 - level: up to 1 - (1 - level) ** (1 / M), which is about 3 / M at 95% (rule of three).
    Trials fail as a whole, and one that does can lose all of its score, which is at most 1.

    Parameters
    ----------
    tasks
        Paired differences, one sequence per task.
    level
        Nominal coverage of the interval.
    step
        Distance between neighboring values: 1 / num_test for accuracies, whose differences lie between -1 and 1; None
        if unknown.
    is_skewed
        Whether fits that fail can make the differences skewed, for which the interval is corrected.
    """
    if step is not None and not any(map(any, tasks)):
        return _bound_unseen(min(map(len, tasks)) * len(tasks), level)
    samples = floor_errors([SampleMean.of(task) for task in tasks], step)
    third_moment = 0.0
    if is_skewed:
        third_moment = math.fsum(
            math.fsum((value - sample.mean) ** 3 for value in task) / len(task) ** 3
            for task, sample in zip(tasks, samples, strict=True)
        )
    estimate = _combine(math.fsum(sample.mean for sample in samples), samples, len(samples), level, third_moment)
    return estimate if step is None else estimate.within(-1.0, 1.0)


def _bound_unseen(num_trials: int, level: float) -> MeanEstimate:
    share = -math.expm1(math.log1p(-level) / num_trials)
    return MeanEstimate(0.0, -share, share, 0.0, num_equal=num_trials)


def pool_skewness(families: Iterable[Sequence[Sequence[float]]]) -> float:
    """Return the skewness of a single difference, pooled over configurations and tasks.

    Parameters
    ----------
    families
        Paired differences of each configuration, one sequence of at least two per task.
    """
    squares, cubes = [], []
    for task in chain.from_iterable(families):
        mean = math.fsum(task) / len(task)
        squares.append(math.fsum((value - mean) ** 2 for value in task) ** 1.5 / math.sqrt(len(task)))
        cubes.append(math.fsum((value - mean) ** 3 for value in task))
    scale = math.fsum(squares)
    return math.fsum(cubes) / scale if scale > 0 else 0.0


def p_of_pooled_skewness(estimate: MeanEstimate, tasks: Sequence[Sequence[float]], skewness: float) -> float:
    """Return the two-sided p-value of a mean of zero if single differences have the skewness of all configurations.

    Their trials show failures that those of this configuration may happen to lack.

    Parameters
    ----------
    estimate
        Estimate of the mean of the task means.
    tasks
        Paired differences, one sequence of at least two per task.
    skewness
        Skewness of a single difference, see `pool_skewness`.
    """
    samples = [SampleMean.of(task) for task in tasks]
    squared_error = math.fsum(sample.standard_error**2 for sample in samples)
    if not squared_error > MIN_SPREAD**2:
        return 0.0
    third_moment = math.fsum(sample.standard_error**3 / math.sqrt(sample.count) for sample in samples)
    return replace(estimate, skewness=skewness * third_moment / squared_error**1.5).p_zero


def estimate_effect(configuration: Configuration, effect: str, level: float) -> MeanEstimate:
    """Estimate an arm's score or an effect of a configuration on average over these tasks.

    If all trials test the same texts, the intervals of scores and of the boost are for other texts.
    """
    units = units_of(configuration, configuration.scores[effect])
    is_skewed = not failures_cancel(configuration, effect)
    estimate = estimate_these_tasks(units, level, configuration.step, is_skewed=is_skewed)
    if effect != "bias":
        estimate = estimate_other_texts(configuration, effect, level) or estimate
    return estimate if configuration.step is None or effect not in ARMS else estimate.within(0.0, 1.0)


def estimate_other_texts(configuration: Configuration, effect: str, level: float) -> MeanEstimate | None:
    """Estimate an arm's score or an effect with the interval for other subsamples of other texts.

    Returns
    -------
    MeanEstimate or None
        None unless all trials test the same texts and the answers to these are known.
    """
    crossed = cross_effect(configuration, effect)
    interval = cross_interval(crossed, level, shared_averages(configuration, effect)) if crossed else None
    if interval is None:
        return None
    mean = mean_over_tasks(list(configuration.scores[effect].values()))
    estimate = MeanEstimate(mean, interval.low, interval.high, interval.standard_error)
    return estimate if configuration.step is None else estimate.within(-1.0, 1.0)


def failures_cancel(configuration: Configuration, effect: str) -> bool:
    """Return whether each fit has the same weight in both arms, so that what a fit that fails loses cancels.

    This is so for the bias of a design with folds. The differences are then symmetric, and the skewness of a few
    divisions is noise.
    """
    return configuration.has_folds and effect == "bias"


def estimate_task(configuration: Configuration, effect: str, task: str, level: float) -> MeanEstimate:
    """Estimate an arm's score or an effect of a configuration on one task."""
    scores = {name: {task: by_task[task]} for name, by_task in configuration.scores.items()}
    return estimate_effect(replace(configuration, scores=scores), effect, level)


def shared_averages(configuration: Configuration, effect: str) -> Sequence[float]:
    """Return the values of each subsample on average over tasks if tasks share draws; otherwise nothing."""
    units = units_of(configuration, configuration.scores[effect])
    return units[0] if len(units) < len(configuration.scores[effect]) else ()


def estimate_change(
    before: Sequence[Sequence[float]], after: Sequence[Sequence[float]], level: float, step: float | None = None
) -> MeanEstimate:
    """Estimate the mean over tasks of the difference between two independent sets of subsamples, after - before.

    Standard error and degrees of freedom are as in `estimate_these_tasks`, where each task has a part in both sets.

    Parameters
    ----------
    before, after
        Values of each set, one sequence per task, with the same tasks.
    level
        Nominal coverage of the interval.
    step
        As for `estimate_these_tasks`.
    """
    old, new = (floor_errors([SampleMean.of(task) for task in side], step) for side in (before, after))
    total = math.fsum([*(sample.mean for sample in new), *(-sample.mean for sample in old)])
    return _combine(total, [*old, *new], len(new), level)


def estimate_other_tasks(
    tasks: Sequence[Sequence[float]], level: float, step: float | None = None, shared: Sequence[float] = ()
) -> MeanEstimate:
    """Estimate the mean of task means; the interval is for other tasks, of which these are a sample.

    This is the interval of a paired t test over tasks. If J tasks share their draws, their means vary less than those
    of tasks with independent draws, and the squared error is s^2 / J + c / K, where c is the mean covariance of two
    tasks in a subsample, at least zero. It follows from the squared errors of the average over these tasks with and
    without covariances, which differ by (J - 1) / J times c / K. The degrees of freedom stay J - 1, because those of
    Satterthwaite are too many for few tasks.

    Parameters
    ----------
    tasks
        Paired differences, one sequence per task.
    level
        Nominal coverage of the interval.
    step
        As for `estimate_these_tasks`.
    shared
        Values of each subsample on average over tasks, if tasks share draws.
    """
    sample = SampleMean.of(task_means(tasks))
    error = sample.standard_error
    if shared:
        with_covariances = SampleMean.of(shared).standard_error ** 2
        without = math.fsum(SampleMean.of(task).standard_error ** 2 for task in tasks) / len(tasks) ** 2
        excess = max(with_covariances - without, 0.0)  # max keeps a NaN that is its first argument: it is unknown
        error = math.sqrt(error**2 + excess * len(tasks) / (len(tasks) - 1))
    estimate = t_interval(sample.mean, error, sample.count - 1, level)
    return estimate if step is None else estimate.within(-1.0, 1.0)


def task_means(tasks: Sequence[Sequence[float]]) -> list[float]:
    """Return the mean of each task."""
    return [math.fsum(task) / len(task) for task in tasks]


def mean_over_tasks(tasks: Sequence[Sequence[float]]) -> float:
    """Return the mean of task means, in which all tasks have equal weight."""
    return math.fsum(task_means(tasks)) / len(tasks)


@dataclass(frozen=True, slots=True)
class SampleMean:
    """The mean of `count` subsamples and its standard error, NaN for a single one, with its degrees of freedom."""

    mean: float
    standard_error: float
    count: int
    degrees: float

    @classmethod
    def of(cls, values: Sequence[float]) -> SampleMean:
        """Compute mean and standard error from the values."""
        mean = math.fsum(values) / len(values)
        if len(values) < 2:
            return cls(mean, math.nan, len(values), 0.0)
        variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
        degrees = values.degrees if isinstance(values, SharedDraws) else len(values) - 1.0
        return cls(mean, math.sqrt(variance / len(values)), len(values), degrees)


def floor_errors(samples: Sequence[SampleMean], step: float | None) -> list[SampleMean]:
    """Replace standard errors of zero, which state that subsamples cannot vary, by those of one deviating subsample.

    Equal values do not show that all further values will be equal. The standard deviation of `count` equal values is
    estimated as if one of them had deviated by a typical amount: sqrt(typical ** 2 / count). The typical amount is the
    root mean square of the standard deviations of all tasks; if no task varies, it is the root mean square of the
    values. It is at least one `step`, which is also the minimum for values that vary.

    Parameters
    ----------
    samples
        Mean and standard error of each task.
    step
        Distance between neighboring values; None if unknown.

    Returns
    -------
    list of SampleMean
        Unchanged if all errors are large enough. If all values are zero and the step is unknown, errors stay zero.
    """
    step = step or 0.0
    variances = [sample.standard_error**2 * sample.count for sample in samples]
    if all(
        variance >= step**2 / sample.count and variance > MIN_SPREAD**2
        for variance, sample in zip(variances, samples, strict=True)
    ):
        return list(samples)
    if any(map(math.isnan, variances)):
        return list(samples)
    typical = math.fsum(variances) / len(variances)
    if typical <= MIN_SPREAD**2:
        typical = math.fsum(sample.mean**2 for sample in samples) / len(samples)
    typical = max(typical, step**2)
    floors = [step**2 if variance > MIN_SPREAD**2 else typical for variance in variances]
    return [
        replace(sample, standard_error=max(sample.standard_error, math.sqrt(floor) / sample.count))
        for sample, floor in zip(samples, floors, strict=True)
    ]


def _combine(
    total: float, samples: Sequence[SampleMean], num_tasks: int, level: float, third_moment: float = 0.0
) -> MeanEstimate:
    squared_errors = [sample.standard_error**2 for sample in samples]
    squared_error = math.fsum(squared_errors)
    if math.isnan(squared_error):
        return MeanEstimate(total / num_tasks)
    degrees = welch_satterthwaite(squared_errors, [sample.degrees for sample in samples], exact_sum=True)
    is_known = squared_error > MIN_SPREAD**2 and sum(sample.count for sample in samples) >= MIN_TRIALS
    skewness = third_moment / squared_error**1.5 if is_known else 0.0
    return t_interval(total / num_tasks, math.sqrt(squared_error) / num_tasks, degrees, level, skewness)


def format_chosen(value: float, units: ScoreUnits) -> str:
    """Return a bias or the half-width of a region that a user has chosen, without rounding.

    Examples
    --------
    >>> from peekbench.records.verdicts import NUMBERS
    >>> format_chosen(0.005, POINTS), format_chosen(0.005, NUMBERS)
    ('0.5 points', '0.005')
    """
    if units == POINTS:
        return f"{value * 100:g} points"
    return f"{value:g}"
