"""One look for all figures, to be told apart with any color vision, on light ground, dark ground and paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peekbench.plugins import Form

# Okabe and Ito's colors (https://jfly.uni-koeln.de/color/) without the two that white ground swallows; their order
# keeps neighbors apart. Lines differ in dash and marker too.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"
COLOURS = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY)
DASHES = ("-", (0, (5, 1.6)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)), (0, (9, 2)), (0, (3, 1.2, 1.2, 1.2, 1.2, 1.2)))
MARKERS = ("o", "s", "^", "D", "v", "P")
INK = "#010203"  # of text, axes and means: in an SVG it becomes the text color of the page
FAINT, FAINTER, REGION = 0.25, 0.15, 0.1  # opacity of ink: lines behind, between rows, region of equivalence
TITLE, TEXT, SMALL = 10.0, 8.5, 7.5  # points
# Text stays text in an SVG: to be searched, read aloud, and half the size. Readers' fonts differ, so places are laid
# out with the widest of these, which comes with matplotlib.
FONTS = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"


@dataclass(frozen=True, slots=True)
class Look:
    """Of a line."""

    color: str
    dash: Any
    """As matplotlib's `linestyle`."""
    marker: str


def look(number: int) -> Look:
    """Of the line of that number: beyond the colors these come again, with other dashes and markers."""
    again = number // len(COLOURS)
    dash, marker = (number + again) % len(DASHES), (number + 2 * again) % len(MARKERS)
    return Look(COLOURS[number % len(COLOURS)], DASHES[dash], MARKERS[marker])


def rc(form: Form, salt: str) -> dict[str, Any]:
    """matplotlib's settings; all others at its own defaults, whatever the user's are.

    Parameters
    ----------
    salt
        Of the names of parts in an SVG, so that pictures in one page share none.
    """
    import matplotlib as mpl

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
