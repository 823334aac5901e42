"""Columns and cells that the tables of the analysis and of the forecast share."""

from __future__ import annotations

from peekbench import Column

TIME_COLUMNS = (Column("subsamples", "count"), Column("trials", "count"), Column("time", "seconds"))


def format_bias(bias: float, is_accuracy: bool) -> str:
    """Write a bias that a user has chosen: '0.5 points' for accuracies."""
    return f"{bias * 100:g} points" if is_accuracy else f"{bias:g}"
