"""Draws forest plots in characters: estimates and intervals in rows on a common axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeAlias

from rich.cells import cell_len, set_cell_size

from peekbench.formatting import TICK_STEPS, format_signed, tick_decimals, with_sign
from peekbench.records.figures import Forest, Interval
from peekbench.records.units import Unit
from peekbench.report.render.wrapping import wrap

ESTIMATE, LINE, LEFT, RIGHT, ZERO = "●", "─", "├", "┤", "│"
MIN_AXIS_WIDTH = 16
WIDE_NUMBER = "+10.00"  # forests of accuracies reserve room for it, so that most of them are aligned alike
CHARACTERS_PER_TICK = 8

LineKind: TypeAlias = Literal["heading", "row", "average", "axis"]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the plot."""

    label: str
    plot: str
    numbers: str
    kind: LineKind

    def text(self) -> str:
        """Return the line without colors."""
        return self.label if self.kind == "heading" else f"{self.label}{self.plot} {self.numbers}".rstrip()


def draw_forest(forest: Forest, width: int) -> list[Line]:
    """Draw a forest plot in lines of at most `width` characters, with the numbers at the right.

    A label that is too long for its column continues in the lines below.
    """
    intervals = [interval for _, group in forest.groups for interval in group]
    numbers = _numbers(intervals, forest.unit)
    number_width = max(map(len, numbers.values()), default=0)
    longest = max((cell_len(interval.label) for interval in intervals), default=0)
    label_width = min(longest, label_room(intervals, forest.unit, width)) + 3
    factor = 100 if forest.unit == "difference" else 1
    axis = _Axis.fitting(intervals, factor, max(MIN_AXIS_WIDTH, width - label_width - number_width - 2))
    lines: list[Line] = []
    for heading, group in forest.groups:
        lines += [Line(part, axis.empty(), "", "heading") for part in wrap(heading, width)]
        for interval in group:
            first, *below = (set_cell_size(f"  {part}", label_width) for part in wrap(interval.label, label_width - 3))
            kind: LineKind = "average" if interval.is_average else "row"
            lines.append(Line(first, axis.draw(interval), numbers[id(interval)].rjust(number_width), kind))
            lines += [Line(part, axis.empty(), "", kind) for part in below]
    lines.append(Line(" " * label_width, axis.ticks(), ("points" if factor == 100 else "").rjust(number_width), "axis"))
    return lines


def label_room(intervals: Sequence[Interval], unit: Unit, width: int) -> int:
    """Return the number of characters of the longest label that `draw_forest` leaves on one line."""
    number_width = max(map(len, _numbers(intervals, unit).values()), default=0)
    return max(5, min(width * 2 // 5, width - number_width - MIN_AXIS_WIDTH - 2) - 3)


def _numbers(intervals: Sequence[Interval], unit: Unit) -> dict[int, str]:
    """Format the estimate and the ends of each interval, aligned, by the interval's id."""
    texts = {
        id(interval): [format_signed(value, unit) for value in (interval.estimate, interval.low, interval.high)]
        for interval in intervals
    }
    width = max(map(len, chain([WIDE_NUMBER], *texts.values())))
    padded = {key: [text.rjust(width) for text in parts] for key, parts in texts.items()}
    return {key: f"{estimate} [{low}, {high}]" for key, (estimate, low, high) in padded.items()}


@dataclass(frozen=True, slots=True)
class _Axis:
    """The horizontal axis, in percentage points or in the unit of the scores."""

    low: float
    high: float
    step: float
    factor: int
    """Factor from values to numbers on the axis: 100 for fractions."""
    width: int
    """Characters."""

    @classmethod
    def fitting(cls, intervals: list[Interval], factor: int, width: int) -> _Axis:
        """Return the shortest axis that contains zero and all intervals."""
        low = min([0.0, *(interval.low * factor for interval in intervals)])
        high = max([0.0, *(interval.high * factor for interval in intervals)])
        if low == high:
            low, high = -1.0, 1.0
        steps = (step for step in TICK_STEPS if (high - low) / step <= width / CHARACTERS_PER_TICK)
        return cls(low, high, next(steps, TICK_STEPS[-1]), factor, width)

    def column(self, value: float) -> int:
        return round((value - self.low) / (self.high - self.low) * (self.width - 1))

    def empty(self) -> str:
        line = [" "] * self.width
        line[self.column(0)] = ZERO
        return "".join(line)

    def draw(self, interval: Interval) -> str:
        line = list(self.empty())
        low, middle, high = (
            self.column(value * self.factor) for value in (interval.low, interval.estimate, interval.high)
        )
        for column in range(low, high + 1):
            line[column] = LINE
        if high > low:
            line[low], line[high] = LEFT, RIGHT
        line[middle] = ESTIMATE
        return "".join(line)

    def ticks(self) -> str:
        """Return the numbers below the axis, each centered; a number that would touch another one is left out."""
        line = [" "] * self.width
        numbers = range(math.ceil(self.low / self.step), math.floor(self.high / self.step) + 1)
        for tick in (number * self.step for number in sorted(numbers, key=abs)):  # zero first, so that it is kept
            text = with_sign(tick, tick_decimals(self.step))
            start = min(max(0, self.column(tick) - len(text) // 2), self.width - len(text))
            if all(cell == " " for cell in line[max(0, start - 1) : start + len(text) + 1]):
                line[start : start + len(text)] = text
        return "".join(line)
