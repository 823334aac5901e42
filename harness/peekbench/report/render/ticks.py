"""An axis across the width of an HTML page: positions are percentages, so that the page can have any width."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from peekbench.formatting import TICK_STEPS, tick_decimals, with_sign
from peekbench.records.units import Unit

MAX_TICKS = 5  # that fit on a phone
MARGIN = 0.04  # share of the width, on either side


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear axis from `low` to `high`."""

    low: float
    high: float
    unit: Unit

    @classmethod
    def fitting(cls, values: Iterable[float | None], unit: Unit) -> Scale:
        """Return an axis that contains zero and all finite values, with a margin.

        Parameters
        ----------
        values
            Values to show; None and values that are not finite are ignored.
        unit
            Unit of the values.
        """
        finite = [0.0, *(value for value in values if value is not None and math.isfinite(value))]
        low, high = min(finite), max(finite)
        if low == high:
            low, high = (-0.01, 0.01) if unit == "difference" else (-1.0, 1.0)
        margin = (high - low) * MARGIN
        return cls(low - margin, high + margin, unit)

    def position(self, value: float) -> str:
        """Return the position of a value, limited to the axis, as a percentage."""
        share = (self._limit(value) - self.low) / (self.high - self.low)
        return f"{share * 100:.2f}%"

    def width(self, low: float, high: float) -> str:
        """Return the width between two values, limited to the axis, as a percentage."""
        return f"{(self._limit(high) - self._limit(low)) / (self.high - self.low) * 100:.2f}%"

    def _limit(self, value: float) -> float:
        return min(max(value, self.low), self.high)

    def ticks(self) -> list[tuple[str, str]]:
        """Return (position, label) of a few round numbers, including zero."""
        factor = 100 if self.unit == "difference" else 1
        span = (self.high - self.low) * factor
        step = next((step for step in TICK_STEPS if span / step <= MAX_TICKS), TICK_STEPS[-1])
        first, last = math.ceil(self.low * factor / step), math.floor(self.high * factor / step)
        return [
            (self.position(number * step / factor), with_sign(number * step, tick_decimals(step)))
            for number in range(first, last + 1)
        ]
