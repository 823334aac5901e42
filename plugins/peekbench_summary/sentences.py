"""The sentences that state verdicts."""

from __future__ import annotations

from dataclasses import dataclass

from peekbench.formatting import ScoreWords, format_cell, pluralize, state_no_effect
from peekbench.records import Decision
from peekbench.results import decide
from peekbench_summary.estimates import Estimate, estimate_other_tasks, task_means
from peekbench_summary.evidence import Conclusion, Evidence
from peekbench_summary.sample_size import advise

MIN_SUBSAMPLES = 5  # per task, from which the sentence says how many more are needed


@dataclass(frozen=True, slots=True)
class Finding:
    """What a sentence states about one configuration."""

    evidence: Evidence
    conclusion: Conclusion
    biased_tasks: tuple[int, int]
    """Numbers of tasks whose own bias is significantly positive and significantly negative."""
    level: float
    """One minus the error rate of the family."""
    family: int = 1
    """Number of configurations judged together."""
    unadjusted: Decision | None = None
    """The decision without the adjustment for a family of several."""

    @property
    def effective_level(self) -> float:
        """Coverage of the interval as that of a single configuration examined once."""
        return 1 - self.evidence.bias.levels.now(self.conclusion.alpha)


def decide_from(estimate: Estimate, region: float) -> Decision:
    """Apply the decision rule to an interval; 'inconclusive' without one."""
    return decide(estimate.low, estimate.high, region) if estimate.has_interval else "inconclusive"


def state(finding: Finding, words: ScoreWords) -> str:
    """State a verdict, its interval, the differences between tasks, and the verdict without a family.

    Parameters
    ----------
    finding
        The verdict and the evidence.
    words
        Words for the scores.
    """
    bias, conclusion = finding.evidence.bias, finding.conclusion
    if conclusion.decision == "inert":
        return (
            f"its predictions are the same with the texts of extra and of test in all {bias.num_trials:,} trials, so "
            "they do not depend on the unlabeled texts and cannot show a bias; check that the method uses them."
        )
    if conclusion.decision == "no signal":
        return (
            "its predictions carry no information on the labels (their balanced accuracy, or R^2, is not above that of "
            "chance), so a bias could not be seen; use more train texts, or other options of the method."
        )
    if bias.is_zero:
        text = _state_zero(finding, words)
    elif not conclusion.estimate.has_interval:
        amount = f"{words.format_signed(conclusion.estimate.mean)}{words.unit}"
        return (
            f"a bias of {amount} {_scope(len(bias.tasks))}; its uncertainty is unknown because a task has only one "
            "subsample; draw more subsamples."
        )
    else:
        text = _state_bias(finding, words)
    if finding.unadjusted not in (None, conclusion.decision):
        text += f" Without the adjustment for {finding.family} configurations, it would be {finding.unadjusted}."
    return text


def _scope(num_tasks: int) -> str:
    return "on these texts" if num_tasks == 1 else f"on average over these texts of {num_tasks} tasks"


def _state_zero(finding: Finding, words: ScoreWords) -> str:
    """State that no trial has a bias, and the largest bias that the trials may have missed."""
    bias, conclusion = finding.evidence.bias, finding.conclusion
    text = state_no_effect(bias.num_trials)
    if conclusion.estimate.has_interval:
        share, interval = conclusion.estimate.high, _name_interval(finding).removesuffix(":")
        text = f"{text[:-1]}, but up to {share:.1%} of trials may have one ({interval})."
    if conclusion.decision == "inconclusive":
        text += f" However, {_advise(finding, words)}."
    return text


def _name_interval(finding: Finding) -> str:
    adjusted = f", adjusted for {finding.family} configurations:" if finding.family > 1 else ""
    return f"{finding.level:.0%} interval{adjusted}"


def _state_bias(finding: Finding, words: ScoreWords) -> str:
    """State a bias that is not exactly zero."""
    bias, conclusion = finding.evidence.bias, finding.conclusion
    estimate, region = conclusion.estimate, bias.region
    half_width = words.size(region.half_width)
    if region.log_odds is not None:
        half_width += f" ({region.log_odds:g} log-odds)"
    text = words.state_bias(
        conclusion.decision,
        estimate.mean,
        (estimate.low, estimate.high),
        interval=_name_interval(finding),
        region=half_width,
        scope=_scope(len(bias.tasks)),
    )
    if conclusion.decision == "inconclusive":
        text += f"; {_advise(finding, words)}"
    elif conclusion.decision != "equivalent":
        smallest = min(abs(estimate.low), abs(estimate.high))
        if smallest < region.half_width:
            text += f", possibly by as little as {words.size(smallest)}, which would be negligible"
    return f"{text}.{_describe_tasks(finding, words)}"


def _advise(finding: Finding, words: ScoreWords) -> str:
    """Say what an inconclusive verdict lacks: trials for any test, or what would settle it."""
    bias, alpha = finding.evidence.bias, finding.conclusion.alpha
    needed = bias.needed_subsamples(alpha)
    if 2.0 ** (1 - bias.num_trials) > bias.levels.now(alpha):
        extended = ", so the interval is extended to 0" * finding.conclusion.is_extended
        return (
            f"{pluralize(bias.num_trials, 'trial')} cannot support a verdict at this level, which takes at least "
            f"{pluralize(needed, 'subsample')} per task{extended}"
        )
    if bias.is_zero:
        trials = pluralize(bias.num_trials, "trial")
        return f"{trials} are too few to exclude a bias that is not negligible; draw more subsamples"
    reason = ""
    if finding.conclusion.is_extended:
        p = format_cell(finding.evidence.p_robust, "p_value")
        reason = (
            "the interval is extended to 0, because sign flips of the trials, or a t test corrected for skewness, do "
            f"not exclude it (p = {p}); "
        )
    if min(map(len, bias.tasks)) < MIN_SUBSAMPLES:
        return f"{reason}draw more subsamples"
    return reason + advise(bias, alpha, words)


def _describe_tasks(finding: Finding, words: ScoreWords) -> str:
    """Describe what the average hides: the range over tasks, tasks with a bias of their own, and other tasks."""
    bias = finding.evidence.bias
    if len(bias.tasks) < 2:
        return ""
    means = task_means(bias.tasks)
    span = f"{words.format_signed(min(means))} to {words.format_signed(max(means))}"
    counts = finding.biased_tasks
    directions = ", ".join(f"{number} {way}" for number, way in zip(counts, ("up", "down"), strict=True) if number)
    significant = f"{sum(counts) or 'none'} of {len(bias.tasks)} tasks{f' ({directions})' * any(counts)}"
    text = f" By task, the bias ranges from {span} and differs from zero in {significant}"
    if not any(counts) and 2.0 ** (1 - max(map(len, bias.tasks))) > 1 - finding.effective_level:
        text += ", each of which has too few subsamples for a test of its own"
    other = estimate_other_tasks(bias.tasks, finding.effective_level, bias.step)
    if other.has_interval and finding.conclusion.decision != decide_from(other, bias.region.half_width):
        limits = f"{words.format_signed(other.low)} to {words.format_signed(other.high)}"
        text += f"; for other tasks like these, the interval is {limits}"
    return text + "."
