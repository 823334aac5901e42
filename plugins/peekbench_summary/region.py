"""The region of practical equivalence, in the unit of the scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from peekbench.errors import SpecError
from peekbench.results import check_region, default_region
from peekbench_summary import Summary

DEFAULT_LOG_ODDS = 0.04


@dataclass(frozen=True, slots=True)
class Region:
    """Biases from -half_width to half_width are negligible."""

    half_width: float
    """Half-width in the unit of the scores."""
    log_odds: float | None = None
    """Half-width in log-odds, if it was given so."""


def make_region(scores: Mapping[str, Mapping[str, Sequence[float]]], options: Summary, *, is_accuracy: bool) -> Region:
    """Convert the half-width of a region to the unit of the scores.

    A shift of w log-odds in every task changes the mean accuracy by about w times the mean of p (1 - p) over tasks, if
    p is the task's mean accuracy of extra and test.

    Parameters
    ----------
    scores
        Arm to task to scores.
    options
        Half-width, its unit, and the score, which has a default half-width.
    is_accuracy
        Whether scores are accuracies.

    Raises
    ------
    SpecError
        If the unit is log-odds and scores are not accuracies, or the region of accuracies exceeds 20 points.
    """
    if options.region_unit == "score":
        check_region(options.region, "summary", is_accuracy=is_accuracy)
        return Region(default_region(options.score) if options.region is None else options.region)
    if not is_accuracy:
        raise SpecError(
            "analysis summary, option region_unit: 'log_odds' requires accuracies with num_test, but these scores are "
            "not accuracies; use 'score', and give the region in the unit of the scores"
        )
    half_width = DEFAULT_LOG_ODDS if options.region is None else options.region
    slopes = []
    for task, extra in scores["extra"].items():
        both = [*extra, *scores["test"][task]]
        mean = math.fsum(both) / len(both)
        slopes.append(mean * (1 - mean))
    return Region(half_width * math.fsum(slopes) / len(slopes), half_width)
