"""Draws figures with matplotlib: forests, violins, densities and curves in one style, as SVG and PNG."""

from __future__ import annotations

from peekbench import PainterEntry, hookimpl
from peekbench_figures.drawing import draw

__all__ = ["draw"]


@hookimpl
def peekbench_painters() -> list[PainterEntry]:
    return [PainterEntry(name="figures", paint=draw, summary="figures with matplotlib, colour-blind safe")]
