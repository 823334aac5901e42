"""The rules that turn an interval into a verdict."""

from __future__ import annotations

from peekbench.records.analysis import ControlOutcome, Decision, Verdict


def decide(low: float, high: float, region: float) -> Decision:
    """Decide what an interval says about a bias.

    Parameters
    ----------
    low, high
        Ends of the interval, in the same unit as `region`.
    region
        Half-width of the region of practical equivalence around zero.

    Returns
    -------
    {'equivalent', 'biased up', 'biased down', 'inconclusive'}
        'equivalent' if the interval is inside the region; otherwise 'biased up' or 'biased down' if it excludes zero;
        otherwise 'inconclusive'.

    Examples
    --------
    >>> decide(0.002, 0.008, region=0.01)
    'equivalent'
    >>> decide(0.002, 0.018, region=0.01)
    'biased up'
    """
    if -region <= low and high <= region:
        return "equivalent"
    if low > 0:
        return "biased up"
    return "biased down" if high < 0 else "inconclusive"


def control_outcome(verdict: Verdict) -> ControlOutcome:
    """Return whether a run finds the known bias of a control.

    Parameters
    ----------
    verdict
        Verdict about a control, with the decision that the same interval would give for a method. A negative control
        passes if its interval contains zero or its bias is exactly zero. A positive control passes if its interval is
        above zero. It is undecided if its interval contains zero, because the planted bias may be too small for the
        run.

    Returns
    -------
    {'passed', 'undecided', 'failed'}
        Outcome of the control.

    Examples
    --------
    >>> control_outcome(Verdict("null", "bias", "inconclusive", "", low=-0.01, high=0.02, control="negative"))
    'passed'
    """
    low, high = verdict.low, verdict.high
    if low is None or high is None:
        return "passed" if verdict.control == "negative" and verdict.decision == "equivalent" else "undecided"
    if verdict.control == "negative":
        return "passed" if low <= 0 <= high else "failed"
    if low > 0:
        return "passed"
    return "undecided" if high >= 0 else "failed"
