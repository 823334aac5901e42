"""Turns a figure record into a picture; earlier drawings and the user's settings do not change its bytes."""

from __future__ import annotations

import hashlib
import io
import warnings
from dataclasses import fields, is_dataclass, replace
from typing import Any, assert_never

import matplotlib as mpl

from peekbench.formatting import visible
from peekbench.plugins import Form
from peekbench.records import Curves, Densities, Figure, Forest, Violins
from peekbench.report import alt_text
from peekbench_figures.curves import lay_out_curves
from peekbench_figures.page import Page
from peekbench_figures.rows import lay_out_densities, lay_out_forest, lay_out_violins
from peekbench_figures.style import matplotlib_settings
from peekbench_figures.svg import simplify_svg

DPI = 160  # of PNG


def draw_figure(figure: Figure, form: Form) -> bytes:
    """Draw a figure as SVG or PNG; see `peekbench_figures.draw`."""
    figure = _make_printable(figure)
    settings = matplotlib_settings(form, salt=hashlib.sha256(repr(figure).encode()).hexdigest())
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # a reader's browser may have it
        page = lay_out(figure, is_alone=form != "inline svg")
        file = io.BytesIO()
        if form == "png":
            page.picture().savefig(file, format="png", dpi=DPI, metadata={"Software": None})
            return file.getvalue()
        page.picture().savefig(
            file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    svg = simplify_svg(file.getvalue().decode(), figure.title, alt_text(figure), is_inline=form == "inline svg")
    return svg.encode()


def lay_out(figure: Figure, *, is_alone: bool) -> Page:
    """Lay out a figure on a page, with title and note if the picture stands alone."""
    match figure:
        case Forest():
            return lay_out_forest(figure, is_alone=is_alone)
        case Violins():
            return lay_out_violins(figure, is_alone=is_alone)
        case Densities():
            return lay_out_densities(figure, is_alone=is_alone)
        case Curves():
            return lay_out_curves(figure, is_alone=is_alone)
        case _:
            assert_never(figure)


def _make_printable(value: Any) -> Any:
    """Return the record with texts on one line, with hidden characters and those that XML cannot contain as escapes."""
    if isinstance(value, str):
        return " ".join(visible(value).split())
    if isinstance(value, tuple):
        return value if value and isinstance(value[0], float) else tuple(map(_make_printable, value))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{part.name: _make_printable(getattr(value, part.name)) for part in fields(value)})
    return value
