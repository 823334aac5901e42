"""Labels around panels: headings above, the name of the axis below."""

from __future__ import annotations

from collections.abc import Sequence

from peekbench.records import Axis
from peekbench_figures.page import Page, line_height, wrap_balanced
from peekbench_figures.scale import axis_name
from peekbench_figures.style import SMALL, TEXT

MAX_LINES = 4
OWN_SCALE = "(own scale)"
TICK_LABEL_HEIGHT = 0.2  # inches between an axis and its name


class Headings:
    """Headings of panels side by side, aligned at the bottom; a panel with its own scale is marked.

    Parameters
    ----------
    texts
        Heading of each panel.
    width
        Width of a panel in inches.
    have_own_scale
        Whether each panel's axis differs from the axis of most panels.
    """

    def __init__(self, texts: Sequence[str], width: float, have_own_scale: Sequence[bool]) -> None:
        self._lines = [
            wrap_balanced(text, width, TEXT, max_lines=MAX_LINES, weight="bold") if text else [] for text in texts
        ]
        self._have_own_scale = have_own_scale
        num_lines = max((len(lines) + own for lines, own in zip(self._lines, have_own_scale, strict=True)), default=0)
        self.height = num_lines * line_height(TEXT) + 0.04 if num_lines else 0.0
        """Inches."""

    def draw(self, page: Page, number: int, middle: float, top: float) -> None:
        """Write the heading of a panel, centered at `middle` and ending at `top`, the top edge of the panel."""
        lines = [(text, TEXT, "bold") for text in self._lines[number]]
        lines += [(OWN_SCALE, SMALL, "normal")] * self._have_own_scale[number]
        for line, (text, size, weight) in enumerate(lines):
            y = top - 0.04 - (len(lines) - line - 0.5) * line_height(TEXT)
            page.text(middle, y, text, size, weight=weight, ha="center")


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
