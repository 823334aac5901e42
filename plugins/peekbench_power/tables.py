"""Columns and cells that the tables of the analysis and of the forecast share."""

from __future__ import annotations

from peekbench import Column
from peekbench_power import Power
from peekbench_power.detection import Criterion

TIME_COLUMNS = (Column("subsamples", "count"), Column("trials", "count"), Column("time", "seconds"))


def format_bias(bias: float, is_accuracy: bool) -> str:
    """Write a bias that a user has chosen: '0.5 points' for accuracies."""
    return f"{bias * 100:g} points" if is_accuracy else f"{bias:g}"


def criterion_of(options: Power) -> Criterion:
    """Return what counts as detecting a bias, or its absence."""
    return Criterion(options.power, options.alpha, options.region)
