"""An axis across whatever width a page gives it: values to places in percent."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from peekbench.formatting import with_sign
from peekbench.records.units import Unit

STEPS = tuple(digit * 10.0**power for power in range(-6, 6) for digit in (1, 2, 5))  # between ticks
MOST_TICKS = 5  # what a phone has room for
MARGIN = 0.04  # of the width, on either side


@dataclass(frozen=True, slots=True)
class Scale:
    """From `low` to `high`, which are not the same."""

    low: float
    high: float
    unit: Unit

    @classmethod
    def fitting(cls, values: Iterable[float | None], unit: Unit) -> Scale:
        """One that holds zero and every value, and a margin."""
        there = [0.0, *(value for value in values if value is not None and math.isfinite(value))]
        low, high = min(there), max(there)
        if low == high:
            low, high = (-0.01, 0.01) if unit == "difference" else (-1.0, 1.0)
        margin = (high - low) * MARGIN
        return cls(low - margin, high + margin, unit)

    def place(self, value: float) -> str:
        """Where a value is, held to the axis."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return f"{share * 100:.2f}%"

    def width(self, low: float, high: float) -> str:
        """How wide the part between two values is that the axis holds."""
        ends = (min(max(value, self.low), self.high) for value in (low, high))
        left, right = ends
        return f"{(right - left) / (self.high - self.low) * 100:.2f}%"

    def ticks(self) -> list[tuple[str, str]]:
        """(place, label) of a few round numbers, zero among them."""
        factor = 100 if self.unit == "difference" else 1
        span = (self.high - self.low) * factor
        step = next((step for step in STEPS if span / step <= MOST_TICKS), STEPS[-1])
        digits = max(0, -math.floor(math.log10(step)))
        first, last = math.ceil(self.low * factor / step), math.floor(self.high * factor / step)
        return [
            (self.place(number * step / factor), with_sign(number * step, digits)) for number in range(first, last + 1)
        ]
