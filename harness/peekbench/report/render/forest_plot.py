"""A forest plot in characters: estimates and intervals one below the other on one axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from rich.cells import cell_len, set_cell_size

from peekbench.formatting import format_signed, with_sign
from peekbench.records.figures import Forest, Interval
from peekbench.records.units import Unit
from peekbench.report.render.wrapping import fold

ESTIMATE, LINE, LEFT, RIGHT, ZERO = "●", "─", "├", "┤", "│"
SMALLEST_AXIS = 16
WIDE_NUMBER = "+10.00"  # which forests of accuracies have room for, so that most look alike
CHARACTERS_A_TICK = 8
STEPS = tuple(digit * 10.0**power for power in range(-4, 4) for digit in (1, 2, 5))  # between ticks


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the plot."""

    label: str
    plot: str
    numbers: str
    kind: str
    """'heading', 'row', 'average' or 'axis'."""

    def text(self) -> str:
        """The line without colors."""
        return self.label if self.kind == "heading" else f"{self.label}{self.plot} {self.numbers}".rstrip()


def draw(forest: Forest, width: int) -> list[Line]:
    """Lay a forest out in lines of at most `width` characters; every number stands beside its mark.

    Labels that are too long for their column go on in the lines below.
    """
    intervals = [interval for _, group in forest.groups for interval in group]
    numbers = _numbers(intervals, forest.unit)
    number_width = max(map(len, numbers.values()), default=0)
    longest = max((cell_len(interval.label) for interval in intervals), default=0)
    label_width = min(longest + 3, max(8, min(width * 2 // 5, width - number_width - SMALLEST_AXIS - 2)))
    scale = 100 if forest.unit == "difference" else 1
    axis = _Axis.fitting(intervals, scale, max(SMALLEST_AXIS, width - label_width - number_width - 2))
    lines: list[Line] = []
    for heading, group in forest.groups:
        lines += [Line(part, axis.empty(), "", "heading") for part in fold(heading, width)]
        for interval in group:
            first, *below = (set_cell_size(f"  {part}", label_width) for part in fold(interval.label, label_width - 3))
            kind = "average" if interval.is_average else "row"
            lines.append(Line(first, axis.draw(interval), numbers[id(interval)].rjust(number_width), kind))
            lines += [Line(part, axis.empty(), "", kind) for part in below]
    lines.append(Line(" " * label_width, axis.ticks(), ("points" if scale == 100 else "").rjust(number_width), "axis"))
    return lines


def _numbers(intervals: Sequence[Interval], unit: Unit) -> dict[int, str]:
    """Estimate and ends of each interval, by its identity, one below the other."""
    texts = {
        id(interval): [format_signed(value, unit) for value in (interval.estimate, interval.low, interval.high)]
        for interval in intervals
    }
    width = max(map(len, chain([WIDE_NUMBER], *texts.values())))
    padded = {key: [text.rjust(width) for text in parts] for key, parts in texts.items()}
    return {key: f"{estimate} [{low}, {high}]" for key, (estimate, low, high) in padded.items()}


@dataclass(frozen=True, slots=True)
class _Axis:
    low: float
    high: float
    step: float
    scale: int
    """What a fraction is multiplied with: the axis is in percentage points, or in the scores' own unit."""
    width: int

    @classmethod
    def fitting(cls, intervals: list[Interval], scale: int, width: int) -> _Axis:
        """An axis that holds zero and every interval, and is no longer than that."""
        low = min([0.0, *(interval.low * scale for interval in intervals)])
        high = max([0.0, *(interval.high * scale for interval in intervals)])
        if low == high:
            low, high = -1.0, 1.0
        fewest = (step for step in STEPS if (high - low) / step <= width / CHARACTERS_A_TICK)
        return cls(low, high, next(fewest, STEPS[-1]), scale, width)

    def column(self, value: float) -> int:
        return round((value - self.low) / (self.high - self.low) * (self.width - 1))

    def empty(self) -> str:
        line = [" "] * self.width
        line[self.column(0)] = ZERO
        return "".join(line)

    def draw(self, interval: Interval) -> str:
        line = list(self.empty())
        low, middle, high = (
            self.column(value * self.scale) for value in (interval.low, interval.estimate, interval.high)
        )
        for column in range(low, high + 1):
            line[column] = LINE
        if high > low:
            line[low], line[high] = LEFT, RIGHT
        line[middle] = ESTIMATE
        return "".join(line)

    def ticks(self) -> str:
        """Numbers below the axis, each centerd under its place; those that would touch another are left out."""
        line = [" "] * self.width
        numbers = range(math.ceil(self.low / self.step), math.floor(self.high / self.step) + 1)
        ticks = [number * self.step for number in sorted(numbers, key=abs)]
        digits = max(0, -math.floor(math.log10(self.step)))
        for tick in ticks:  # zero first, so that it is never the one left out
            text = with_sign(tick, digits)
            start = min(max(0, self.column(tick) - len(text) // 2), self.width - len(text))
            if all(cell == " " for cell in line[max(0, start - 1) : start + len(text) + 1]):
                line[start : start + len(text)] = text
        return "".join(line)
