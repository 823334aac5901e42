"""The default rule for 'biased', 'equivalent' and 'inconclusive', from the trials of a configuration to its decision.

It consists of the region of practical equivalence, the level of each look at a run, the tests that must reject, and the
adjustment for a family.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from peekbench import Estimate
from peekbench.errors import SpecError
from peekbench.records import POINTS, Decision, Looks, LooksTaken, ScoreUnits, Verdict
from peekbench.records.verdicts import ControlOutcome
from peekbench.results import Configuration, decide, default_region
from peekbench_stats import (
    NominalAlpha,
    check_region,
    fixed_design,
    level_after,
    level_at,
    procedure_p_value,
    selection_level,
    stratified_sign_flip_test,
)
from peekbench_summary import Summary
from peekbench_summary.estimates import MeanEstimate, estimate_these_tasks, p_of_pooled_skewness, pool_skewness

DEFAULT_LOG_ODDS = 0.04


@dataclass(frozen=True, slots=True)
class Region:
    """Biases from -half_width to half_width are negligible."""

    half_width: float
    """Half-width in the unit of the scores."""
    log_odds: float | None = None
    """Half-width in log-odds, if it was given so."""
    failure_loss: float | None = None
    """Loss of a trial that fails; None for the half-width, 0 if failures cancel."""

    def margin(self, num_trials: float) -> float:
        """Return the largest bias that leaves room for failures that the trials may have missed.

        If none of M trials fails, up to 1 - 0.05^(1 / M) of all trials may do so, at a confidence of 95%. The margin is
        the half-width minus the loss that they would add to the mean.
        """
        loss = self.half_width if self.failure_loss is None else self.failure_loss
        return max(self.half_width - loss * unseen_share(num_trials), 0.0)

    def unseen_bias(self, num_trials: float) -> float:
        """Return the largest bias that failures of the stated loss hide from the trials; 0 if no loss is stated."""
        return (self.failure_loss or 0.0) * unseen_share(num_trials)


UNSEEN = 0.05  # probability of seeing no failure


def unseen_share(num_trials: float) -> float:
    """Return the largest share of trials that may fail although none was seen to, at a confidence of 95%.

    Parameters
    ----------
    num_trials
        Number of trials, at least 1.

    Examples
    --------
    >>> round(unseen_share(20), 3), round(unseen_share(598), 3)
    (0.139, 0.005)
    """
    return float(1 - UNSEEN ** (1 / num_trials))


def make_region(
    scores: Mapping[str, Mapping[str, Sequence[float]]], options: Summary, *, is_accuracy: bool, units: ScoreUnits
) -> Region:
    """Convert the half-width of a region to the unit of the scores.

    A shift of w log-odds in every task changes the mean accuracy by about w times the mean of p (1 - p) over tasks, if
    p is the task's mean accuracy of extra and test.

    Parameters
    ----------
    scores
        Arm to task to scores.
    options
        Half-width, its unit, and the score, which has a default half-width.
    is_accuracy
        Whether scores are accuracies.
    units
        Units of the scores.

    Raises
    ------
    SpecError
        If the unit is log-odds and scores are not accuracies, or the region of fractions exceeds 20 points.
    """
    if units == POINTS and options.failure_loss is not None and options.failure_loss > 1:
        loss = options.failure_loss
        raise SpecError(
            f"analysis summary, option failure_loss: {loss:g} is {100 * loss:g} points of the score; write a fraction, "
            f"such as {loss / 100:g}"
        )
    if options.region_unit == "score":
        check_region(options.region, "summary", units=units)
        half_width = default_region(options.score) if options.region is None else options.region
        return Region(half_width, failure_loss=options.failure_loss)
    if not is_accuracy:
        raise SpecError(
            "analysis summary, option region_unit: 'log_odds' requires accuracies with num_test, but these scores are "
            "not accuracies; use 'score', and give the region in the unit of the scores"
        )
    half_width = DEFAULT_LOG_ODDS if options.region is None else options.region
    slopes = []
    for task, extra in scores["extra"].items():
        both = [*extra, *scores["test"][task]]
        mean = math.fsum(both) / len(both)
        slopes.append(mean * (1 - mean))
    return Region(half_width * math.fsum(slopes) / len(slopes), half_width, options.failure_loss)


NO_LOOKS = Looks()


@dataclass(frozen=True, slots=True)
class LookLevels:
    """The levels of the present look at a configuration, and of a later one."""

    now: NominalAlpha
    later: Callable[[float], NominalAlpha]
    """Function of the number of trials at the later look, as a multiple of those now."""


ONE_LOOK = LookLevels(fixed_design, lambda _: fixed_design)


def levels_of(configuration: Configuration, looks: Looks) -> LookLevels:
    """Return the levels of a configuration; see `peekbench_stats.level_at`."""
    num_trials = sum(map(len, configuration.scores["bias"].values()))
    return levels_of_size(*size_of(configuration), num_trials=num_trials, looks=looks)


def levels_of_size(
    method: str, num_train: int | None, num_test: int | None, *, num_trials: int, looks: Looks
) -> LookLevels:
    """Return the levels of a configuration with a number of trials."""
    looks = looks.of(method)
    earlier = looks.earlier_of(method, num_train, num_test)
    return LookLevels(
        level_at(looks, num_trials, earlier), lambda ratio: level_after(looks, ratio, num_trials, earlier)
    )


def describe_looks(configuration: Configuration, looks: Looks, bias: Bias, conclusion: Conclusion) -> LooksTaken:
    """Return the looks that the verdict on a configuration accounts for."""
    looks = looks.of(str(configuration.key[0]))
    if earlier := looks.earlier_of(*size_of(configuration)):
        return LooksTaken(looks.is_run, earlier, unadjusted=_estimate_at_first_look(bias, conclusion))
    if not looks.method:
        return LooksTaken(looks.is_run)
    share, unadjusted = looks.fractions[-1], None
    if share > 1 and looks.method == "group_sequential":  # the run was extended
        unadjusted = _estimate_at_first_look(bias, conclusion)
    return LooksTaken(looks.is_run, (), len(looks.fractions), share, looks.maximum, unadjusted)


def _estimate_at_first_look(bias: Bias, conclusion: Conclusion) -> Estimate | None:
    """Return the estimate with the interval that it would have without earlier looks; None if it has none."""
    if not conclusion.estimate.has_interval:
        return None
    found = replace(bias, levels=LookLevels(level_at(NO_LOOKS), bias.levels.later)).estimate_of(conclusion)
    if conclusion.is_extended:
        found = found.with_zero()
    return Estimate(found.mean, found.low, found.high)


def size_of(configuration: Configuration) -> tuple[str, int | None, int | None]:
    """Return the method, `num_train` and `num_test` of a configuration; None if a size is unknown."""
    method, _, *sizes = configuration.key
    num_train, num_test = (size if isinstance(size, int) else None for size in sizes)
    return str(method), num_train, num_test


@dataclass(frozen=True, slots=True)
class Bias:
    """The measured bias of one configuration, and how to judge it."""

    tasks: Sequence[Sequence[float]]
    """Bias of each subsample, one sequence per task."""
    region: Region
    step: float | None = None
    """Distance between neighboring scores, if known."""
    levels: LookLevels = ONE_LOOK
    hidden: Literal["", "inert", "no signal"] = ""
    """Why no trial could show a bias: the predictions of extra and test are known to be equal, or no answer is right;
    empty if it is not known."""
    has_signal: Callable[[], bool] = lambda: True
    """Returns whether the predictions carry information on the labels, so that a bias could be seen."""
    shared: Sequence[float] = ()
    """Bias of each subsample on average over tasks, if tasks share draws; see `Configuration.units`."""
    is_skewed: bool = True
    """Whether fits that fail can make the differences skewed; see `failures_cancel`."""

    @property
    def units(self) -> Sequence[Sequence[float]]:
        """Sequences of independent values, from which the average is estimated: one per task, or one over tasks."""
        return [self.shared] if self.shared else self.tasks

    @property
    def num_units(self) -> int:
        """Number of independent values: of subsamples if tasks share draws, otherwise of trials."""
        return sum(map(len, self.units))

    @property
    def num_trials(self) -> int:
        """Number of trials of all tasks."""
        return sum(map(len, self.tasks))

    @property
    def is_zero(self) -> bool:
        """Whether the bias of every trial is exactly zero."""
        return not any(map(any, self.tasks))

    def estimate(self, alpha: float) -> MeanEstimate:
        """Estimate the average over these tasks with an interval that keeps the error rate `alpha`."""
        return self._estimate(1 - self.levels.now(alpha))

    def estimate_of(self, conclusion: Conclusion) -> MeanEstimate:
        """Estimate the average with the interval of a conclusion at these levels."""
        return self._estimate(1 - conclusion.num_sides * self.levels.now(conclusion.alpha))

    def estimate_within(self, alpha: float) -> MeanEstimate:
        """Estimate the average with the interval that is inside the region if two one-sided tests at `alpha` reject."""
        return self._estimate(1 - self.num_sides * self.levels.now(alpha))

    def _estimate(self, level: float) -> MeanEstimate:
        return estimate_these_tasks(self.units, level, self.step, is_skewed=self.is_skewed)

    @property
    def num_sides(self) -> int:
        """The number of one-sided tests for 'equivalent': one for trials without any difference, otherwise two."""
        return 1 if self.is_zero and self.step is not None else 2

    @property
    def margin(self) -> float:
        """The largest end of an interval that is 'equivalent'; see `Region.margin`."""
        return self.region.half_width if self.num_sides == 1 else self.region.margin(self.num_units)


@dataclass(frozen=True, slots=True)
class Evidence:
    """p-values of a bias. Each is the smallest error rate at which a configuration alone would get the verdict."""

    bias: Bias
    p_robust: float
    """Largest p-value of a bias of zero from sign flips of all trials, Student's t corrected for the skewness of the
    family, and Student's t for a bias that failures of a stated loss hide. 0 if Student's t alone does not reject."""
    p_zero: float
    """p-value of a bias of zero: the interval excludes zero, and so do the tests of `p_robust`."""
    p_outside: float
    """p-value of a bias outside the region: the interval is inside its margin, and there are enough trials for sign
    flips. Equal predictions need enough trials only."""

    @classmethod
    def of_family(cls, biases: Sequence[Bias], alpha: float) -> list[Evidence]:
        """Compute the p-values of configurations that are judged together at an error rate of `alpha`."""
        skewness = pool_skewness(bias.units for bias in biases if bias.is_skewed and bias.num_units > len(bias.units))
        return [cls._of(bias, alpha, skewness) for bias in biases]

    @classmethod
    def _of(cls, bias: Bias, alpha: float, skewness: float) -> Evidence:
        estimate = bias.estimate(alpha)
        p_robust = 0.0
        if estimate.p_zero <= bias.levels.now(alpha):  # otherwise no verdict can depend on these tests, which take time
            p_robust = max(
                stratified_sign_flip_test(bias.units).two_sided,
                p_of_pooled_skewness(estimate, bias.units, skewness * bias.is_skewed),
                estimate.p_within(bias.region.unseen_bias(bias.num_units)),
            )
        p_outside = 0.0 if bias.hidden else estimate.p_outside(bias.margin)
        smallest = min(1.0, 2.0 ** (1 - bias.num_units))
        if bias.hidden == "no signal":
            smallest = 0.0
        return cls(
            bias,
            p_robust,
            p_zero=procedure_p_value(max(estimate.p_zero, p_robust), bias.levels.now),
            p_outside=procedure_p_value(max(p_outside, smallest), bias.levels.now),
        )


@dataclass(frozen=True, slots=True)
class Levels:
    """Error rates at which each configuration of a family is tested."""

    zero: float
    """For 'biased'."""
    outside: float
    """For 'equivalent'."""

    @classmethod
    def of_family(cls, family: Sequence[Evidence], alpha: float) -> Levels:
        """Return the levels of two procedures of Benjamini and Hochberg, one for each kind of verdict."""
        return cls(
            selection_level([member.p_zero for member in family], alpha),
            selection_level([member.p_outside for member in family], alpha),
        )


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The decision about a configuration, with the interval that agrees with it; none for 'inert'."""

    decision: Decision
    estimate: MeanEstimate
    alpha: float
    """Error rate of the tests that decide."""
    num_sides: int = 1
    """Ends of the interval that can each be wrong at this rate: 2 for two one-sided tests."""
    is_extended: bool = False
    """Whether the interval was extended to zero, because the tests of `Evidence.p_robust` do not exclude zero."""


