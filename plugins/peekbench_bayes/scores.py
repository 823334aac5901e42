"""The score that an analysis is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import pandas as pd

from peekbench.results import check_region, default_region, resolve_score
from peekbench_bayes.arrays import PairedArms
from peekbench_bayes.options import Hierarchical, Meta, OfScore, PriorCheck, Recovery

OptionsOfScore = TypeVar("OptionsOfScore", bound=OfScore)

LOG_ODDS_REGION = 0.04  # the study's


def resolve_options(results: pd.DataFrame, options: OptionsOfScore) -> OptionsOfScore:
    """Return the options with the name of the score that `score: score` stands for in these results."""
    return options.model_copy(update={"score": resolve_score(results, options.score)})


def region_of(
    options: Hierarchical | Meta | PriorCheck | Recovery, analysis: str, splits: Sequence[PairedArms]
) -> float:
    """Return the half-width of the region of practical equivalence: the option, or its default.

    Parameters
    ----------
    options
        Options with the name of the score.
    analysis
        Name of the analysis, for errors.
    splits
        Paired arms, which tell whether scores are accuracies.

    Raises
    ------
    SpecError
        If the region of accuracies exceeds 20 points.
    """
    is_log_odds = isinstance(options, Meta) and options.preset != "calibrated"
    is_accuracy = not is_log_odds and all(arms.is_accuracy for arms in splits)
    check_region(options.region, analysis, is_accuracy=is_accuracy)
    if options.region is not None:
        return options.region
    if is_log_odds:
        return LOG_ODDS_REGION
    return default_region(options.score)
