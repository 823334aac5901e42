"""The style of all figures, for any color vision and for light backgrounds, dark backgrounds and paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import matplotlib as mpl

from peekbench.plugins import Form

# Okabe and Ito's colors (https://jfly.uni-koeln.de/color/) without the two that are too light on white, ordered so that
# neighbors differ clearly. Lines differ in dash and marker too.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"
COLORS = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY)
DASHES = ("-", (0, (5, 1.6)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)), (0, (9, 2)), (0, (3, 1.2, 1.2, 1.2, 1.2, 1.2)))
MARKERS = ("o", "s", "^", "D", "v", "P")
INK = "#010203"  # of text, axes and means; in an SVG it becomes the text color of the page
FAINT, FAINTER, REGION = 0.25, 0.15, 0.1  # opacity of grid lines, lines between rows, region of equivalence
TITLE, TEXT, SMALL = 10.0, 8.5, 7.5  # points
# Text stays text in an SVG: it can be searched and read aloud, and halves the size. Readers have different fonts, so
# positions are computed with the widest of these, which comes with matplotlib.
FONTS = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"


@dataclass(frozen=True, slots=True)
class LineStyle:
    """Color, dash and marker of a line."""

    color: str
    dash: Any
    """Value of matplotlib's `linestyle`."""
    marker: str


def line_style(number: int) -> LineStyle:
    """Return the style of a line by its number; when the colors repeat, dashes and markers differ."""
    repeats = number // len(COLORS)
    dash, marker = (number + repeats) % len(DASHES), (number + 2 * repeats) % len(MARKERS)
    return LineStyle(COLORS[number % len(COLORS)], DASHES[dash], MARKERS[marker])


def matplotlib_settings(form: Form, salt: str) -> dict[str, Any]:
    """Return matplotlib's `rcParams`: defaults except for this style, so that the user's settings have no effect.

    Parameters
    ----------
    form
        Form of the picture.
    salt
        Salt of the ids in an SVG, so that the pictures of a page have different ids.
    """
    defaults = {name: value for name, value in mpl.rcParamsDefault.items() if name not in ("backend", "interactive")}
    return {
        **defaults,
        "axes.edgecolor": INK,
        "axes.facecolor": "none",
        "axes.linewidth": 0.6,
        "font.family": "DejaVu Sans",
        "font.size": TEXT,
        "path.simplify": False,
        "savefig.facecolor": "white" if form == "png" else "none",
        "savefig.edgecolor": "none",
        "svg.fonttype": "none",
        "svg.hashsalt": salt,
        "text.color": INK,
        "text.hinting": "none",
        "text.parse_math": False,
        "xtick.color": INK,
        "ytick.color": INK,
    }
