"""Turns a figure record into a picture; earlier drawings and the user's settings do not change its bytes."""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from dataclasses import fields, is_dataclass, replace
from html import escape
from typing import Any, assert_never

import matplotlib as mpl

from peekbench.formatting import visible
from peekbench.plugins import Form
from peekbench.records import Curves, Densities, Figure, Forest, Violins
from peekbench.report import alt_text
from peekbench_figures.curves import lay_out_curves
from peekbench_figures.page import Page
from peekbench_figures.rows import lay_out_densities, lay_out_forest, lay_out_violins
from peekbench_figures.style import BLUE, FONTS, INK, matplotlib_settings

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


CLASS = "peekbench-figure"
# A picture that a browser opens by itself has light ink on a dark background. Within a page, the page sets the colors.
STANDALONE_STYLE = (
    f"<style>.{CLASS} {{ color: #1a1a1a; }} "
    f"@media (prefers-color-scheme: dark) {{ .{CLASS} {{ color: #e6e6e6; }} }}</style>\n"
)
NUMBER = re.compile(r"(\d+\.\d\d)\d+")
COORDINATE = re.compile(r"(\d+\.\d)\d+")
TAG = re.compile(r"<[^>]+>")
OUTLINE = re.compile(r'(?<= d=")[^"]*')
PART_ID = re.compile(r' id="[\w.]+_\d+"')  # patch_7: the same in every picture, so ids would clash in a page
PROLOGUE = re.compile(r"^.*?(?=<svg)", re.DOTALL)
METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
RULES = re.compile(r"<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)  # would apply to the whole page
BOX = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
NOT_TURNED = re.compile(r' transform="rotate\(-0 [^)]*\)"')
FONT = re.compile(r" ?font-family: [^;\"]*;?")


def simplify_svg(svg: str, title: str, alt_text: str, *, is_inline: bool) -> str:
    """Shorten an SVG of matplotlib to about half, and add a description for readers who cannot see it.

    Parameters
    ----------
    svg
        SVG that matplotlib wrote.
    title, alt_text
        Title and description of the figure, as plain text.
    is_inline
        Whether the SVG becomes part of an HTML page, which then sets size and colors.
    """
    svg = METADATA.sub("", PROLOGUE.sub("", svg, count=1), count=1)
    box = BOX.search(svg)
    assert box is not None
    width, height = (f"{float(side):.0f}" for side in box.groups())
    body = RULES.sub("", svg[svg.index(">") + 1 :], count=1)
    for pattern in (PART_ID, NOT_TURNED, FONT):
        body = pattern.sub("", body)
    body = TAG.sub(lambda tag: NUMBER.sub(r"\1", tag[0]), body)
    body = OUTLINE.sub(lambda outline: COORDINATE.sub(r"\1", " ".join(outline[0].split())), body)
    body = re.sub(r"\n\s*", "\n", body.replace(INK, "currentColor")).lstrip()
    if is_inline:
        body = body.replace(BLUE, f"var(--mark, {BLUE})")
    size = "" if is_inline else f' width="{width}pt" height="{height}pt"'
    head = (
        f'<svg class="{CLASS}" xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {width} {height}"{size} font-family="{FONTS}" stroke-linejoin="round" role="img">\n'
        f"<title>{escape(title)}</title>\n<desc>{escape(alt_text)}</desc>\n"
    )
    return head + body if is_inline else '<?xml version="1.0" encoding="utf-8"?>\n' + head + STANDALONE_STYLE + body
