"""Lays out curves with bands, in one or several panels that share both axes if possible."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from peekbench.records import Curve, Curves
from peekbench_figures.page import MARGIN, WIDTH, Page, line_height, text_width, wrap, wrap_balanced
from peekbench_figures.scale import (
    Headings,
    axis_name,
    explain_shading,
    factor,
    limits,
    set_up_x,
    set_up_y,
    ticks,
    write_axis_name,
)
from peekbench_figures.style import FAINT, INK, SMALL, TEXT, LineStyle, line_style

MAX_ACROSS = 4  # panels side by side
PANEL_HEIGHT = {1: 2.7, 2: 2.1, 3: 1.7, 4: 1.6}  # inches, by the number of panels side by side
GAP = 0.2  # inches between panels
SWATCH = 0.34  # inches of line in the legend
LINE: Mapping[str, Any] = {"lw": 1.5, "ms": 3.8, "mew": 0}
MAX_MARKERS = 12  # points of a line that have a marker


@dataclass(frozen=True, slots=True)
class Frame:
    """Positions of the panels in inches, and the limits of their axes."""

    x_ends: tuple[float, float]
    y_ends: tuple[float, float]
    across: int
    """Panels side by side."""
    label: list[str]
    """Name of the vertical axis, in lines."""
    left: float
    """Left edge of the first panel."""
    width: float
    """Width of a panel."""
    height: float
    """Height of a panel."""


def lay_out_curves(figure: Curves, *, is_alone: bool) -> Page:
    """Lay out panels, up to four side by side; a line has the same color, dash and marker in all panels.

    Parameters
    ----------
    figure
        Figure to lay out.
    is_alone
        Whether to add title and note.
    """
    page = Page()
    if is_alone:
        page.title(figure.title)
    curves = [curve for _, panel in figure.panels for curve in panel]
    scattered = {curve.label for curve in curves if curve.is_scatter}
    styles = {label: line_style(number) for number, label in enumerate(dict.fromkeys(curve.label for curve in curves))}
    if scattered:  # markers are for points, so that nobody takes those of a line for observations
        styles = {
            label: replace(style, dash="none") if label in scattered else replace(style, marker="")
            for label, style in styles.items()
        }
    if len(styles) > 1:
        _draw_legend(page, styles)
    frame = _frame(figure)
    for start in range(0, len(figure.panels), frame.across):
        _draw_row(page, figure, frame, start, styles)
    page.bottom += 0.06
    has_band = any(curve.low for _, panel in figure.panels for curve in panel)
    explanations = (
        "Bands: intervals." if has_band else "",
        "Straight line: ideal values." if figure.is_diagonal_drawn else "",
        explain_shading(figure.y),
    )
    page.note(" ".join(filter(None, explanations)), figure.note if is_alone else "")
    return page


def _frame(figure: Curves) -> Frame:
    x_values = [value for _, panel in figure.panels for curve in panel for value in curve.x]
    y_values = [value for _, panel in figure.panels for curve in panel for value in (*curve.y, *curve.low, *curve.high)]
    x_ends, y_ends = limits(x_values, figure.x), limits(y_values, figure.y)
    if figure.is_diagonal_drawn:
        x_ends = y_ends = limits([*x_values, *y_values], figure.x)
    across = math.ceil(len(figure.panels) / (math.ceil(len(figure.panels) / MAX_ACROSS) or 1)) or 1
    height = PANEL_HEIGHT[across]
    tick_labels = ticks(figure.y, y_ends, height, is_upright=True).values()
    tick_width = max((text_width(text, SMALL) for text in tick_labels), default=0.2) + 0.08
    label = wrap_balanced(axis_name(figure.y), height + 0.1, TEXT, max_lines=3)
    left = MARGIN + len(label) * line_height(TEXT) + tick_width + 0.04
    width = (WIDTH - MARGIN - 0.05 - left - GAP * (across - 1)) / across
    return Frame(x_ends, y_ends, across, label, left, width, height)


def _draw_row(page: Page, figure: Curves, frame: Frame, start: int, styles: dict[str, LineStyle]) -> None:
    """Draw panels side by side with their headings above, beginning with panel number `start`."""
    row = figure.panels[start : start + frame.across]
    width, height = frame.width, frame.height
    x_values = sorted({value for _, panel in figure.panels for curve in panel for value in curve.x})
    headings = Headings([heading for heading, _ in row], width)
    top = page.bottom + (headings.height or 0.04)
    bottoms = [top + height + 0.24]
    for number, (_, panel) in enumerate(row):
        x = frame.left + number * (width + GAP)
        headings.draw(page, number, x + width / 2, top)
        axes = page.axes(x, top, width, height)
        set_up_x(axes, figure.x, frame.x_ends, width, x_values)
        set_up_y(axes, figure.y, frame.y_ends, height, is_labeled=number == 0)
        if figure.is_diagonal_drawn:
            axes.plot(frame.x_ends, frame.x_ends, color=INK, alpha=FAINT * 2, lw=0.8, zorder=1)
        for curve in panel:
            _draw_curve(axes, curve, figure, styles[curve.label], list(styles).index(curve.label))
        if start + number + frame.across >= len(figure.panels):
            bottoms.append(write_axis_name(page, figure.x, x + width / 2, top + height, width + GAP / 2))
    for line, text in enumerate(frame.label):
        page.text(MARGIN + (line + 0.5) * line_height(TEXT), top + height / 2, text, rotation=90, ha="center")
    page.bottom = max(bottoms) if start + frame.across >= len(figure.panels) else bottoms[0]


def _draw_curve(axes: Axes, curve: Curve, figure: Curves, style: LineStyle, number: int) -> None:
    x, y = np.array(curve.x) * factor(figure.x), np.array(curve.y) * factor(figure.y)
    if curve.low:
        low, high = np.array(curve.low) * factor(figure.y), np.array(curve.high) * factor(figure.y)
        axes.fill_between(x, low, high, color=style.color, alpha=0.18, lw=0, zorder=1.5)
        for edge in (low, high):  # tells bands apart without colors
            axes.plot(x, edge, color=style.color, ls=style.dash, lw=0.6, alpha=0.7, zorder=1.6)
    every = 1 if curve.is_scatter else max(1, math.ceil(len(x) / MAX_MARKERS))
    marked = (number % every, every)  # so that lines that coincide both show their markers
    axes.plot(x, y, color=style.color, ls=style.dash, marker=style.marker, markevery=marked, zorder=3, **LINE)


def _draw_legend(page: Page, styles: dict[str, LineStyle]) -> None:
    """Draw swatches with labels from left to right, in as many lines as needed."""
    lines: list[list[tuple[float, str, LineStyle]]] = [[]]
    x = MARGIN
    room = WIDTH - 2 * MARGIN
    for label, style in styles.items():
        text = wrap(label, room - SWATCH - 0.1, TEXT, max_lines=1)[0]
        width = SWATCH + 0.06 + text_width(text, TEXT) + 0.22
        if lines[-1] and x + width > WIDTH:
            lines.append([])
            x = MARGIN
        lines[-1].append((x, text, style))
        x += width
    for line in lines:
        axes = page.axes(MARGIN, page.bottom, room, line_height(TEXT))
        axes.axis("off")
        axes.set_xlim(MARGIN, MARGIN + room)
        axes.set_ylim(-1, 1)
        for left, text, style in line:
            points = [left, left + SWATCH / 2, left + SWATCH]
            axes.plot(points, [0, 0, 0], color=style.color, ls=style.dash, marker=style.marker, markevery=[1], **LINE)
            page.text(left + SWATCH + 0.06, page.bottom + line_height(TEXT) / 2, text)
        page.bottom += line_height(TEXT) + 0.03
    page.bottom += 0.05
