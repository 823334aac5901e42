"""What the tables of this plugin share: the configurations in the chosen score, and columns of intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from peekbench import Column, Verdict
from peekbench.records import Cell, ScoreName, Unit
from peekbench.results import SCORES, Configuration, Configurations, configurations, resolve_score, select_score
from peekbench_summary import Summary
from peekbench_summary.estimates import estimate_effect


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


EFFECTS = ("bias", "boost")


def interval_columns(name: str, unit: Unit) -> tuple[Column, Column, Column]:
    """Return the columns of an estimate and of the limits of its interval."""
    return Column(name, unit), Column(f"{name}, low", unit), Column(f"{name}, high", unit)


def effect_columns(effects: Sequence[str], unit: Unit) -> list[Column]:
    """Return the columns of `interval_columns` for each effect."""
    return [column for effect in effects for column in interval_columns(effect, unit)]


def effect_cells(configuration: Configuration, effects: Sequence[str], level: float, verdict: Verdict) -> list[Cell]:
    """Return the cells for `effect_columns`: each effect on average over these tasks, with its interval.

    The interval of the bias is that of the verdict; others are not adjusted for the number of configurations.
    """
    cells: list[Cell] = []
    for effect in effects:
        if effect == verdict.effect:
            cells += [verdict.estimate.mean, *verdict.estimate.limits]
            continue
        estimate = estimate_effect(configuration, effect, level)
        cells += [estimate.mean, *estimate.limits]
    return cells
