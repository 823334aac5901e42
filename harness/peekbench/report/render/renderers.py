"""A report's figures as pictures, by the plugin that paints them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from peekbench.plugins import registry
from peekbench.plugins.entries import RendererEntry
from peekbench.records.figures import Forest
from peekbench.report.build.run_report import Report

if TYPE_CHECKING:
    from peekbench.plugins.protocols import Renderer
    from peekbench.records.figures import Figure

FOLDER = "figures"
MOST_CHARACTERS = 60  # of a file name


def find_renderer(use: str = "") -> Renderer:
    """Return the function that draws figures.

    Parameters
    ----------
    use
        Name of the renderer, `plugin.thing`; by default the only one that is installed.

    Raises
    ------
    PluginError
        If no such renderer is installed, or if several are and none is named.
    """
    remedy = "choose one in the spec, as in `report: {renderer: NAME}`"
    use = use or registry.find_only(RendererEntry, "renderer of figures", remedy, lambda _: True)
    return registry.find(use, RendererEntry).render


def not_in_characters(report: Report) -> str:
    """Names the figures that a text cannot show."""
    titles = [figure.title for figure in report.figures if not isinstance(figure, Forest)]
    if not titles:
        return ""
    return f"Drawn in report.html, and as pictures where report.formats has svg or png: {'; '.join(titles)}."


def named_figures(report: Report) -> Iterator[tuple[str, Figure]]:
    """Each figure with a name for its file, without a suffix: '02-bias-by-task', from what its title says first."""
    for number, figure in enumerate(report.figures, 1):
        first = re.split(r"[:,(]", figure.title.lower())[0]
        words = re.sub(r"[^a-z0-9.]+", "-", first)[:MOST_CHARACTERS].strip("-.")
        yield "-".join(filter(None, (f"{number:02d}", words))), figure
