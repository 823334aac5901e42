"""From the trials of a configuration to its p-values, and from those of a family to decisions and intervals.

The default rule for 'biased' and 'equivalent': the region of practical equivalence, the level of each look at a run,
the tests that must reject, and the adjustment for a family.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from peekbench.errors import SpecError
from peekbench.records import Decision, Looks, LooksTaken
from peekbench.results import Configuration, check_region, decide, default_region
from peekbench_stats import (
    NominalAlpha,
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


def make_region(scores: Mapping[str, Mapping[str, Sequence[float]]], options: Summary, *, is_accuracy: bool) -> Region:
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

    Raises
    ------
    SpecError
        If the unit is log-odds and scores are not accuracies, or the region of accuracies exceeds 20 points.
    """
    if options.region_unit == "score":
        check_region(options.region, "summary", is_accuracy=is_accuracy)
        return Region(default_region(options.score) if options.region is None else options.region)
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
    return Region(half_width * math.fsum(slopes) / len(slopes), half_width)


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
    looks = looks.of(str(configuration.key[0]))
    num_trials, earlier = _num_trials(configuration), _earlier(configuration, looks)
    return LookLevels(
        level_at(looks, num_trials, earlier), lambda ratio: level_after(looks, ratio, num_trials, earlier)
    )


def describe_looks(configuration: Configuration, looks: Looks) -> LooksTaken:
    """Return the looks that the verdict on a configuration accounts for."""
    looks = looks.of(str(configuration.key[0]))
    if earlier := _earlier(configuration, looks):
        return LooksTaken(are_known=True, earlier=earlier)
    if looks.method:
        return LooksTaken(are_known=True, number=len(looks.fractions), share=looks.fractions[-1], maximum=looks.maximum)
    return LooksTaken(looks.are_known)


def _num_trials(configuration: Configuration) -> int:
    return sum(map(len, configuration.scores["bias"].values()))


def _earlier(configuration: Configuration, looks: Looks) -> tuple[int, ...]:
    """Return the trials of a configuration at earlier looks that no design planned."""
    method, _, num_train, num_test = configuration.key
    return looks.earlier_of(
        str(method),
        num_train if isinstance(num_train, int) else None,
        num_test if isinstance(num_test, int) else None,
    )


@dataclass(frozen=True, slots=True)
class Bias:
    """The measured bias of one configuration, and how to judge it."""

    tasks: Sequence[Sequence[float]]
    """Bias of each subsample, one sequence per task."""
    region: Region
    step: float | None = None
    """Distance between neighboring scores, if known."""
    levels: LookLevels = ONE_LOOK
    is_inert: bool = False
    """Whether the predictions of extra and test are known to be equal in all trials."""
    has_signal: Callable[[], bool] = lambda: True
    """Returns whether the predictions carry information on the labels, so that a bias could be seen."""
    shared: Sequence[float] = ()
    """Bias of each subsample on average over tasks, if tasks share draws; see `Configuration.units`."""

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
        return estimate_these_tasks(self.units, 1 - self.levels.now(alpha), self.step)

    def estimate_within(self, alpha: float) -> MeanEstimate:
        """Estimate the average with the interval that is inside the region if two one-sided tests at `alpha` reject."""
        return estimate_these_tasks(self.units, 1 - self.num_sides * self.levels.now(alpha), self.step)

    @property
    def num_sides(self) -> int:
        """The number of one-sided tests for 'equivalent': one for trials without any difference, otherwise two."""
        return 1 if self.is_zero and self.step is not None else 2

    def can_reject(self, num_units: float, alpha: float) -> bool:
        """Return whether sign flips can reject at a later look at `num_units` units, at the error rate `alpha`."""
        return bool(2.0 ** (1 - num_units) <= self.levels.later(num_units / self.num_units)(alpha))


@dataclass(frozen=True, slots=True)
class Evidence:
    """p-values of a bias. Each is the smallest error rate at which a configuration alone would get the verdict."""

    bias: Bias
    p_robust: float
    """p-value of a bias of zero from the tests that need not assume normal differences, the larger one: sign flips of
    all trials, and Student's t corrected for skewness. 0 if Student's t alone does not reject."""
    p_zero: float
    """p-value of a bias of zero: the interval excludes zero, and so do the tests of `p_robust`."""
    p_outside: float
    """p-value of a bias outside the region: the interval is inside, and there are enough trials for sign flips. Equal
    predictions need enough trials only."""

    @classmethod
    def of_family(cls, biases: Sequence[Bias], alpha: float) -> list[Evidence]:
        """Compute the p-values of configurations that are judged together at an error rate of `alpha`."""
        skewness = pool_skewness(bias.units for bias in biases if bias.num_units > len(bias.units))
        return [cls._of(bias, alpha, skewness) for bias in biases]

    @classmethod
    def _of(cls, bias: Bias, alpha: float, skewness: float) -> Evidence:
        estimate = bias.estimate(alpha)
        p_robust = 0.0
        if estimate.p_zero <= bias.levels.now(alpha):  # otherwise no verdict can depend on these tests, which take time
            p_robust = max(
                stratified_sign_flip_test(bias.units).two_sided, p_of_pooled_skewness(estimate, bias.units, skewness)
            )
        p_outside = 0.0 if bias.is_inert else estimate.p_outside(bias.region.half_width)
        smallest = min(1.0, 2.0 ** (1 - bias.num_units))
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
            selection_level([each.p_zero for each in family], alpha),
            selection_level([each.p_outside for each in family], alpha),
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
    the wider of the two, which neither excludes zero nor is inside the region; so does a biased one whose interval
    would otherwise be inside the region. An interval contains zero unless a bias of zero is rejected.

    Parameters
    ----------
    evidence
        p-values of the configuration.
    levels
        Levels of the family; both are the error rate itself for a family of one.
    """
    bias, region = evidence.bias, evidence.bias.region.half_width
    if evidence.p_outside <= levels.outside:
        if bias.is_inert:
            return Conclusion("inert", MeanEstimate(0.0), levels.outside)
        estimate = bias.estimate_within(levels.outside)
        is_nonzero = evidence.p_zero <= levels.zero
        decision: Decision = "equivalent" if bias.has_signal() else "no signal"
        return Conclusion(decision, estimate if is_nonzero else estimate.with_zero(), levels.outside, bias.num_sides)
    wider = min(levels.zero, levels.outside)
    alpha = wider if evidence.p_outside <= levels.zero else levels.zero
    if evidence.p_zero <= alpha:
        estimate = bias.estimate(alpha)
        return Conclusion(decide(estimate.low, estimate.high, region), estimate, alpha)
    estimate = bias.estimate(wider)
    return Conclusion("inconclusive", estimate.with_zero(), wider, is_extended=estimate.excludes_zero)
