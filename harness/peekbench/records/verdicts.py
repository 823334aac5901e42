"""The verdict of an analysis as facts: an estimate with its interval, a decision, and the evidence for it.

Reports make the sentences, see `peekbench.report.render.sentences`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from peekbench.records.trials import Control, RowLimit

Unit: TypeAlias = Literal["text", "count", "fraction", "difference", "spread", "number", "change", "p_value", "seconds"]
"""How the values of a column are shown.

'fraction' is shown as a percentage; 'difference', of two fractions, as signed percentage points; 'spread', such as a
standard error of fractions, as percentage points without a sign; 'change', of two other numbers, as a signed number.

Examples
--------
>>> from peekbench.formatting import format_cell
>>> format_cell(0.0123, "fraction"), format_cell(0.0123, "difference"), format_cell(0.0123, "number")
('1.2%', '+1.23', '0.0123')
"""


@dataclass(frozen=True, slots=True)
class ScoreUnits:
    """Units of scores and of what is derived from them: those of fractions are `POINTS`, of other scores `NUMBERS`.

    Examples
    --------
    >>> POINTS.score, NUMBERS.difference
    ('fraction', 'change')
    """

    score: Unit
    """Of scores."""
    difference: Unit
    """Of differences of scores."""
    spread: Unit
    """Of standard deviations and standard errors of scores, and of half-widths of regions."""


POINTS = ScoreUnits("fraction", "difference", "spread")
"""Units of fractions: scores are shown in percent, differences in points.

Examples
--------
>>> POINTS.difference
'difference'
"""
NUMBERS = ScoreUnits("number", "change", "number")
"""Units of other scores, which are shown as they are.

Examples
--------
>>> NUMBERS.spread
'number'
"""


FamilyChoice: TypeAlias = Literal["all", "method", "none"]
"""Configurations that are adjusted together: all of a report, those of one method, or each one alone."""


Decision: TypeAlias = Literal["biased up", "biased down", "equivalent", "inconclusive", "inert", "no signal"]
"""What a verdict says about an effect. 'inert': the predictions do not depend on the unlabeled texts. 'no signal': none
of at least 59 answers is right, or the interval lies within the region, but the predictions carry no information on the
labels, so no bias could be seen."""

ControlOutcome: TypeAlias = Literal["passed", "undecided", "failed"]
"""Whether a run finds the known bias of a control."""

BiasSize: TypeAlias = Literal["", "open", "beyond", "not above", "not below"]
"""For a verdict of bias: 'beyond' if the whole interval lies outside the region of practical equivalence, 'open' if a
part of it lies inside. For an inconclusive verdict: 'not above' if the whole interval lies below the upper end of the
region, so that a larger increase is excluded, and 'not below' likewise for a decrease. Otherwise ''.

Examples
--------
>>> Verdict("lsa", "bias", "biased up", Estimate(0.01, low=0.002, high=0.02), region=0.01).size
'open'
"""


RowName: TypeAlias = Literal["texts", "rows"]
"""What reports call the rows of tasks: 'rows' if a task has features instead of texts."""


Key: TypeAlias = str | int | float | bool | None
"""Value in a column that names a configuration, such as its method or a size.

