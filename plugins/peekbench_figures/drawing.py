"""A figure record to a picture: the same bytes for the same record, whatever was drawn before."""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, assert_never

from peekbench import PeekbenchError
from peekbench.figures import Curves, Densities, Forest, Violins
from peekbench.report import alt_text
from peekbench_figures.style import rc
from peekbench_figures.svg import tidy

if TYPE_CHECKING:
    from peekbench.figures import Figure
    from peekbench.plugins import Form
    from peekbench_figures.page import Page

NOT_IN_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\x7f-\x9f]")
DPI = 160  # of PNG


def draw(figure: Figure, form: Form) -> bytes:
    """Draw a figure.

    Parameters
    ----------
    form
        'svg' and 'png' stand alone, with title and note; 'inline svg' is for a page that has these as text.

    Raises
    ------
    PeekbenchError
        Where matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from arviz_stats.base import array  # noqa: F401 - what is missing is said before anything is drawn
    except ImportError as error:
        raise PeekbenchError(
            f"figures cannot be drawn: {error.name} is not installed; pip install 'peekbench[figures]'"
        ) from error
    figure = _printable(figure)
    with mpl.rc_context(rc(form, salt=hashlib.sha256(repr(figure).encode()).hexdigest())), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # a reader's browser may have it
        page = lay_out(figure, is_alone=form != "inline svg")
        file = io.BytesIO()
        if form == "png":
            page.picture().savefig(file, format="png", dpi=DPI, metadata={"Software": None})
            return file.getvalue()
        page.picture().savefig(
            file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    return tidy(file.getvalue().decode(), figure.title, alt_text(figure), is_inline=form == "inline svg").encode()


def lay_out(figure: Figure, *, is_alone: bool) -> Page:
    """Everything in its place, with title and note where the picture stands alone."""
    from peekbench_figures import curves, rows

    match figure:
        case Forest():
            return rows.forest(figure, is_alone=is_alone)
        case Violins():
            return rows.violins(figure, is_alone=is_alone)
        case Densities():
            return rows.densities(figure, is_alone=is_alone)
        case Curves():
            return curves.curves(figure, is_alone=is_alone)
        case _:
            assert_never(figure)


def _printable(value: Any) -> Any:
    """The same record, its texts on one line and without what XML cannot hold."""
    if isinstance(value, str):
        return " ".join(NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", value).split())
    if isinstance(value, tuple):
        return value if value and isinstance(value[0], float) else tuple(map(_printable, value))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{part.name: _printable(getattr(value, part.name)) for part in fields(value)})
    return value
