"""Draws figures with matplotlib: forests, violins, densities and curves in one style, as SVG and PNG."""

from __future__ import annotations

from peekbench import hookimpl
from peekbench.plugins import RendererEntry
from peekbench_figures.drawing import draw

__all__ = ["draw"]


@hookimpl
def peekbench_renderers() -> list[RendererEntry]:
    return [RendererEntry(name="figures", render=draw, summary="figures with matplotlib, color-blind safe")]
