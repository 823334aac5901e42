"""Lines with bands, in one or several panels that share both axes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from peekbench_figures.page import MARGIN, WIDTH, Page, balance, fold, line_height, text_width
from peekbench_figures.scale import factor, in_words, limits, set_up_x, set_up_y, ticks
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


def curves(figure: Curves, *, is_alone: bool) -> Page:
    """Panels, up to three side by side, each line in the same colour, dash and mark everywhere."""
    page = Page()
    if is_alone:
        page.title(figure.title)
    labels = list(dict.fromkeys(curve.label for _, panel in figure.panels for curve in panel))
    looks = {label: look(number) for number, label in enumerate(labels)}
    if len(labels) > 1:
        _draw_key(page, looks)
    every = [curve for _, panel in figure.panels for curve in panel]
    x_values = [value for curve in every for value in curve.x]
    y_values = [value for curve in every for value in (*curve.y, *curve.low, *curve.high)]
    x_ends = limits(x_values, figure.x)
    y_ends = limits(y_values, figure.y)
    if figure.is_diagonal_drawn:
        x_ends = y_ends = limits([*x_values, *y_values], figure.x)
    if figure.x.unit == "difference":  # doses and the like do not need a zero
        x_ends = limits(x_values, figure.x)
    across = min(MOST_ACROSS, len(figure.panels)) or 1
    height = PANEL_HEIGHT[across]
    numbers = max(
        (text_width(text, SMALL) for text in ticks(figure.y, y_ends, height, is_upright=True).values()), default=0.2
    )
    label = fold(figure.y.label, height + 0.1, TEXT, most=3)
    left = MARGIN + len(label) * line_height(TEXT) + numbers + 0.12
    width = (WIDTH - MARGIN - 0.05 - left - BETWEEN * (across - 1)) / across
    for start in range(0, len(figure.panels), across):
        row = figure.panels[start : start + across]
        headings = [balance(heading, width, TEXT, most=3, weight="bold") for heading, _ in row]
        head = max(map(len, headings)) * line_height(TEXT) + 0.04 if any(map(any, headings)) else 0.04
        top = page.bottom + head
        for number, ((_, panel), heading) in enumerate(zip(row, headings, strict=True)):
            x = left + number * (width + BETWEEN)
            for line, text in enumerate(heading):
                y = top - 0.04 - (len(heading) - line - 0.5) * line_height(TEXT)
                page.text(x + width / 2, y, text, weight="bold", ha="center")
            axes = page.axes(x, top, width, height)
            set_up_x(axes, figure.x, x_ends, width, sorted(set(x_values)))
            set_up_y(axes, figure.y, y_ends, height, are_numbers_shown=number == 0)
            if figure.is_diagonal_drawn:
                axes.plot(x_ends, x_ends, color=INK, alpha=FAINT * 2, lw=0.8, zorder=1)
            for curve in panel:
                _draw_curve(axes, curve, figure, looks[curve.label])
        for line, text in enumerate(label):
            page.text(MARGIN + (line + 0.5) * line_height(TEXT), top + height / 2, text, rotation=90, ha="center")
        page.bottom = top + height + 0.24
    page.text(
        left + (WIDTH - MARGIN - left) / 2, page.bottom + line_height(TEXT) / 2 - 0.02, figure.x.label, ha="center"
    )
    page.bottom += line_height(TEXT) + 0.06
    has_band = any(curve.low for curve in every)
    key = [
        "Bands: intervals." if has_band else "",
        "Straight line: what it should be." if figure.is_diagonal_drawn else "",
        in_words(figure.y),
    ]
    page.note(" ".join(filter(None, key)), figure.note if is_alone else "")
    return page


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
