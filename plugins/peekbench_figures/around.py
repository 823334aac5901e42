"""What stands around panels: headings above, the name of the axis below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from peekbench_figures.page import Page, balance, line_height
from peekbench_figures.scale import name_of
from peekbench_figures.style import SMALL, TEXT

if TYPE_CHECKING:
    from peekbench.figures import Axis

MOST_LINES = 4
OWN = "(own scale)"
NUMBERS_BELOW = 0.2  # inches for the numbers at an axis


class Headings:
    """Of panels side by side, which end at the same height; a panel with a scale of its own says so."""

    def __init__(self, texts: Sequence[str], width: float, are_own: Sequence[bool]) -> None:
        self._lines = [balance(text, width, TEXT, most=MOST_LINES, weight="bold") if text else [] for text in texts]
        self._are_own = are_own
        most = max((len(lines) + own for lines, own in zip(self._lines, are_own, strict=True)), default=0)
        self.height = most * line_height(TEXT) + 0.04 if most else 0.0
        """Inches."""

    def draw(self, page: Page, number: int, middle: float, top: float) -> None:
        """Above the panel of that number."""
        lines = [(text, TEXT, "bold") for text in self._lines[number]]
        lines += [(OWN, SMALL, "normal")] * self._are_own[number]
        for line, (text, size, weight) in enumerate(lines):
            y = top - 0.04 - (len(lines) - line - 0.5) * line_height(TEXT)
            page.text(middle, y, text, size, weight=weight, ha="center")


def name_below(page: Page, axis: Axis, middle: float, bottom: float, width: float) -> float:
    """Name the axis of the panel that ends at `bottom`, and say down to where that reaches."""
    below = bottom + NUMBERS_BELOW
    for text in balance(name_of(axis), width, TEXT, most=MOST_LINES):
        page.text(middle, below + line_height(TEXT) / 2, text, ha="center")
        below += line_height(TEXT)
    return below
