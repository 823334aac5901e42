"""Draws figures as an outline of their texts, for readers who want words instead of pictures."""

from __future__ import annotations

from html import escape

from peekbench import PeekbenchError, hookimpl
from peekbench.figures import Figure
from peekbench.plugins import Form, RendererEntry

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 40"><text x="10" y="25" fill="currentColor">'
    "{title}</text></svg>"
)


def outline(figure: Figure, form: Form) -> bytes:
    """Return the figure's title as a picture."""
    if form == "png":
        raise PeekbenchError("outlines cannot be PNG files; use 'svg' in report.formats")
    return SVG.format(title=escape(figure.title)).encode()


@hookimpl
def peekbench_renderers() -> list[RendererEntry]:
    return [RendererEntry(name="outlines", render=outline, summary="titles of figures, as SVG")]
