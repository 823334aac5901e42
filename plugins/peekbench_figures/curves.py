"""Lines with bands, in one or several panels that share both axes where they can."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peekbench_figures.around import Headings, name_below
from peekbench_figures.page import MARGIN, WIDTH, Page, balance, fold, line_height, text_width
from peekbench_figures.scale import (
    centerd,
    factor,
    have_own,
    in_words,
    limits,
    name_of,
    set_up_x,
    set_up_y,
    shared,
    ticks,
)
from peekbench_figures.style import FAINT, INK, SMALL, TEXT, Look, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from peekbench.figures import Curve, Curves

MOST_ACROSS = 4
PANEL_HEIGHT = {1: 2.7, 2: 2.1, 3: 1.7, 4: 1.6}  # inches, by the number of panels side by side
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

    @property
    def is_shared(self) -> bool:
        """Whether all panels have the same vertical axis."""
        return len(set(self.y_ends)) == 1

    @property
    def are_own(self) -> list[bool]:
        """Whether a panel's vertical axis is longer or shorter than those of most."""
        return have_own(self.y_ends)

    @property
    def is_moved(self) -> bool:
        """Whether vertical axes of one length begin elsewhere."""
        return len({ends for ends, is_own in zip(self.y_ends, self.are_own, strict=True) if not is_own}) > 1


def curves(figure: Curves, *, is_alone: bool) -> Page:
    """Panels, up to four side by side, each line in the same color, dash and mark everywhere."""
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
    page.bottom += 0.06
    has_band = any(curve.low for _, panel in figure.panels for curve in panel)
    key = (
        "Bands: intervals." if has_band else "",
        "Straight line: what it should be." if figure.is_diagonal_drawn else "",
        "Vertical scales are equally long, but begin at different values." if frame.is_moved else "",
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
    y_ends = shared(by_panel, figure.y)
    if figure.is_diagonal_drawn:
        x_ends = limits([*x_values, *y_values], figure.x)
        y_ends = [x_ends] * len(by_panel)
    elif figure.is_centered:
        y_ends = centerd(by_panel, figure.y)
    across = math.ceil(len(figure.panels) / (math.ceil(len(figure.panels) / MOST_ACROSS) or 1)) or 1
    height = PANEL_HEIGHT[across]
    shown = [text for ends in set(y_ends) for text in ticks(figure.y, ends, height, is_upright=True).values()]
    numbers = max((text_width(text, SMALL) for text in shown), default=0.2) + 0.08
    label = balance(name_of(figure.y), height + 0.1, TEXT, most=3)
    left = MARGIN + len(label) * line_height(TEXT) + numbers + 0.04
    between = BETWEEN + (numbers if len(set(y_ends)) > 1 else 0.0)
    width = (WIDTH - MARGIN - 0.05 - left - between * (across - 1)) / across
    return Frame(x_ends, tuple(y_ends), across, label, numbers, left, between, width, height)


def _draw_row(page: Page, figure: Curves, frame: Frame, start: int, looks: dict[str, Look]) -> None:
    """Panels side by side with their headings above."""
    row = figure.panels[start : start + frame.across]
    width, height = frame.width, frame.height
    x_values = sorted({value for _, panel in figure.panels for curve in panel for value in curve.x})
    here = slice(start, start + frame.across)
    headings = Headings([heading for heading, _ in row], width, frame.are_own[here])
    top = page.bottom + (headings.height or 0.04)
    below = [top + height + 0.24]
    for number, (_, panel) in enumerate(row):
        x = frame.left + number * (width + frame.between)
        headings.draw(page, number, x + width / 2, top)
        axes = page.axes(x, top, width, height)
        set_up_x(axes, figure.x, frame.x_ends, width, x_values)
        is_numbered = number == 0 or not frame.is_shared
        set_up_y(axes, figure.y, frame.y_ends[start + number], height, are_numbers_shown=is_numbered)
        if figure.is_diagonal_drawn:
            axes.plot(frame.x_ends, frame.x_ends, color=INK, alpha=FAINT * 2, lw=0.8, zorder=1)
        for curve in panel:
            _draw_curve(axes, curve, figure, looks[curve.label], list(looks).index(curve.label))
        if start + number + frame.across >= len(figure.panels):
            below.append(name_below(page, figure.x, x + width / 2, top + height, width + frame.between / 2))
    for line, text in enumerate(frame.label):
        page.text(MARGIN + (line + 0.5) * line_height(TEXT), top + height / 2, text, rotation=90, ha="center")
    page.bottom = max(below) if start + frame.across >= len(figure.panels) else below[0]


def _draw_curve(axes: Axes, curve: Curve, figure: Curves, how: Look, number: int) -> None:
    import numpy as np

    x, y = np.array(curve.x) * factor(figure.x), np.array(curve.y) * factor(figure.y)
    if curve.low:
        low, high = np.array(curve.low) * factor(figure.y), np.array(curve.high) * factor(figure.y)
        axes.fill_between(x, low, high, color=how.color, alpha=0.18, lw=0, zorder=1.5)
        for edge in (low, high):  # to tell bands apart without colors
            axes.plot(x, edge, color=how.color, ls=how.dash, lw=0.6, alpha=0.7, zorder=1.6)
    every = max(1, math.ceil(len(x) / MOST_MARKERS))
    marked = (number % every, every)  # lines that lie upon each other show both marks
    axes.plot(x, y, color=how.color, ls=how.dash, marker=how.marker, markevery=marked, zorder=3, **LINE)


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
            axes.plot(places, [0, 0, 0], color=how.color, ls=how.dash, marker=how.marker, markevery=[1], **LINE)
            page.text(at + SWATCH + 0.06, page.bottom + line_height(TEXT) / 2, text)
        page.bottom += line_height(TEXT) + 0.03
    page.bottom += 0.05
