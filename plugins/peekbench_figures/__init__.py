"""Draws figures with matplotlib: forests, violins, densities and curves in one style, as SVG and PNG."""

from __future__ import annotations

from peekbench import PeekbenchError, hookimpl
from peekbench.plugins import Form, RendererEntry
from peekbench.records import Figure

__all__ = ["draw"]


def draw(figure: Figure, form: Form) -> bytes:
    """Draw a figure.

    Parameters
    ----------
    figure
        Figure that an analysis returns.
    form
        'svg' and 'png' are complete pictures with title and note. 'inline svg' is for a page that shows title and note
        as text.

    Returns
    -------
    bytes
        Content of the picture file; the same figure always gives the same bytes.

    Raises
    ------
    PeekbenchError
        If matplotlib or arviz-stats is not installed.
    """
    try:
        from peekbench_figures.drawing import draw_figure  # noqa: PLC0415 - to name the extra if matplotlib is missing
    except ImportError as error:
        raise PeekbenchError(
            f"figures cannot be drawn: {error.name} is not installed; pip install 'peekbench[figures]'"
        ) from error
    return draw_figure(figure, form)


@hookimpl
def peekbench_renderers() -> list[RendererEntry]:
    """Register the renderer."""
    return [RendererEntry(name="figures", render=draw, summary="figures with matplotlib, color-blind safe")]
