"""Columns, units and cells that the tables of this plugin share."""

from __future__ import annotations

from collections.abc import Sequence

from peekbench import Column, Verdict
from peekbench.records import Cell, Unit
from peekbench.results import Configuration
from peekbench_summary.estimates import estimate_effect

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
