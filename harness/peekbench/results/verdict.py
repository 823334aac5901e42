"""The rules that turn an interval into a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from peekbench.records.verdicts import ControlOutcome, Decision, FamilyChoice, Verdict

if TYPE_CHECKING:
    from peekbench.results.paired_effects import Configuration


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


def find_families(configurations: Sequence[Configuration], choice: FamilyChoice) -> list[list[int]]:
    """Group the configurations whose verdicts are adjusted together.

    Parameters
    ----------
    configurations
        The configurations that a report judges.
    choice
        'all', 'method' or 'none'.

    Returns
    -------
    list of list of int
        Positions of the members of each family. A control is a family of its own, because its bias is known.

    Examples
    --------
    >>> import pandas as pd
    >>> from peekbench.results import configurations, tidy
    >>> scores = pd.DataFrame({"task": "news", "method": ["lsa", "tapt", "tapt"], "num_train": [50, 50, 100]})
    >>> paired = configurations(tidy(scores.assign(extra=0.5, test=0.5), "my scores"))
    >>> find_families(paired.configurations, "method")
    [[0], [1, 2]]
    """
    families: dict[object, list[int]] = {}
    for position, configuration in enumerate(configurations):
        key = {"all": "all", "method": configuration.key[0], "none": position}[choice]
        families.setdefault(("control", position) if configuration.control else key, []).append(position)
    return list(families.values())


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
    >>> from peekbench import Estimate, Verdict
    >>> control_outcome(Verdict("null", "bias", "inconclusive", Estimate(0.0, -0.01, 0.02), control="negative"))
    'passed'
    """
    low, high = verdict.estimate.low, verdict.estimate.high
    if not verdict.estimate.has_interval:
        return "passed" if verdict.control == "negative" and verdict.estimate.mean == 0 else "undecided"
    if verdict.control == "negative":
        return "passed" if low <= 0 <= high else "failed"
    if low > 0:
        return "passed"
    return "undecided" if high >= 0 else "failed"
