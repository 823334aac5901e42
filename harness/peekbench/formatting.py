"""Numbers, and how many there are of what, as a reader expects them."""

from __future__ import annotations

import math
import re

from peekbench.records.analysis import Cell
from peekbench.records.units import Unit

UNKNOWN = "-"


def pluralize(number: int, noun: str, plural: str = "") -> str:
    """How many there are of something: '1 trial', '1,200 trials', '2 analyses'."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def format_cell(value: Cell, unit: Unit) -> str:
    """A cell as text: a fraction as percent, a difference of fractions as signed percentage points."""
    if value is None:
        return UNKNOWN
    if isinstance(value, str | bool):
        return str(value)
    if unit == "text":
        return str(value)
    if unit == "count":
        return f"{value:,.0f}"
    if unit == "fraction":
        return f"{value * 100:.1f}%"
    if unit == "difference":
        return format_signed(value, unit)
    if unit == "spread":
        return f"{value * 100:.2f}"
    if unit == "p_value":
        return "<0.001" if value < 0.001 else f"{value:.3f}"
    if unit == "seconds":
        return f"{value:.3f} s" if value < 10 else f"{value:,.0f} s"
    if unit == "change":
        return format_signed(value, unit)
    return without_negative_zero(f"{value:.4g}")


def format_signed(value: float, unit: Unit) -> str:
    """What two scores differ by, with its sign: percentage points where the unit is 'difference', else as it is."""
    return with_sign(value * 100, 2) if unit == "difference" else with_sign(value, 4)


def with_sign(number: float, digits: int) -> str:
    """A number with its sign; zero, also what is rounded to it, has none."""
    text = f"{number:+.{digits}f}"
    return text if float(text) else text[1:]


def without_negative_zero(text: str) -> str:
    return text[1:] if text.startswith("-") and not float(text) else text


class ScoreWords:
    """Writes scores in a sentence as a reader expects them: accuracies in points, others as they are."""

    def __init__(self, is_accuracy: bool) -> None:
        self._is_accuracy = is_accuracy
        self.noun, self.unit = ("accuracy", " points") if is_accuracy else ("the score", "")

    def format_signed(self, value: float) -> str:
        return format_signed(value, "difference" if self._is_accuracy else "number")

    def size(self, value: float) -> str:
        return f"{value * 100:.2f} points" if self._is_accuracy else f"{value:.4f}"


TICK_STEPS = tuple(digit * 10.0**power for power in range(-6, 10) for digit in (1, 2, 5))
"""Distances between the round numbers on an axis, in ascending order."""

NAME_PARTS = re.compile(r"(?<=[-_/.])(?=[^\W\d])")
"""Positions at which a long name may be broken: community-|datasets/|disaster_|response_|messages."""


def tick_decimals(step: float) -> int:
    """Return the number of decimals that numbers on an axis need.

    Parameters
    ----------
    step
        Distance between two numbers, one of `TICK_STEPS`.

    Examples
    --------
    >>> tick_decimals(0.5), tick_decimals(0.02), tick_decimals(10.0)
    (1, 2, 0)
    """
    return max(0, -math.floor(math.log10(step) + 1e-9))
