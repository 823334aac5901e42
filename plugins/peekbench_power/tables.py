"""Columns and cells that the tables of the analysis and of the forecast share."""

from __future__ import annotations

from peekbench import Column
from peekbench.records import Unit

TIME_COLUMNS = (Column("subsamples", "count"), Column("trials", "count"), Column("time", "seconds"))


def spread_unit(is_accuracy: bool) -> Unit:
    """Return the unit of standard deviations and detectable biases: points for accuracies."""
    return "spread" if is_accuracy else "number"


def format_bias(bias: float, is_accuracy: bool) -> str:
    """Write a bias that a user has chosen: '0.5 points' for accuracies."""
    return f"{bias * 100:g} points" if is_accuracy else f"{bias:g}"
