"""Figures with a row a task (or a posterior) and a column a configuration: forests, violins, densities."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from peekbench.formatting import format_signed
from peekbench_figures.around import Headings, name_below
from peekbench_figures.density import ends as density_ends
from peekbench_figures.marks import draw_density, draw_interval, draw_violin
from peekbench_figures.page import MARGIN, WIDTH, Page, fold, line_height, text_width
from peekbench_figures.scale import factor, have_own, in_words, mark_zero, set_up_x, shared
from peekbench_figures.style import FAINTER, INK, SMALL, TEXT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from peekbench.figures import Axis, Densities, Forest, Interval, Violins

WIDEST_LABEL = 2.0  # inches
MOST_COLUMNS = 5  # side by side
BETWEEN = 0.16  # inches between columns
NUMBERS = 1.75  # inches for estimate and interval in digits
AVERAGES = "Dot: estimate; line: interval; diamond: average, as wide as its interval."
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Grid(Generic[T]):
    """What stands in rows and columns."""

    axis: Axis
    columns: Sequence[tuple[str, Mapping[str, T]]]
    """(heading, cells by the label of their row)"""
    values: Callable[[T], Iterable[float]]
    """Of a cell: what the axis must hold."""
    row_height: float
    """Inches."""
    draw: Callable[[Axes, float, float, T], None]
    """Draws a cell: axes, middle and half of the height of the row, what to draw."""
    averages: frozenset[str] = frozenset()
    """Rows below a line."""
    numbers: Callable[[T], str] | None = None
    """What to write beside the cells of a single column."""


def forest(figure: Forest, *, is_alone: bool) -> Page:
    """Estimates with intervals; hollow marks are estimates before they were drawn towards others."""
    intervals = [one for _, group in figure.groups for one in group]
    scale = factor(figure.axis)
    has_raw = any(one.raw is not None for one in intervals)

    def numbers(one: Interval) -> str:
        return f"{_signed(one.estimate, figure)} [{_signed(one.low, figure)}, {_signed(one.high, figure)}]"

    grid = Grid(
        figure.axis,
        [(heading, {one.label: one for one in group}) for heading, group in figure.groups],
        lambda one: (one.low, one.high, one.estimate, one.estimate if one.raw is None else one.raw),
        0.19,
        lambda axes, y, half, one: draw_interval(axes, y, half, one, scale),
        frozenset(one.label for one in intervals if one.is_average),
        numbers if len(figure.groups) == 1 else None,
    )
    key = (
        AVERAGES if any(one.is_average for one in intervals) else "",
        "Hollow: the task on its own, before it was drawn towards the others." if has_raw else "",
        in_words(figure.axis),
    )
    return _lay_out(figure.title if is_alone else "", grid, _key(figure.note if is_alone else "", *key))


def _signed(value: float, figure: Forest) -> str:
    return format_signed(value, figure.unit).replace("-", "\N{MINUS SIGN}")


def violins(figure: Violins, *, is_alone: bool) -> Page:
    """Distributions as violins, with the mean and the middle half of the values."""
    scale = factor(figure.axis)
    grid = Grid(
        figure.axis,
        [(heading, {one.label: one for one in samples}) for heading, samples in figure.columns],
        lambda one: density_ends(one.values),
        0.24,
        lambda axes, y, half, one: draw_violin(axes, y, half, one, scale),
    )
    key = "Dot: mean; bar: the middle half of the values; outline: how common they are, smoothed."
    return _lay_out(
        figure.title if is_alone else "", grid, _key(figure.note if is_alone else "", key, in_words(figure.axis))
    )


def densities(figure: Densities, *, is_alone: bool) -> Page:
    """Distributions as densities that stand on their rows, with the mean and a central interval."""
    scale = factor(figure.axis)
    samples = [one for _, group in figure.groups for one in group]
    is_signed = figure.axis.unit != "spread"
    marks = [one.mark for one in samples if one.mark is not None]
    grid = Grid(
        figure.axis,
        [(heading, {one.label: one for one in group}) for heading, group in figure.groups],
        lambda one: (*density_ends(one.values, is_signed=is_signed), *([] if one.mark is None else [one.mark])),
        0.42,
        lambda axes, y, half, one: draw_density(axes, y, half, one, scale, figure.level, is_signed=is_signed),
    )
    key = f"Dot: mean; bar: the middle {figure.level:.0%}" + (f"; thick upright line: {figure.mark}." if marks else ".")
    return _lay_out(
        figure.title if is_alone else "", grid, _key(figure.note if is_alone else "", key, in_words(figure.axis))
    )


def _key(note: str, *parts: str) -> tuple[str, str]:
    """The small print: what the marks are, then what a reader must know."""
    return " ".join(filter(None, parts)), note


def _lay_out(title: str, grid: Grid[T], small_print: tuple[str, str]) -> Page:
    page = Page()
    if title:
        page.title(title)
    labels = _labels(grid, grid.columns)
    widest = max((text_width(label, TEXT, _weight(label, grid)) for label in labels), default=0.0)
    label_width = min(widest, WIDEST_LABEL) + 0.02
    folded = {label: fold(label, label_width, TEXT, most=2, weight=_weight(label, grid)) for label in labels}
    bands = math.ceil(len(grid.columns) / MOST_COLUMNS)
    in_a_band = math.ceil(len(grid.columns) / bands) if bands else 0
    for start in range(0, len(grid.columns), max(1, in_a_band)):
        columns = grid.columns[start : start + in_a_band]
        _draw_band(page, grid, columns, {label: folded[label] for label in _labels(grid, columns)}, label_width)
    key, note = small_print
    page.note(f"{key} Each row of panels has a scale of its own." if bands > 1 else key, note)
    return page


def _labels(grid: Grid[T], columns: Sequence[tuple[str, Mapping[str, T]]]) -> list[str]:
    """Of the rows of some columns, averages last."""
    labels = list(dict.fromkeys(label for _, cells in columns for label in cells))
    return sorted(labels, key=lambda label: label in grid.averages)


def _weight(label: str, grid: Grid[T]) -> str:
    return "bold" if label in grid.averages else "normal"


def _draw_band(
    page: Page,
    grid: Grid[T],
    columns: Sequence[tuple[str, Mapping[str, T]]],
    labels: Mapping[str, list[str]],
    label_width: float,
) -> None:
    """Columns side by side with their headings above, the rows' labels at the left and the axis below."""
    left = MARGIN + label_width + 0.1
    right = WIDTH - MARGIN - (NUMBERS if grid.numbers else 0.06)
    width = (right - left - BETWEEN * (len(columns) - 1)) / len(columns)
    values = [[value for cell in cells.values() for value in grid.values(cell)] for _, cells in columns]
    ends = shared(values, grid.axis)
    room = width if len(columns) > 1 else right - left
    headings = Headings([heading for heading, _ in columns], room, have_own(ends))
    heights = [max(grid.row_height, len(lines) * line_height(TEXT) + 0.03) for lines in labels.values()]
    middles = [sum(heights[:row]) + height / 2 for row, height in enumerate(heights)]
    top, height = page.bottom + headings.height, sum(heights)
    for number, (_, cells) in enumerate(columns):
        x = left + number * (width + BETWEEN)
        headings.draw(page, number, x + width / 2, top)
        axes = page.axes(x, top, width, height)
        axes.set_ylim(height, 0)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        set_up_x(axes, grid.axis, ends[number], width)
        mark_zero(axes, grid.axis, ends[number])
        for row, (label, middle, tall) in enumerate(zip(labels, middles, heights, strict=True)):
            if row:
                axes.axhline(middle - tall / 2, color=INK, alpha=FAINTER, lw=0.5, zorder=0)
            if label in cells:
                grid.draw(axes, middle, tall / 2, cells[label])
                if grid.numbers:
                    page.text(WIDTH - MARGIN, top + middle, grid.numbers(cells[label]), SMALL, ha="right",
                              weight=_weight(label, grid))  # fmt: skip
    for (label, lines), middle in zip(labels.items(), middles, strict=True):
        for line, text in enumerate(lines):
            y = top + middle + (line - (len(lines) - 1) / 2) * line_height(TEXT)
            page.text(left - 0.1, y, text, ha="right", weight=_weight(label, grid))
    middles_of_columns = [left + number * (width + BETWEEN) + width / 2 for number in range(len(columns))]
    below = [name_below(page, grid.axis, middle, top + height, width + BETWEEN / 2) for middle in middles_of_columns]
    page.bottom = max(below) + 0.1
