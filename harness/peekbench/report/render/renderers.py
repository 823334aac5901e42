"""Finds the plugin that draws figures, and names the picture files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from peekbench.errors import PluginError
from peekbench.plugins import registry
from peekbench.plugins.entries import RendererEntry
from peekbench.plugins.protocols import Form, Renderer
from peekbench.plugins.registry import find_default
from peekbench.records.figures import Figure, Forest
from peekbench.report.document import Report

FOLDER = "figures"
PICTURES: tuple[Form, ...] = ("svg", "png")
MAX_NAME_LENGTH = 60  # characters of a file name, without number and suffix


def find_renderer_entry(use: str = "") -> RendererEntry:
    """Return the renderer that draws figures.

    Parameters
    ----------
    use
        Name of the renderer, `plugin.thing`; by default the one that comes with peekbench, or the only installed one.

    Raises
    ------
    PluginError
        If no such renderer is installed, or if several are and none is named.
    """
    remedy = "choose one in the spec, as in `report: {renderer: NAME}`"
    use = use or find_default(RendererEntry, "renderer of figures", remedy, lambda _: True)
    return registry.find(use, RendererEntry)


def find_renderer(use: str = "") -> Renderer:
    """Return the function that draws figures; see `find_renderer_entry`."""
    return find_renderer_entry(use).render


class LazyRenderer:
    """A renderer that is looked up for the first figure, and once for all formats of a report.

    Parameters
    ----------
    use
        Name of the renderer, see `find_renderer_entry`.
    """

    def __init__(self, use: str) -> None:
        self._use = use
        self._found: Renderer | PluginError | None = None

    def __call__(self, figure: Figure, form: Form) -> bytes:
        """Draw a figure.

        Raises
        ------
        PluginError
            If the renderer cannot be found; see `find_renderer_entry`.
        """
        if self._found is None:
            try:
                self._found = find_renderer(self._use)
            except PluginError as error:
                self._found = error
        if isinstance(self._found, PluginError):
            raise self._found
        return self._found(figure, form)


def list_undrawn_figures(report: Report) -> str:
    """Return a sentence that names the figures that text formats leave out, and where they are; empty without any."""
    titles = "; ".join(figure.title for figure in report.figures if not isinstance(figure, Forest))
    if not titles:
        return ""
    if not report.formats:
        return f"Figures that text cannot show: {titles}. Add --reports FOLDER to write them into an HTML report."
    if pictures := [form for form in PICTURES if form in report.formats]:
        return f"Figures in the folder {FOLDER} ({' and '.join(pictures)}): {titles}."
    if "html" in report.formats:
        return (
            f"Figures in report.html only: {titles}. To write them as picture files, add svg or png to report.formats."
        )
    return f"Figures that are not drawn: {titles}. Add html, svg or png to report.formats to draw them."


def name_figures(report: Report) -> Iterator[tuple[str, Figure]]:
    """Yield each figure with a file name without suffix, made from the first words of its title: '02-bias-by-task'."""
    for number, figure in enumerate(report.figures, 1):
        first_words = re.split(r"[:,(]", figure.title.lower())[0]
        words = re.sub(r"[^a-z0-9.]+", "-", first_words)[:MAX_NAME_LENGTH].strip("-.")
        yield "-".join(filter(None, (f"{number:02d}", words))), figure