def conclude(evidence: Evidence, levels: Levels) -> Conclusion:
    """Decide about a configuration at the levels of its family.

    The interval has the coverage that controls the false coverage rate among the configurations with the same verdict:
    that of `levels.outside` for 'equivalent' and that of `levels.zero` for 'biased'. An inconclusive configuration gets
    the wider of the two; so does a biased one whose interval would otherwise be inside the region. A configuration
    whose interval is inside the region, but not inside its margin, is inconclusive. An interval contains zero unless a
    bias of zero is rejected.

    Parameters
    ----------
    evidence
        p-values of the configuration.
    levels
        Levels of the family; both are the error rate itself for a family of one.
    """
    bias, region = evidence.bias, evidence.bias.region.half_width
    if evidence.p_outside <= levels.outside:
        if bias.hidden:
            return Conclusion(bias.hidden, MeanEstimate(0.0), levels.outside)
        estimate = bias.estimate_within(levels.outside)
        is_nonzero = evidence.p_zero <= levels.zero
        return Conclusion(
            "equivalent" if bias.has_signal() else "no signal",
            estimate if is_nonzero else estimate.with_zero(),
            levels.outside,
            bias.num_sides,
        )
    wider = min(levels.zero, levels.outside)
    alpha = wider if evidence.p_outside <= levels.zero else levels.zero
    if evidence.p_zero <= alpha:
        estimate = bias.estimate(alpha)
        decision = decide(estimate.low, estimate.high, region)
        return Conclusion("inconclusive" if decision == "equivalent" else decision, estimate, alpha)
    estimate = bias.estimate(wider)
    return Conclusion("inconclusive", estimate.with_zero(), wider, is_extended=estimate.excludes_zero)


