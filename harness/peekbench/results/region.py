"""The region of practical equivalence, and what an interval says about a bias."""

from __future__ import annotations

from peekbench.errors import SpecError
from peekbench.records.scores import find_score
from peekbench.records.verdicts import Decision


def default_region(name: str) -> float:
    """Return the default half-width of the region of practical equivalence.

    Parameters
    ----------
    name
        Name of the score, see `peekbench.records.scores`.

    Returns
    -------
    float
        In the unit of the score; accuracies and macro-F1 are fractions, log losses are in nats.

    Raises
    ------
    SpecError
        If it is an error or a loss of scikit-learn.

    Examples
    --------
    >>> default_region("log_loss")
    0.01
    """
    if name.startswith("neg_") and name != "neg_brier_score":
        raise SpecError(
            f"the score {name} has no default region of practical equivalence, because its unit is that of the data; "
            "set the option `region` of the analysis, in Python region=..., to the largest change that is negligible"
        )
    return find_score(name).region


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
    if high < 0:
        return "biased down"
    return "inconclusive"
