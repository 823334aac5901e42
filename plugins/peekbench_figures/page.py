"""A page to draw on. Positions are in inches from its top left corner, and it grows downwards."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Picture
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from peekbench.formatting import NAME_PARTS
from peekbench_figures.style import INK, SMALL, TEXT, TITLE

WIDTH = 7.2  # inches: a column of a web page, or the width of a printed page
MARGIN = 0.08
LEADING = 1.25  # line height over font size
MIN_TEXT_WIDTH = 0.5  # inches


@lru_cache(maxsize=10_000)
def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Return the width of a text in inches; `size` is in points."""
    font = FontProperties(family="DejaVu Sans", size=size, weight=weight)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]) / 72


def line_height(size: float) -> float:
    """Return the height of a line in inches; `size` is in points."""
    return size * LEADING / 72


def wrap(text: str, width: float, size: float, *, max_lines: int = 100, weight: str = "normal") -> list[str]:
    """Wrap a text into lines of at most `width` inches; an ellipsis marks text that does not fit."""
    lines: list[str] = []
    line = ""
    parts = [
        piece
        for word in re.findall(r"\S+\s*", text)
        for part in ([word] if text_width(word.rstrip(), size, weight) <= width else NAME_PARTS.split(word))
        for piece in _pieces(part, width, size, weight)
    ]
    for part in parts:
        if line and text_width((line + part).rstrip(), size, weight) > width:
            lines.append(line.rstrip())
            line = ""
        line += part
    lines.append(line.rstrip())
    if len(lines) > max_lines:
        last = lines[max_lines - 1]
        while last and text_width(last + "…", size, weight) > width:
            last = last[:-1]
        lines = [*lines[: max_lines - 1], last.rstrip() + "…"]
    return lines


def wrap_balanced(text: str, width: float, size: float, *, max_lines: int, weight: str = "normal") -> list[str]:
    """Wrap a text into as many lines as `wrap`, of about equal length."""
    lines = wrap(text, width, size, max_lines=max_lines, weight=weight)
    while len(lines) > 1:
        width -= 0.03
        narrower = wrap(text, width, size, max_lines=max_lines, weight=weight)
        if len(narrower) > len(lines) or narrower[-1].endswith("…") or width < MIN_TEXT_WIDTH:
            break
        lines = narrower
    return lines


def _pieces(part: str, width: float, size: float, weight: str) -> list[str]:
    """Split a word that is wider than a line into pieces that fit."""
    pieces = []
    while text_width(part.rstrip(), size, weight) > width and len(part) > 1:
        fitting = len(part) - 1
        while fitting > 1 and text_width(part[:fitting], size, weight) > width:
            fitting = min(fitting - 1, int(fitting * width / text_width(part[:fitting], size, weight)) + 1)
        pieces.append(part[:fitting])
        part = part[fitting:]
    return [*pieces, part]


class Page:
    """Texts and axes with their positions, which are placed on a picture when the height is known."""

    def __init__(self) -> None:
        self.bottom = MARGIN
        """Lower edge of the content."""
        self._texts: list[tuple[float, float, str, dict[str, Any]]] = []
        self._axes: list[tuple[Axes, tuple[float, float, float, float]]] = []
        self._picture = _new_picture()

    def text(self, x: float, y: float, text: str, size: float = TEXT, **properties: Any) -> None:
        """Write one line with its middle at `y`; `properties` are those of matplotlib's `Text`."""
        self._texts.append((x, y, text, {"fontsize": size, "va": "center", **properties}))

    def lines(self, texts: Iterable[str], size: float, *, weight: str = "normal") -> None:
        """Write lines below the content, from the left margin."""
        for text in texts:
            self.text(MARGIN, self.bottom + line_height(size) / 2, text, size, weight=weight)
            self.bottom += line_height(size)

    def title(self, text: str) -> None:
        """Write the title below the content."""
        self.lines(wrap_balanced(text, WIDTH - 2 * MARGIN, TITLE, max_lines=4, weight="bold"), TITLE, weight="bold")
        self.bottom += 0.1

    def note(self, *texts: str) -> None:
        """Write small print below the content."""
        self.bottom += 0.06
        for text in texts:
            if text:
                self.lines(wrap(text, WIDTH - 2 * MARGIN, SMALL), SMALL)

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Add axes without top and right spines."""
        added = self._picture.add_axes((0, 0, 1, 1), label=str(len(self._axes)))
        for side in ("top", "right"):
            added.spines[side].set_visible(False)
        added.tick_params(labelsize=SMALL, width=0.6, length=2.5, pad=2)
        self._axes.append((added, (left, top, width, height)))
        return added

    def picture(self) -> Picture:
        """Return the page as a picture of the height of its content."""
        height = self.bottom + MARGIN
        self._picture.set_size_inches(WIDTH, height)
        for axes, (left, top, width, axes_height) in self._axes:
            axes.set_position((left / WIDTH, 1 - (top + axes_height) / height, width / WIDTH, axes_height / height))
        for x, y, text, properties in self._texts:
            self._picture.text(x / WIDTH, 1 - y / height, text, color=INK, **properties)
        self._texts.clear()
        return self._picture


def _new_picture() -> Picture:
    picture = Picture(figsize=(WIDTH, 1))
    FigureCanvasAgg(picture)
    return picture
