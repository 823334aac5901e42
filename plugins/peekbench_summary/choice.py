"""The configurations in the score that the options choose."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from peekbench.records import ScoreName
from peekbench.results import SCORES, Configurations, configurations, resolve_score, select_score
from peekbench_summary import Summary


def resolve_options(results: pd.DataFrame, options: Summary) -> Summary:
    """Return the options with the name of the score that `score: score` stands for in these results."""
    return options.model_copy(update={"score": resolve_score(results, options.score)})


def choose_configurations(results: pd.DataFrame, options: Summary, analysis: str) -> Configurations:
    """Return the configurations of a results table in the chosen score, whose name is added to titles.

    Parameters
    ----------
    results
        The results table.
    options
        The score.
    analysis
        Name of the analysis, for errors.

    Raises
    ------
    SpecError
        If the results lack the score.
    """
    paired = configurations(select_score(results, options.score, analysis))
    if options.score == "score":
        return paired
    return replace(paired, fixed=", ".join(filter(None, (score_title(options), paired.fixed))))


def score_title(options: Summary) -> str:
    """Return the name of the chosen score in reports, in which higher is better."""
    return next(score.title for score in SCORES if score.name == options.score)


def sign_note(name: ScoreName) -> str:
    """Return a sentence about a score that reports negate, with a space before it; empty for other scores."""
    score = next(score for score in SCORES if score.name == name)
    if score.is_higher_better:
        return ""
    return f" The {score.title} is the negative of {score.name}, so that higher is better."
