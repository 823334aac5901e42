"""Summaries of draws and of intervals that tables, figures and verdicts share."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from peekbench import Column, Estimate
from peekbench.records import Cell, Decision, FloatArray, Unit
from peekbench.results import decide

DECISIONS: tuple[Decision, ...] = ("biased up", "biased down", "equivalent", "inconclusive")
"""Decisions that an interval can lead to."""


@dataclass(frozen=True, slots=True)
class Summary(Estimate):
    """Posterior mean, central interval, standard deviation (`standard_error`), and probability of a positive value."""

    positive: float = math.nan


def summarize(draws: FloatArray, level: float) -> Summary:
    """Summarize the draws of one quantity.

    Parameters
    ----------
    draws
        Draws, in an array of any shape.
    level
        Probability of the interval.

    Returns
    -------
    Summary
        Summary of all draws together.
    """
    low, high = np.quantile(draws, interval_ends(level)).tolist()
    return Summary(float(draws.mean()), low, high, float(draws.std()), level, float((draws > 0).mean()))


def interval_ends(level: float) -> tuple[float, float]:
    """Return the quantiles at the ends of a central interval.

    >>> interval_ends(0.5)
    (0.25, 0.75)
    """
    return (1 - level) / 2, (1 + level) / 2


def decision_columns() -> tuple[Column, ...]:
    """Return one column for each decision."""
    return tuple(Column(decision, "fraction") for decision in DECISIONS)


def decision_shares(intervals: Iterable[tuple[float, float]], region: float) -> tuple[Cell, ...]:
    """Return the share of intervals with each decision, in the order of `decision_columns`."""
    counts = Counter(decide(low, high, region) for low, high in intervals)
    total = counts.total()
    return tuple(counts[decision] / total for decision in DECISIONS)


def format_region(region: float, unit: Unit) -> str:
    """Return the half-width of a region as text: '0.5 points'."""
    return f"{region * 100:g} points" if unit == "difference" else f"{region:g}"
