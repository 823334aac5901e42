"""Limits, tick labels and names of axes, and headings above panels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from peekbench.formatting import TICK_STEPS
from peekbench.records import Axis
from peekbench_figures.page import Page, line_height, text_width, wrap_balanced
from peekbench_figures.style import FAINT, INK, REGION, SMALL, TEXT

PADDING = 0.04  # share of the axis beyond its outermost value
GAP = 0.09  # inches between two tick labels
MAX_PREFERRED = 8  # ticks at the points of the data
MIN_TICKS = 3  # that any axis may have, however short
SPACING = 0.4  # inches between two tick labels, from middle to middle, at least
UPRIGHT_SPACING = 0.3  # the same on a vertical axis


def axis_name(axis: Axis) -> str:
    """Return the text below or beside an axis."""
    if axis.is_log:
        return f"{axis.label} (logarithmic scale)"
    return axis.label


def factor(axis: Axis) -> float:
    """Return the factor from values to drawn numbers: fractions become points or percentages."""
    if axis.unit in ("difference", "fraction", "spread"):
        return 100.0
    return 1.0


def limits(values: Iterable[float], axis: Axis) -> tuple[float, float]:
    """Return the first and the last drawn number; an axis of differences contains zero and both sides of it."""
    drawn = [value * factor(axis) for value in values if math.isfinite(value)]
    if axis.unit in ("difference", "change"):
        drawn += [0.0]
    if not drawn and axis.is_log:
        return 1.0, 10.0
    if not drawn:
        return -1.0, 1.0
    low, high = min(drawn), max(drawn)
    if axis.is_log and low == high:
        return low / 2.0, high * 2.0
    if axis.is_log:
        ratio = (high / low) ** PADDING
        return low / ratio, high * ratio
    padding = (high - low) * PADDING or max(abs(low), 1.0)
    return low - padding, high + padding


def ticks(
    axis: Axis, ends: tuple[float, float], inches: float, preferred: Sequence[float] = (), *, is_upright: bool = False
) -> dict[float, str]:
    """Return tick labels that do not touch each other, by their position.

    Parameters
    ----------
    axis
        Axis to label.
    ends
        Limits of the axis.
    inches
        Length of the axis.
    preferred
        Values of a logarithmic axis to label instead of round numbers, if there is room.
    is_upright
        Whether the axis is vertical.
    """
    low, high = ends
    if axis.is_log:
        positions = sorted({value * factor(axis) for value in preferred})
        if not 0 < len(positions) <= MAX_PREFERRED:
            positions = [*positions[:1], *positions[-1:], *(step for step in TICK_STEPS if low <= step <= high)]
        labels = {position: _format(position, axis) for position in positions}
        return _without_collisions(labels, ends, inches, is_log=True)
    spacing = UPRIGHT_SPACING if is_upright else SPACING
    for number in range(max(MIN_TICKS, int(inches / spacing)), 0, -1):
        values = map(float, MaxNLocator(number, steps=(1, 2, 5, 10)).tick_values(low, high))
        labels = {value: _format(round(value, 10), axis) for value in values if low <= value <= high}
        if is_upright or len(_without_collisions(labels, ends, inches, is_log=False)) == len(labels):
            break
    return labels


def _without_collisions(
    labels: dict[float, str], ends: tuple[float, float], inches: float, *, is_log: bool
) -> dict[float, str]:
    """Return the labels that do not touch a label before them."""
    scale: Callable[[float], float] = float
    if is_log:
        scale = math.log
    low, high = map(scale, ends)
    kept: dict[float, str] = {}
    taken: list[tuple[float, float]] = []
    for position, label in labels.items():
        middle = (scale(position) - low) / (high - low) * inches
        half = (text_width(label, SMALL) + GAP) / 2
        if all(middle + half <= left or right <= middle - half for left, right in taken):
            kept[position] = label
            taken.append((middle - half, middle + half))
    return kept


def _format(value: float, axis: Axis) -> str:
    if axis.unit == "fraction":
        return f"{value:g}%"
    if axis.unit == "count":
        return f"{value:,.0f}"
    text = f"{value:g}"
    if axis.unit in ("difference", "change") and value > 0:
        text = f"+{text}"
    return text.replace("-", "\N{MINUS SIGN}")


def set_up_x(axes: Axes, axis: Axis, ends: tuple[float, float], inches: float, preferred: Sequence[float] = ()) -> None:
    """Set the limits and the tick labels of the horizontal axis; see `ticks`."""
    if axis.is_log:
        axes.set_xscale("log")
    axes.set_xlim(*ends)
    shown = dict(sorted(ticks(axis, ends, inches, preferred).items()))
    axes.set_xticks(list(shown), list(shown.values()), minor=False)
    axes.set_xticks([], minor=True)


def mark_zero(axes: Axes, axis: Axis, ends: tuple[float, float]) -> None:
    """Draw the zero line and the region of practical equivalence on the horizontal axis."""
    if axis.region:
        half = axis.region * factor(axis)
        axes.axvspan(max(-half, ends[0]), min(half, ends[1]), color=INK, alpha=REGION, lw=0, zorder=0.5)
    if ends[0] <= 0 <= ends[1]:
        axes.axvline(0, color=INK, lw=0.7, alpha=0.6, zorder=0.7)


def set_up_y(axes: Axes, axis: Axis, ends: tuple[float, float], inches: float, *, is_labeled: bool) -> None:
    """Set the limits and the tick labels of the vertical axis, and draw its zero line and region; see `ticks`."""
    if axis.is_log:
        axes.set_yscale("log")
    axes.set_ylim(*ends)
    shown = dict(sorted(ticks(axis, ends, inches, is_upright=True).items()))
    if not is_labeled:
        shown = dict.fromkeys(shown, "")
    axes.set_yticks(list(shown), list(shown.values()))
    axes.set_yticks([], minor=True)
    axes.grid(axis="y", color=INK, alpha=FAINT / 2, lw=0.5)
    axes.set_axisbelow(True)
    if axis.region:
        half = axis.region * factor(axis)
        if -half < ends[1] and ends[0] < half:
            axes.axhspan(max(-half, ends[0]), min(half, ends[1]), color=INK, alpha=REGION, lw=0, zorder=0.5)
    if ends[0] <= 0 <= ends[1] and not axis.is_log:
        axes.axhline(0, color=INK, lw=0.7, alpha=0.6, zorder=0.7)


def explain_shading(axis: Axis) -> str:
    """Return a sentence on the shaded region, for the small print; empty if there is no region."""
    if not axis.region:
        return ""
    size = f"{axis.region * factor(axis):g}"
    if axis.unit == "difference":
        size += " points"
    return f"Shaded: differences below {size}, which are too small to matter."


MAX_LINES = 4
TICK_LABEL_HEIGHT = 0.2  # inches between an axis and its name


class Headings:
    """Headings of panels side by side, aligned at the bottom.

    Parameters
    ----------
    texts
        Heading of each panel.
    width
        Width of a panel in inches.
    """

    def __init__(self, texts: Sequence[str], width: float) -> None:
        self._lines = [
            wrap_balanced(text, width, TEXT, max_lines=MAX_LINES, weight="bold") if text else [] for text in texts
        ]
        num_lines = max(map(len, self._lines), default=0)
        self.height = num_lines * line_height(TEXT) + 0.04 if num_lines else 0.0
        """Inches."""

    def draw(self, page: Page, number: int, middle: float, top: float) -> None:
        """Write the heading of a panel, centered at `middle` and ending at `top`, the top edge of the panel."""
        lines = self._lines[number]
        for line, text in enumerate(lines):
            y = top - 0.04 - (len(lines) - line - 0.5) * line_height(TEXT)
            page.text(middle, y, text, weight="bold", ha="center")


def write_axis_name(page: Page, axis: Axis, middle: float, bottom: float, width: float) -> float:
    """Write the name of an axis below its panel, and return the lower edge of the text.

    Parameters
    ----------
    page
        Page of the panel.
    axis
        Horizontal axis of the panel.
    middle, bottom, width
        Center, lower edge and available width of the panel, in inches.
    """
    below = bottom + TICK_LABEL_HEIGHT
    for text in wrap_balanced(axis_name(axis), width, TEXT, max_lines=MAX_LINES):
        page.text(middle, below + line_height(TEXT) / 2, text, ha="center")
        below += line_height(TEXT)
    return below