Examples
--------
>>> parts: tuple[tuple[str, Key], ...] = (("method", "lsa"), ("num_test", 200))
>>> Verdict("lsa (num_test 200)", "bias", "equivalent", parts=parts).name
'lsa'
"""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A quantity with its interval. Numbers that the data do not determine are NaN.

    Examples
    --------
    >>> Estimate(0.012, low=0.004, high=0.02).excludes_zero
    True
    >>> Estimate(0.012).limits
    (None, None)
    """

    mean: float = math.nan
    """The estimated value."""
    low: float = math.nan
    """Lower end of the interval."""
    high: float = math.nan
    """Upper end of the interval."""
    standard_error: float = math.nan
    """Standard error of the value."""
    level: float = math.nan
    """Coverage of [low, high] by itself."""

    @property
    def is_known(self) -> bool:
        """Whether there is a value."""
        return not math.isnan(self.mean)

    @property
    def has_interval(self) -> bool:
        """Whether there is an interval."""
        return not math.isnan(self.low)

    @property
    def limits(self) -> tuple[float, float] | tuple[None, None]:
        """Limits of the interval; (None, None) if there is none."""
        if self.has_interval:
            return self.low, self.high
        return None, None

    @property
    def as_cell(self) -> Estimate:
        """Value and interval only, as the cell of a table."""
        return Estimate(self.mean, self.low, self.high)

    @property
    def excludes_zero(self) -> bool:
        """Whether there is an interval and zero lies outside it."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class Family:
    """Configurations that are judged together, for whose number decisions and intervals are adjusted."""

    size: int = 1
    """Number of configurations."""
    level: float = math.nan
    """Coverage of the interval of a single configuration: one minus the error rate of the family, or minus twice this
    rate if two one-sided tests decide that a bias is 'equivalent'."""
    unadjusted: Decision | None = None
    """The decision without the adjustment; None if there is none."""


@dataclass(frozen=True, slots=True)
class Advice:
    """Additional subsamples per task, and the probability of a verdict with them."""

    subsamples: int
    """Additional subsamples per task."""
    probability: float | None
    """Probability of a verdict with them, from 0 to 1; None if no trial has a bias so far: the verdict then
    requires that no further trial has any."""


@dataclass(frozen=True, slots=True)
class Settling:
    """What would probably settle an inconclusive verdict."""

    advice: Advice | None
    """None if more than `maximum` subsamples are needed."""
    maximum: int = 1000
    """Largest number of additional subsamples per task that was considered."""
    limit: RowLimit | None = None
    """The task whose rows support no more than `maximum`, if any. Set by peekbench."""
    half_width: float | None = None
    """Half-width of the interval after `maximum` more subsamples, if `advice` is None."""


@dataclass(frozen=True, slots=True)
class LooksTaken:
    """Looks at a run or a table that a verdict accounts for."""

    is_run: bool = False
    """Whether a run computed the scores, not another tool."""
    earlier: tuple[int, ...] = ()
    """Trials at earlier looks that no design planned, and after which the number of trials was changed."""
    number: int = 0
    """Number of the present planned look, from 1; 0 if the design plans none."""
    share: float = 0.0
    """Share of the maximum at the present planned look."""
    maximum: int = 0
    """Largest number of subsamples per task that the design planned at its first look."""
    unadjusted: Estimate | None = None
    """The estimate with the interval of the same trials at a first look; None unless a run or a table was extended
    after a look, which widens the interval."""


OtherTasks: TypeAlias = Literal[
    "", "yes", "yes, by the t test", "only across tasks", "not established", "none found", "the tests disagree"
]
"""Whether other tasks like these would also show a bias; '' for a single task.

