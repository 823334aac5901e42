"""A page to draw on, measured in inches from its top left corner, that grows downwards."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from peekbench_figures.style import INK, SMALL, TEXT, TITLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

WIDTH = 7.2  # inches: a column of a web page, or the width of a printed one
MARGIN = 0.08
LEADING = 1.25  # line height over font size
NARROWEST = 0.5  # inches of text
PARTS = re.compile(r"(?<=[-_/.])(?=[^\W\d])")  # of a word: community-|datasets/|disaster_|response_|messages


@lru_cache(maxsize=10_000)
def text_width(text: str, size: float, weight: str = "normal") -> float:
    """In inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family="DejaVu Sans", size=size, weight=weight)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]) / 72


def line_height(size: float) -> float:
    """In inches."""
    return size * LEADING / 72


def fold(text: str, width: float, size: float, *, most: int = 100, weight: str = "normal") -> list[str]:
    """Lines no wider than `width` inches; what does not fit into `most` of them is cut off, which is marked."""
    lines: list[str] = []
    line = ""
    parts = [
        piece
        for word in re.findall(r"\S+\s*", text)
        for part in ([word] if text_width(word.rstrip(), size, weight) <= width else PARTS.split(word))
        for piece in _pieces(part, width, size, weight)
    ]
    for part in parts:
        if line and text_width((line + part).rstrip(), size, weight) > width:
            lines.append(line.rstrip())
            line = ""
        line += part
    lines.append(line.rstrip())
    if len(lines) > most:
        last = lines[most - 1]
        while last and text_width(last + "…", size, weight) > width:
            last = last[:-1]
        lines = [*lines[: most - 1], last.rstrip() + "…"]
    return lines


def balance(text: str, width: float, size: float, *, most: int, weight: str = "normal") -> list[str]:
    """The same, in as many lines of about equal length."""
    lines = fold(text, width, size, most=most, weight=weight)
    while len(lines) > 1:
        width -= 0.03
        narrower = fold(text, width, size, most=most, weight=weight)
        if len(narrower) > len(lines) or narrower[-1].endswith("…") or width < NARROWEST:
            break
        lines = narrower
    return lines


def _pieces(part: str, width: float, size: float, weight: str) -> list[str]:
    """A word that is wider than a line, in pieces that are not."""
    pieces = []
    while text_width(part.rstrip(), size, weight) > width and len(part) > 1:
        fitting = len(part) - 1
        while fitting > 1 and text_width(part[:fitting], size, weight) > width:
            fitting = min(fitting - 1, int(fitting * width / text_width(part[:fitting], size, weight)) + 1)
        pieces.append(part[:fitting])
        part = part[fitting:]
    return [*pieces, part]


class Page:
    """Texts and axes with their places; they are put on a picture when the height is known."""

    def __init__(self) -> None:
        self.bottom = MARGIN
        """Down to where the page is filled."""
        self._texts: list[tuple[float, float, str, dict[str, Any]]] = []
        self._axes: list[tuple[Axes, tuple[float, float, float, float]]] = []
        self._picture = _new_picture()

    def text(self, x: float, y: float, text: str, size: float = TEXT, **how: Any) -> None:
        """One line; y is its middle."""
        self._texts.append((x, y, text, {"fontsize": size, "va": "center", **how}))

    def lines(self, texts: Iterable[str], size: float, *, weight: str = "normal") -> None:
        """Below what is there, from the left margin."""
        for text in texts:
            self.text(MARGIN, self.bottom + line_height(size) / 2, text, size, weight=weight)
            self.bottom += line_height(size)

    def title(self, text: str) -> None:
        self.lines(balance(text, WIDTH - 2 * MARGIN, TITLE, most=4, weight="bold"), TITLE, weight="bold")
        self.bottom += 0.1

    def note(self, *texts: str) -> None:
        """Small print at the foot."""
        self.bottom += 0.06
        for text in texts:
            if text:
                self.lines(fold(text, WIDTH - 2 * MARGIN, SMALL), SMALL)

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        added = self._picture.add_axes((0, 0, 1, 1), label=str(len(self._axes)))
        for side in ("top", "right"):
            added.spines[side].set_visible(False)
        added.tick_params(labelsize=SMALL, width=0.6, length=2.5, pad=2)
        self._axes.append((added, (left, top, width, height)))
        return added

    def picture(self) -> Picture:
        """The page, as high as it is filled."""
        height = self.bottom + MARGIN
        self._picture.set_size_inches(WIDTH, height)
        for axes, (left, top, width, tall) in self._axes:
            axes.set_position((left / WIDTH, 1 - (top + tall) / height, width / WIDTH, tall / height))
        for x, y, text, how in self._texts:
            self._picture.text(x / WIDTH, 1 - y / height, text, color=INK, **how)
        self._texts.clear()
        return self._picture


def _new_picture() -> Picture:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Picture

    picture = Picture(figsize=(WIDTH, 1))
    FigureCanvasAgg(picture)
    return picture
