"""A forest plot in characters: estimates and intervals one below the other on one axis."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from peekbench.records import Forest, Interval
from peekbench.report.folding import fold
from peekbench.report.numbers import signed, with_sign

ESTIMATE, LINE, LEFT, RIGHT, ZERO = "●", "─", "├", "┤", "│"
SMALLEST_AXIS = 16
CHARACTERS_A_TICK = 8
STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 25, 50)  # percentage points between ticks


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the plot."""

    label: str
    plot: str
    numbers: str
    kind: str
    """'heading', 'row', 'average' or 'axis'."""

    def text(self) -> str:
        """The line without colours."""
        return self.label if self.kind == "heading" else f"{self.label}{self.plot} {self.numbers}".rstrip()


def draw(forest: Forest, width: int) -> list[Line]:
    """Lay a forest out in lines of at most `width` characters; every number stands beside its mark.

    Labels that are too long for their column go on in the lines below.
    """
    intervals = [interval for _, group in forest.groups for interval in group]
    numbers = {id(interval): _numbers(interval) for interval in intervals}
    number_width = max(map(len, numbers.values()), default=0)
    longest = max((cell_len(interval.label) for interval in intervals), default=0)
    label_width = min(longest + 3, max(8, min(width * 2 // 5, width - number_width - SMALLEST_AXIS - 2)))
    axis = _Axis.fitting(intervals, max(SMALLEST_AXIS, width - label_width - number_width - 2))
    lines: list[Line] = []
    for heading, group in forest.groups:
        lines += [Line(part, axis.empty(), "", "heading") for part in fold(heading, width)]
        for interval in group:
            first, *below = (set_cell_size(f"  {part}", label_width) for part in fold(interval.label, label_width - 3))
            kind = "average" if interval.is_average else "row"
            lines.append(Line(first, axis.draw(interval), numbers[id(interval)].rjust(number_width), kind))
            lines += [Line(part, axis.empty(), "", kind) for part in below]
    lines.append(Line(" " * label_width, axis.ticks(), "points".rjust(number_width), "axis"))
    return lines


def _numbers(interval: Interval) -> str:
    low, estimate, high = (signed(value, "difference") for value in (interval.low, interval.estimate, interval.high))
    return f"{estimate:>6} [{low:>6}, {high:>6}]"


@dataclass(frozen=True, slots=True)
class _Axis:
    low: float
    high: float
    step: float
    width: int

    @classmethod
    def fitting(cls, intervals: list[Interval], width: int) -> _Axis:
        """An axis in percentage points that holds zero and every interval, and is no longer than that."""
        low = min([0.0, *(interval.low * 100 for interval in intervals)])
        high = max([0.0, *(interval.high * 100 for interval in intervals)])
        if low == high:
            low, high = -1.0, 1.0
        fewest = (step for step in STEPS if (high - low) / step <= width / CHARACTERS_A_TICK)
        return cls(low, high, next(fewest, STEPS[-1]), width)

    def column(self, points: float) -> int:
        return round((points - self.low) / (self.high - self.low) * (self.width - 1))

    def empty(self) -> str:
        line = [" "] * self.width
        line[self.column(0)] = ZERO
        return "".join(line)

    def draw(self, interval: Interval) -> str:
        line = list(self.empty())
        low, middle, high = (self.column(value * 100) for value in (interval.low, interval.estimate, interval.high))
        for column in range(low, high + 1):
            line[column] = LINE
        if high > low:
            line[low], line[high] = LEFT, RIGHT
        line[middle] = ESTIMATE
        return "".join(line)

    def ticks(self) -> str:
        """Numbers below the axis, each centred under its place; those that would touch another are left out."""
        line = [" "] * self.width
        numbers = range(math.ceil(self.low / self.step), math.floor(self.high / self.step) + 1)
        ticks = [number * self.step for number in sorted(numbers, key=abs)]
        for tick in ticks:  # zero first, so that it is never the one left out
            text = with_sign(tick, 0 if self.step >= 1 else 1)
            start = min(max(0, self.column(tick) - len(text) // 2), self.width - len(text))
            if all(cell == " " for cell in line[max(0, start - 1) : start + len(text) + 1]):
                line[start : start + len(text)] = text
        return "".join(line)