Examples
--------
>>> TrialEvidence(5, 200, other_tasks="none found").other_tasks
'none found'
"""


@dataclass(frozen=True, slots=True)
class FixedTexts:
    """What trials that all test the same texts state about other texts of this kind.

    Examples
    --------
    >>> FixedTexts("inconclusive", Estimate(0.01, low=-0.01, high=0.03)).bias.has_interval
    True
    """

    decision: Decision | None = None
    """The decision of the verdict if it also holds for other texts, otherwise 'inconclusive'. None if nothing is known
    about other texts: the score is not a mean over texts, or the answers to single texts are unknown."""
    bias: Estimate = field(default_factory=Estimate)
    """The bias with its interval for other subsamples of other texts, at the level of the verdict."""
    extra: Estimate = field(default_factory=Estimate)
    """The score of extra with its interval for other subsamples of other texts."""


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """Test rows of official splits that have copies, near duplicates included.

    Scores on copies of train rows are not scores on new rows. Fits adapt to copies of test rows and private extra rows,
    also those of the arm extra.

    Examples
    --------
    >>> CopiedRows(150, 300, {"all": 0.49, "extra": 0.4}).num_new
    150
    """

    num_copied: int
    """Number of test rows of all tasks that are also train rows."""
    num_rows: int
    """Number of test rows of all tasks."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """Mean score over tasks on test rows that are not train rows, by arm; higher is better. Empty if not defined."""
    num_repeated: int = 0
    """Number of test rows that have copies in the test set."""
    num_private: int = 0
    """Number of test rows that are also private extra rows."""
    are_few: bool = False
    """Whether there are so few that intervals for other rows hold."""

    @property
    def num_new(self) -> int:
        """Number of test rows that are not train rows."""
        return self.num_rows - self.num_copied


@dataclass(frozen=True, slots=True)
class PredictedAlone:
    """The arm alone, which predicts each text by itself, compared with the same fits that predict texts together.

    Examples
    --------
    >>> PredictedAlone(0.14, Estimate(0.235, low=0.223, high=0.247), "biased up").decision
    'biased up'
    """

    score: float
    """Mean score of the arm alone over tasks."""
    gain: Estimate
    """The score of extra minus that of alone, with an interval that is adjusted for nothing."""
    decision: Decision
    """Whether predicting texts together changes the score, at the level of the verdict on the bias. 'inert': the scores
    of all trials are equal."""


@dataclass(frozen=True, slots=True)
class TrialEvidence:
    """Trials behind a verdict on a mean of paired differences, and what they leave open.

    Examples
    --------
    >>> from peekbench.report import state
    >>> estimate, evidence = Estimate(0.02, low=0.01, high=0.03), TrialEvidence(num_tasks=1, num_trials=50)
    >>> state(Verdict("lsa", "bias", "biased up", estimate, 0.005, evidence=evidence, family=Family(level=0.95)))
    'seeing the test texts raised accuracy by 2.00 points on these texts (95% interval +1.00 to +3.00).'
    """

    num_tasks: int
    """Number of tasks."""
    num_trials: int
    """Number of trials."""
    decision: Decision | None = None
    """The decision; for a control, the one that a method with the same scores would get."""
    score: str = "score"
    """Score that the verdict is about: a `ScoreName`, or the name of a score of scikit-learn."""
    base: float | None = None
    """Mean score of the arm base over tasks, if known."""
    extra: float | None = None
    """Mean score of the arm extra over tasks, if known."""
    published: float | None = None
    """Mean score over tasks of fits to the whole test set, the arm all; None without folds."""
    alone: PredictedAlone | None = None
    """What predicting the test texts together changes; None without the arm alone."""
    has_folds: bool = False
    """Whether the design has folds."""
    copied: CopiedRows | None = None
    """Test rows that have copies, of a run with folds; None if there are none, or it is not known."""
    removed: tuple[int, int] = (0, 0)
    """Rows that were removed from official test splits, such as copies, and all rows of these splits, of a run with
    folds."""
    num_texts: int | None = None
    """Texts that a trial scores, if known."""
    log_odds: float | None = None
    """Half-width of the region in log-odds, if it was given so."""
    is_zero: bool = False
    """Whether the bias of every trial is exactly zero. The interval then is that of the share of trials with a bias."""
    task_means: tuple[float, float] | None = None
    """Smallest and largest mean of a task, if there are several."""
    biased_tasks: tuple[int, int] = (0, 0)
    """Numbers of tasks whose own bias is significantly positive and significantly negative."""
    other_tasks: OtherTasks = ""
    """What the trials state about tasks other than these."""
    has_too_few: bool = False
    """Whether there are too few trials for any verdict."""
    is_extended: bool = False
    """Whether the interval was extended to zero, because the tests of `p_zero` do not exclude zero."""
    p_zero: float = 0.0
    """p-value of zero by sign flips of the trials and a t test corrected for skewness, the larger one."""
    unseen_share: float = math.nan
    """Largest share of trials that may fail although no trial did, at a confidence of 95%."""
    tolerated_loss: float = math.nan
    """Largest loss of each of these failures, in the unit of the score, for which the interval still supports what it
    does without them: a negligible bias, or one that is not zero. NaN if it supports neither."""
    failure_loss: float | None = None
    """Loss of a failure that the user stated; 0 with folds, where failures cancel."""
    settling: Settling | None = None
    """What would settle an inconclusive verdict, if that is known."""
    disagreement: float | None = None
    """Share of the texts of an inconclusive verdict that one of the arms extra and test answers right, and the other
    one does not; None if it is unknown."""
    log_likelihood: Estimate | None = None
    """Change of the log-likelihood, if it shows a bias that the decision does not state."""
    looks: LooksTaken | None = None
    """None for a control."""
    num_shared: int = 0
    """Number of subsamples if tasks share them, so that each one, averaged over tasks, is a single observation."""
    fixed_texts: FixedTexts | None = None
    """What is known about other texts; None unless all trials of a task are known to test the same texts."""


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A diagnostic of a fit that failed."""

    name: str
    """Name of the diagnostic."""
    value: float
    """Its worst value."""
    limit: str
    """Values that it must have."""
    remedy: str
    """What the user can change."""


