"""The score and the region of practical equivalence that an analysis judges, and what an interval says about a bias."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peekbench.errors import SpecError
from peekbench.records.scores import SCORE_NAMES, find_score
from peekbench.records.verdicts import Decision

if TYPE_CHECKING:
    import pandas as pd


def select_score(results: pd.DataFrame, name: str, analysis: str) -> pd.DataFrame:
    """Return the results with the chosen score in the column `score`, so that higher is better.

    Parameters
    ----------
    results
        The results table.
    name
        'score', which leaves the results unchanged, or another score. Scores of which less is better, such as the log
        loss, are negated.
    analysis
        Name of the analysis, for errors.

    Returns
    -------
    pandas.DataFrame
        If another score was chosen, `num_correct` is missing, because the score is not a count of correct answers.

    Raises
    ------
    SpecError
        If the results lack the score; the error names the scores that are available.

    Examples
    --------
    >>> import pandas as pd
    >>> from peekbench.results import tidy
    >>> scores = pd.DataFrame({"task": "news", "arm": ["extra", "test"], "score": [0.7, 0.8], "log_loss": [0.9, 0.6]})
    >>> select_score(tidy(scores, "my scores"), "log_loss", "summary")["score"].tolist()
    [-0.9, -0.6]
    """
    if name == "score":
        return results
    values = results.reindex(columns=[name])[name]
    if num_missing := int(values.isna().sum()):
        available = ", ".join(score for score in SCORE_NAMES if results[score].notna().all())
        raise SpecError(
            f"analysis {analysis}, option score: {name} is missing in {num_missing:,} of {len(results):,} rows; add "
            f"it, or use a score that all rows have: {available}"
        )
    if not find_score(name).is_higher_better:
        values = -values
    return results.assign(score=values, num_correct=None, percentages="")


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
