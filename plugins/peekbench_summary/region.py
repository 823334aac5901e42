"""The region of practical equivalence, in the unit of the scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from peekbench.errors import SpecError

RegionUnit: TypeAlias = Literal["score", "log_odds"]
DEFAULTS: dict[RegionUnit, float] = {"score": 0.005, "log_odds": 0.04}


@dataclass(frozen=True, slots=True)
class Region:
    """Biases from -half_width to half_width do not matter."""

    half_width: float
    """A fraction, as the scores are."""
    log_odds: float | None = None
    """Where the region was given so."""


def region_of(
    arms: Mapping[str, Mapping[str, Sequence[float]]], unit: RegionUnit, width: float | None, is_accuracy: bool
) -> Region:
    """Half a region's width in the unit of the scores.

    A shift of w log-odds in every task moves the mean accuracy by about w times the mean of p (1 - p) over tasks, with
    p the task's mean accuracy of extra and test.

    Parameters
    ----------
    arms
        Arm to task to scores.
    width
        Half the width in `unit`; by default that of `DEFAULTS`.

    Raises
    ------
    SpecError
        Where log-odds are asked for of scores that are no accuracies.
    """
    width = DEFAULTS[unit] if width is None else width
    if unit == "score":
        return Region(width)
    if not is_accuracy:
        raise SpecError(
            "analysis summary, option region_unit: 'log_odds' needs accuracies and num_test, and these scores have "
            "none; use 'score', with a region in their own unit"
        )
    slopes = []
    for task, extra in arms["extra"].items():
        both = [*extra, *arms["test"][task]]
        mean = math.fsum(both) / len(both)
        slopes.append(mean * (1 - mean))
    return Region(width * math.fsum(slopes) / len(slopes), width)
