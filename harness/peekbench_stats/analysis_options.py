"""Options that several analyses have: the score, the region of practical equivalence, and families of verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from peekbench.errors import ResultsError, SpecError
from peekbench.formatting import list_names
from peekbench.records import POINTS, FamilyChoice, ScoreUnits
from peekbench.records.scores import SCORE_NAMES, find_score
from peekbench.results import Configuration

if TYPE_CHECKING:
    import pandas as pd

MAX_NAMED = 5  # tasks named in an error
MAX_REGION = 0.2  # of accuracy; a larger region is one point written as 1, or half a point as 0.5


def resolve_score(results: pd.DataFrame, name: str) -> str:
    """Return the score that 'score' stands for, if it has a name of its own: bits per byte in language modeling.

    Parameters
    ----------
    results
        The results table.
    name
        The option of an analysis. Names other than 'score' are returned unchanged.

    Returns
    -------
    str
        'bits_per_byte' instead of 'score' if all scores are bits per byte.

    Raises
    ------
    ResultsError
        If only some are: a mean over different scores means nothing.

    Examples
    --------
    >>> import pandas as pd
    >>> from peekbench.results import tidy
    >>> scores = pd.DataFrame({"task": "news", "arm": ["extra", "test"], "bits_per_byte": [1.3, 0.9]})
    >>> resolve_score(tidy(scores, "my scores"), "score")
    'bits_per_byte'
    """
    if name != "score":
        return name
    is_text_scored = results["num_correct"].isna() & (results["score"] == -results["bits_per_byte"])
    if not is_text_scored.any():
        return name
    if not is_text_scored.all():
        tasks = list_names(results["task"][is_text_scored].unique().tolist(), MAX_NAMED)
        raise ResultsError(f"only some rows are scored in bits per byte, those of {tasks}; analyze them apart")
    return "bits_per_byte"


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


def check_region(region: float | None, analysis: str, *, units: ScoreUnits, option: str = "region") -> None:
    """Refuse a region of practical equivalence that was written in points instead of as a fraction.

    Parameters
    ----------
    region
        Half-width in the unit of the score; None for the default.
    analysis
        Name of the analysis, for errors.
    units
        Units of the scores. Nothing is refused if these are not fractions.
    option
        Name of the option, for errors.

    Raises
    ------
    SpecError
        If the region of fractions exceeds 20 points.

    Examples
    --------
    >>> check_region(0.01, "summary", units=POINTS)
    >>> check_region(1, "summary", units=POINTS)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    peekbench.errors.SpecError: analysis summary, option region: 1 is 100 points of the score; give a fraction, ...
    """
    if units == POINTS and region is not None and region > MAX_REGION:
        raise SpecError(
            f"analysis {analysis}, option {option}: {region:g} is {100 * region:g} points of the score; give a "
            "fraction, such as 0.01 for one point"
        )


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
        key: object = {"all": "all", "method": configuration.key[0], "none": position}[choice]
        if configuration.control:
            key = ("control", position)
        families.setdefault(key, []).append(position)
    return list(families.values())