def tolerated_loss(bias: Bias, conclusion: Conclusion) -> float:
    """Return the largest loss of each failure that the trials may have missed, for which a verdict holds.

    Parameters
    ----------
    bias
        The measured bias.
    conclusion
        The decision, and its interval: inside the region, or without zero.

    Returns
    -------
    float
        NaN if the interval is neither, or there is none, if failures cancel, and if no trial has a bias: its interval
        bounds the share of trials that have one.
    """
    low, high = conclusion.estimate.low, conclusion.estimate.high
    distance = bias.region.half_width - max(-low, high)
    if conclusion.decision.startswith("biased"):
        distance = max(low, -high)
    if bias.is_zero or bias.region.failure_loss == 0 or not distance >= 0:
        return math.nan
    return distance / unseen_share(bias.num_units)


def control_outcome(verdict: Verdict) -> ControlOutcome:
    """Return whether a run finds the known bias of a control.

    Parameters
    ----------
    verdict
        Verdict about a control, with the decision that the same interval would give for a method. A negative control
        passes if its bias is exactly zero in all trials, or if its interval contains zero and is inside the region. A
        positive control passes if its interval is above zero. Other intervals that contain zero are undecided: the run
        is too small for the check.

    Returns
    -------
    {'passed', 'undecided', 'failed'}
        Outcome of the control.

    Examples
    --------
    >>> from peekbench import Estimate, Verdict
    >>> null = Verdict("null", "bias", "inconclusive", Estimate(0.0, -0.01, 0.02), region=0.005, control="negative")
    >>> control_outcome(null)
    'undecided'
    """
    low, high, is_negative = verdict.estimate.low, verdict.estimate.high, verdict.control == "negative"
    if is_negative and getattr(verdict.evidence, "is_zero", False):
        return "passed"
    if not verdict.estimate.has_interval:
        return "undecided"
    if verdict.estimate.excludes_zero and (is_negative or low < 0):
        return "failed"
    if verdict.estimate.excludes_zero or (is_negative and max(-low, high) <= (verdict.region or 0.0)):
        return "passed"
    return "undecided"