@dataclass(frozen=True, slots=True)
class PosteriorEvidence:
    """Posterior behind a verdict."""

    num_tasks: int
    """Number of tasks."""
    num_trials: int
    """Number of trials."""
    score: str = "score"
    """Score that the verdict is about: a `ScoreName`."""
    is_zero: bool = False
    """Whether the bias of every trial is exactly zero."""
    positive: float = math.nan
    """Probability of a bias above zero."""
    models: tuple[tuple[str, float], ...] = ()
    """Names of the models and the mean of each, if there are several."""
    failed: tuple[FailedCheck, ...] = ()
    """Checks of the fit that failed."""


Evidence: TypeAlias = TrialEvidence | PosteriorEvidence
"""Facts behind a verdict, by the kind of analysis.

Examples
--------
>>> evidence: Evidence = TrialEvidence(num_tasks=5, num_trials=200)
>>> evidence.num_trials
200
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Conclusion of an analysis about one method, as facts from which reports make sentences.

    Examples
    --------
    >>> verdict = Verdict("lsa", "bias", "equivalent", Estimate(0.001, -0.002, 0.004), region=0.01)
    >>> verdict.decision
    'equivalent'
    """

    method: str
    """Label of the method, with its model and sizes if these differ between configurations."""
    effect: str
    """'bias', 'boost', or another effect."""
    decision: Decision | ControlOutcome
    """The decision on the bias of a method, or the outcome of a control."""
    estimate: Estimate = field(default_factory=Estimate)
    """Size of the effect with its interval."""
    region: float | None = None
    """Half-width of the region of practical equivalence around 0 that the decision used."""
    unit: Unit = "difference"
    """Unit of estimate and region: 'difference' for differences of fractions, otherwise 'change'."""
    evidence: Evidence | None = None
    """Data behind the verdict; None if the analysis only has a note."""
    family: Family = field(default_factory=Family)
    """Configurations judged together."""
    control: Control = ""
    """Whether the method is a control, whose bias is known in advance. Its verdict judges the run, not the method."""
    parts: tuple[tuple[str, Key], ...] = ()
    """Columns and values that make up the label, such as (('method', 'lsa'), ('num_train', 50)); empty if the label is
    the name of the method."""
    note: str = ""
    """Sentences on what no other field holds."""
    analysis: str = ""
    """Analysis that reached the verdict, as named in the spec. Set by peekbench."""
    rows: RowName = "texts"
    """What sentences call the rows of the tasks. Set by peekbench."""

    @property
    def name(self) -> str:
        """Name of the method in the spec."""
        return str(dict(self.parts).get("method", self.method))

    @property
    def is_possible(self) -> bool:
        """Whether a decision other than 'inconclusive' is possible with these trials and this fit."""
        match self.evidence:
            case TrialEvidence() as evidence:
                return not evidence.has_too_few
            case PosteriorEvidence() as evidence:
                return not evidence.failed
        return True

    @property
    def size(self) -> BiasSize:
        """What is known about the size of a bias, relative to the region of practical equivalence."""
        if self.region is None or not self.estimate.has_interval:
            return ""
        is_valid = self.is_possible and not getattr(self.evidence, "is_zero", False)  # the interval is one of the bias
        if self.decision == "inconclusive" and self.region and is_valid:
            if self.estimate.high < self.region:
                return "not above"
            if self.estimate.low > -self.region:
                return "not below"
        if not self.decision.startswith("biased"):
            return ""
        if min(abs(self.estimate.low), abs(self.estimate.high)) >= self.region:
            return "beyond"
        return "open"
