"""Lines with bands, in one or several panels that share both axes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peekbench_figures.page import MARGIN, WIDTH, Page, balance, fold, line_height, text_width
from peekbench_figures.scale import centred, factor, in_words, limits, set_up_x, set_up_y, ticks
from peekbench_figures.style import FAINT, INK, SMALL, TEXT, Look, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from peekbench import Curve, Curves

MOST_ACROSS = 3
PANEL_HEIGHT = {1: 2.7, 2: 2.1, 3: 1.7}  # inches, by the number of panels side by side
BETWEEN = 0.2
SWATCH = 0.34  # inches of line in the key
LINE: Mapping[str, Any] = {"lw": 1.5, "ms": 3.8, "mew": 0}
MOST_MARKERS = 12  # points of a line that are marked


@dataclass(frozen=True, slots=True)
class Frame:
    """Where the panels stand, in inches, and what their axes span."""

    x_ends: tuple[float, float]
    y_ends: tuple[tuple[float, float], ...]
    """Of each panel."""
    across: int
    """Panels side by side."""
    label: list[str]
    """Of the vertical axis, in lines."""
    numbers: float
    """Width of the numbers at the vertical axis."""
    left: float
    between: float
    """Panels."""
    width: float
    height: float


def curves(figure: Curves, *, is_alone: bool) -> Page:
    """Panels, up to three side by side, each line in the same colour, dash and mark everywhere."""
    page = Page()
    if is_alone:
        page.title(figure.title)
    labels = list(dict.fromkeys(curve.label for _, panel in figure.panels for curve in panel))
    looks = {label: look(number) for number, label in enumerate(labels)}
    if len(labels) > 1:
        _draw_key(page, looks)
    frame = _frame(figure)
    for start in range(0, len(figure.panels), frame.across):
        _draw_row(page, figure, frame, start, looks)
    middle = frame.left + (WIDTH - MARGIN - frame.left) / 2
    page.text(middle, page.bottom + line_height(TEXT) / 2 - 0.02, figure.x.label, ha="center")
    page.bottom += line_height(TEXT) + 0.06
    has_band = any(curve.low for _, panel in figure.panels for curve in panel)
    key = (
        "Bands: intervals." if has_band else "",
        "Straight line: what it should be." if figure.is_diagonal_drawn else "",
        "Scales have the same step, but begin elsewhere." if figure.is_centred and len(figure.panels) > 1 else "",
        in_words(figure.y),
    )
    page.note(" ".join(filter(None, key)), figure.note if is_alone else "")
    return page


def _frame(figure: Curves) -> Frame:
    x_values = [value for _, panel in figure.panels for curve in panel for value in curve.x]
    by_panel = [
        [value for curve in panel for value in (*curve.y, *curve.low, *curve.high)] for _, panel in figure.panels
    ]
    y_values = [value for values in by_panel for value in values]
    x_ends = limits(x_values, figure.x)
    y_ends = [limits(y_values, figure.y)] * len(by_panel)
    if figure.is_diagonal_drawn:
        x_ends = limits([*x_values, *y_values], figure.x)
        y_ends = [x_ends] * len(by_panel)
    elif figure.is_centred:
        y_ends = centred(by_panel, figure.y)
    across = min(MOST_ACROSS, len(figure.panels)) or 1
    height = PANEL_HEIGHT[across]
    shown = [text for ends in set(y_ends) for text in ticks(figure.y, ends, height, is_upright=True).values()]
    numbers = max((text_width(text, SMALL) for text in shown), default=0.2) + 0.08
    label = balance(figure.y.label, height + 0.1, TEXT, most=3)
    left = MARGIN + len(label) * line_height(TEXT) + numbers + 0.04
    between = BETWEEN + (numbers if figure.is_centred else 0.0)
    width = (WIDTH - MARGIN - 0.05 - left - between * (across - 1)) / across
    return Frame(x_ends, tuple(y_ends), across, label, numbers, left, between, width, height)


def _draw_row(page: Page, figure: Curves, frame: Frame, start: int, looks: dict[str, Look]) -> None:
    """Panels side by side with their headings above."""
    row = figure.panels[start : start + frame.across]
    width, height = frame.width, frame.height
    x_values = sorted({value for _, panel in figure.panels for curve in panel for value in curve.x})
    headings = [balance(heading, width, TEXT, most=3, weight="bold") for heading, _ in row]
    head = max(map(len, headings)) * line_height(TEXT) + 0.04 if any(map(any, headings)) else 0.04
    top = page.bottom + head
    for number, ((_, panel), heading) in enumerate(zip(row, headings, strict=True)):
        x = frame.left + number * (width + frame.between)
        for line, text in enumerate(heading):
            y = top - 0.04 - (len(heading) - line - 0.5) * line_height(TEXT)
            page.text(x + width / 2, y, text, weight="bold", ha="center")
        axes = page.axes(x, top, width, height)
        set_up_x(axes, figure.x, frame.x_ends, width, x_values)
        is_numbered = number == 0 or figure.is_centred
        set_up_y(axes, figure.y, frame.y_ends[start + number], height, are_numbers_shown=is_numbered)
        if figure.is_diagonal_drawn:
            axes.plot(frame.x_ends, frame.x_ends, color=INK, alpha=FAINT * 2, lw=0.8, zorder=1)
        for curve in panel:
            _draw_curve(axes, curve, figure, looks[curve.label])
    for line, text in enumerate(frame.label):
        page.text(MARGIN + (line + 0.5) * line_height(TEXT), top + height / 2, text, rotation=90, ha="center")
    page.bottom = top + height + 0.24


def _draw_curve(axes: Axes, curve: Curve, figure: Curves, how: Look) -> None:
    import numpy as np

    x, y = np.array(curve.x) * factor(figure.x), np.array(curve.y) * factor(figure.y)
    if curve.low:
        low, high = np.array(curve.low) * factor(figure.y), np.array(curve.high) * factor(figure.y)
        axes.fill_between(x, low, high, color=how.colour, alpha=0.18, lw=0, zorder=1.5)
    every = max(1, math.ceil(len(x) / MOST_MARKERS))
    axes.plot(x, y, color=how.colour, ls=how.dash, marker=how.marker, markevery=every, zorder=3, **LINE)


def _draw_key(page: Page, looks: dict[str, Look]) -> None:
    """Swatches with labels, from left to right in as many lines as it takes."""
    entries: list[list[tuple[float, str, Look]]] = [[]]
    x = MARGIN
    room = WIDTH - 2 * MARGIN
    for label, how in looks.items():
        text = fold(label, room - SWATCH - 0.1, TEXT, most=1)[0]
        width = SWATCH + 0.06 + text_width(text, TEXT) + 0.22
        if entries[-1] and x + width > WIDTH:
            entries.append([])
            x = MARGIN
        entries[-1].append((x, text, how))
        x += width
    for line in entries:
        axes = page.axes(MARGIN, page.bottom, room, line_height(TEXT))
        axes.axis("off")
        axes.set_xlim(MARGIN, MARGIN + room)
        axes.set_ylim(-1, 1)
        for at, text, how in line:
            places = [at, at + SWATCH / 2, at + SWATCH]
            axes.plot(places, [0, 0, 0], color=how.colour, ls=how.dash, marker=how.marker, markevery=[1], **LINE)
            page.text(at + SWATCH + 0.06, page.bottom + line_height(TEXT) / 2, text)
        page.bottom += line_height(TEXT) + 0.03
    page.bottom += 0.05
