"""Lays out forests, violins and densities: one row per task or posterior, one column per configuration."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from matplotlib.axes import Axes

from peekbench.formatting import format_signed
from peekbench.records import Axis, Densities, Forest, Interval, Sample, Violins
from peekbench_figures.marks import density_extent, draw_density, draw_interval, draw_violin
from peekbench_figures.page import MARGIN, WIDTH, Page, line_height, text_width, wrap
from peekbench_figures.scale import (
    Headings,
    explain_shading,
    factor,
    limits,
    mark_zero,
    set_up_x,
    write_axis_name,
)
from peekbench_figures.style import FAINTER, INK, SMALL, TEXT

MAX_LABEL_WIDTH = 2.0  # inches
MAX_COLUMNS = 5  # side by side
GAP = 0.16  # inches between columns
NUMBERS_WIDTH = 1.75  # inches for estimate and interval in digits
AVERAGES = "Dot: estimate; line: interval; diamond: average, as wide as its interval."
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Grid(Generic[T]):
    """Cells in rows and columns on one axis, and how to draw them."""

    axis: Axis
    columns: Sequence[tuple[str, Mapping[str, T]]]
    """(heading, cells by the label of their row) of each column."""
    values: Callable[[T], Iterable[float]]
    """Function from a cell to the values that the axis must contain."""
    row_height: float
    """Inches."""
    draw: Callable[[Axes, float, float, T], None]
    """Function that draws a cell, from axes, middle of the row, half of its height, and cell."""
    averages: frozenset[str] = frozenset()
    """Labels of rows with averages, which come last."""
    numbers: Callable[[T], str] | None = None
    """Function from a cell to the text beside it, in figures with a single column."""


def lay_out_forest(figure: Forest, *, is_alone: bool) -> Page:
    """Lay out estimates with intervals; hollow marks are estimates without partial pooling.

    Parameters
    ----------
    figure
        Figure to lay out.
    is_alone
        Whether to add title and note.
    """
    intervals = [interval for _, group in figure.groups for interval in group]
    scale = factor(figure.axis)
    has_raw = any(interval.raw is not None for interval in intervals)

    def numbers(interval: Interval) -> str:
        estimate, low, high = (
            format_signed(value, figure.unit).replace("-", "\N{MINUS SIGN}")
            for value in (interval.estimate, interval.low, interval.high)
        )
        return f"{estimate} [{low}, {high}]"

    def values(interval: Interval) -> tuple[float, ...]:
        raw = interval.estimate if interval.raw is None else interval.raw
        return (interval.low, interval.high, interval.estimate, raw)

    grid = Grid(
        figure.axis,
        [(heading, {interval.label: interval for interval in group}) for heading, group in figure.groups],
        values,
        0.19,
        lambda axes, y, half, interval: draw_interval(axes, y, half, interval, scale),
        frozenset(interval.label for interval in intervals if interval.is_average),
        numbers if len(figure.groups) == 1 else None,
    )
    explanations = (
        AVERAGES if grid.averages else "",
        "Hollow: the estimate of the task alone, without partial pooling." if has_raw else "",
        explain_shading(figure.axis),
    )
    return _lay_out(figure, grid, explanations, is_alone=is_alone)


def lay_out_violins(figure: Violins, *, is_alone: bool) -> Page:
    """Lay out violins with the mean and the middle half of the values; see `lay_out_forest`."""
    scale = factor(figure.axis)
    grid = Grid(
        figure.axis,
        [(heading, {sample.label: sample for sample in samples}) for heading, samples in figure.columns],
        lambda sample: density_extent(sample.values),
        0.24,
        lambda axes, y, half, sample: draw_violin(axes, y, half, sample, scale),
    )
    key = "Dot: mean; bar: the middle half of the values; outline: smoothed density of the values."
    return _lay_out(figure, grid, (key, explain_shading(figure.axis)), is_alone=is_alone)


def lay_out_densities(figure: Densities, *, is_alone: bool) -> Page:
    """Lay out densities with the mean and a central interval; see `lay_out_forest`."""
    scale = factor(figure.axis)
    is_signed = figure.axis.unit != "spread"
    has_mark = any(sample.mark is not None for _, group in figure.groups for sample in group)

    def values(sample: Sample) -> tuple[float, ...]:
        mark = () if sample.mark is None else (sample.mark,)
        return (*density_extent(sample.values, is_signed=is_signed), *mark)

    grid = Grid(
        figure.axis,
        [(heading, {sample.label: sample for sample in group}) for heading, group in figure.groups],
        values,
        0.42,
        lambda axes, y, half, sample: draw_density(axes, y, half, sample, scale, figure.level, is_signed=is_signed),
    )
    mark = f"; thick vertical line: {figure.mark}" if has_mark else ""
    key = f"Dot: mean; bar: central {figure.level:.0%}{mark}."
    return _lay_out(figure, grid, (key, explain_shading(figure.axis)), is_alone=is_alone)


def _lay_out(
    figure: Forest | Violins | Densities, grid: Grid[T], explanations: tuple[str, ...], *, is_alone: bool
) -> Page:
    """Draw the columns in bands of at most `MAX_COLUMNS`, and below them the explanations of the marks."""
    page = Page()
    if is_alone:
        page.title(figure.title)
    labels = _labels(grid, grid.columns)
    widest = max((text_width(label, TEXT, _weight(label, grid)) for label in labels), default=0.0)
    label_width = min(widest, MAX_LABEL_WIDTH) + 0.02
    wrapped = {label: wrap(label, label_width, TEXT, max_lines=2, weight=_weight(label, grid)) for label in labels}
    num_bands = math.ceil(len(grid.columns) / MAX_COLUMNS)
    columns_per_band = math.ceil(len(grid.columns) / num_bands) if num_bands else 0
    for start in range(0, len(grid.columns), max(1, columns_per_band)):
        columns = grid.columns[start : start + columns_per_band]
        _draw_band(page, grid, columns, {label: wrapped[label] for label in _labels(grid, columns)}, label_width)
    key = " ".join(filter(None, explanations))
    note = figure.note if is_alone else ""
    page.note(f"{key} Each row of panels has its own scale." if num_bands > 1 else key, note)
    return page


def _labels(grid: Grid[T], columns: Sequence[tuple[str, Mapping[str, T]]]) -> list[str]:
    """Return the labels of the rows of some columns, averages last."""
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
    """Draw columns side by side, with headings above, labels of rows at the left, and names of axes below."""
    left = MARGIN + label_width + 0.1
    right = WIDTH - MARGIN - (NUMBERS_WIDTH if grid.numbers else 0.06)
    width = (right - left - GAP * (len(columns) - 1)) / len(columns)
    ends = limits((value for _, cells in columns for cell in cells.values() for value in grid.values(cell)), grid.axis)
    heading_width = width if len(columns) > 1 else right - left
    headings = Headings([heading for heading, _ in columns], heading_width)
    heights = [max(grid.row_height, len(lines) * line_height(TEXT) + 0.03) for lines in labels.values()]
    middles = [sum(heights[:row]) + height / 2 for row, height in enumerate(heights)]
    top, height = page.bottom + headings.height, sum(heights)
    for number, (_, cells) in enumerate(columns):
        x = left + number * (width + GAP)
        headings.draw(page, number, x + width / 2, top)
        axes = page.axes(x, top, width, height)
        axes.set_ylim(height, 0)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        set_up_x(axes, grid.axis, ends, width)
        mark_zero(axes, grid.axis, ends)
        for row, (label, middle, row_height) in enumerate(zip(labels, middles, heights, strict=True)):
            if row:
                axes.axhline(middle - row_height / 2, color=INK, alpha=FAINTER, lw=0.5, zorder=0)
            if label in cells:
                grid.draw(axes, middle, row_height / 2, cells[label])
                if grid.numbers:
                    page.text(WIDTH - MARGIN, top + middle, grid.numbers(cells[label]), SMALL, ha="right",
                              weight=_weight(label, grid))  # fmt: skip
    for (label, lines), middle in zip(labels.items(), middles, strict=True):
        for line, text in enumerate(lines):
            y = top + middle + (line - (len(lines) - 1) / 2) * line_height(TEXT)
            page.text(left - 0.1, y, text, ha="right", weight=_weight(label, grid))
    column_middles = [left + number * (width + GAP) + width / 2 for number in range(len(columns))]
    bottoms = [write_axis_name(page, grid.axis, middle, top + height, width + GAP / 2) for middle in column_middles]
    page.bottom = max(bottoms) + 0.1
