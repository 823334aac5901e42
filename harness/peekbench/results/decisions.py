"""The rules by which an interval becomes a verdict."""

from __future__ import annotations

from typing import Literal, TypeAlias

from peekbench.records.analysis import Decision, Verdict

ControlOutcome: TypeAlias = Literal["passed", "undecided", "failed"]


def control_outcome(verdict: Verdict) -> ControlOutcome:
    """Whether a run finds what is known of a control beforehand.

    A negative control has passed where its interval holds zero, or its bias is exactly zero; a positive one where its
    interval lies above zero, and is undecided where it holds zero, since the planted bias may be too small for the run.
    """
    low, high = verdict.low, verdict.high
    if low is None or high is None:
        return "passed" if verdict.control == "negative" and verdict.decision == "equivalent" else "undecided"
    if verdict.control == "negative":
        return "passed" if low <= 0 <= high else "failed"
    if low > 0:
        return "passed"
    return "undecided" if high >= 0 else "failed"


def decide(low: float, high: float, region: float) -> Decision:
    """What an interval says of a bias: the rule that verdicts share.

    Parameters
    ----------
    region
        Half-width of the region of practical equivalence, in the interval's unit.
    """
    if -region <= low and high <= region:
        return "equivalent"
    if low > 0:
        return "biased up"
    return "biased down" if high < 0 else "inconclusive"
