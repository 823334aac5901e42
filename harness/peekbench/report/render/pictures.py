"""Pictures of figures: finds the plugin that draws them, names their files, and describes them in sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from operator import attrgetter
from statistics import fmean
from typing import assert_never

from peekbench.formatting import format_cell
from peekbench.plugins import registry
from peekbench.plugins.entries import RendererEntry
from peekbench.plugins.protocols import Form, Renderer
from peekbench.plugins.registry import find_default
from peekbench.records.figures import Axis, Curve, Curves, Densities, Figure, Forest, Interval, Violins
from peekbench.records.report import Report

FOLDER = "figures"
PICTURES: tuple[Form, ...] = ("svg", "png")
MAX_NAME_LENGTH = 60  # characters of a file name, without number and suffix


def find_renderer(use: str = "") -> RendererEntry:
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


def make_renderer(use: str) -> Renderer:
    """Return a function that draws figures; it finds its renderer for the first one, so others need none."""
    return lambda figure, form: find_renderer(use).render(figure, form)


def list_undrawn_figures(report: Report) -> str:
    """Return a sentence that names the figures that text formats leave out; empty without any."""
    titles = "; ".join(figure.title for figure in report.figures if not isinstance(figure, Forest))
    return f"Figures in the formats html, svg and png only (report.formats): {titles}." if titles else ""


def name_figures(report: Report) -> Iterator[tuple[str, Figure]]:
    """Yield each figure with a file name without suffix, made from the first words of its title: '02-bias-by-task'."""
    for number, figure in enumerate(report.figures, 1):
        first_words = re.split(r"[:,(]", figure.title.lower())[0]
        words = re.sub(r"[^a-z0-9.]+", "-", first_words)[:MAX_NAME_LENGTH].strip("-.")
        yield "-".join(filter(None, (f"{number:02d}", words))), figure


MAX_PARTS = 12  # parts of a figure that are described


def alt_text(figure: Figure) -> str:
    """Describe a figure by its numbers, in one sentence per part, without its title.

    Parameters
    ----------
    figure
        Figure that an analysis returns.

    Returns
    -------
    str
        Text alternative of the figure.

    Examples
    --------
    >>> from peekbench.records import Forest, Interval
    >>> alt_text(Forest("Bias by task", (("lsa", (Interval("trec", 0.01, -0.02, 0.04),)),)))
    'lsa, trec: +1.00 [-2.00, +4.00] points.'
    """
    match figure:
        case Forest():
            parts = [
                (heading, each.label, _format(figure.axis, each.estimate, each.low, each.high))
                for heading, group in figure.groups
                for each in group
            ]
            if len(parts) > MAX_PARTS:
                parts = [(heading, "", _summarize(figure.axis, group)) for heading, group in figure.groups if group]
        case Violins() | Densities():
            groups = figure.columns if isinstance(figure, Violins) else figure.groups
            parts = [
                (heading, sample.label, f"mean {_format(figure.axis, fmean(sample.values))}")
                for heading, samples in groups
                for sample in samples
                if sample.values
            ]
        case Curves():
            parts = [
                (heading, curve.label, f"{_point(figure, curve, 0)} to {_point(figure, curve, -1)}")
                for heading, curves in figure.panels
                for curve in curves
                if curve.x
            ]
        case _:
            assert_never(figure)
    named = [(", ".join(filter(None, (heading, label))), text) for heading, label, text in parts[:MAX_PARTS]]
    shown = [": ".join(filter(None, part)) for part in named]
    shown += [f"And {len(parts) - MAX_PARTS} more"] if len(parts) > MAX_PARTS else []
    return f"{'. '.join(shown) or 'No values'}."


def _summarize(axis: Axis, group: Sequence[Interval]) -> str:
    """Return the range of estimates that are too many to be listed."""
    single = [each for each in group if not each.is_average] or group
    ends = [end(single, key=attrgetter("estimate")) for end in (min, max)]
    low, high = (f"{_format(axis, each.estimate)} ({each.label})" for each in ends)
    number = sum(not each.low <= 0 <= each.high for each in single)
    averages = (each for each in group if each not in single)
    parts = [f"{each.label} {_format(axis, each.estimate, each.low, each.high)}" for each in averages]
    return "; ".join([f"{len(single)} estimates from {low} to {high}", f"{number} intervals exclude zero", *parts])


def _point(figure: Curves, curve: Curve, place: int) -> str:
    ends = (curve.low[place], curve.high[place]) if curve.low else ()
    return f"{_format(figure.y, curve.y[place], *ends)} at {_format(figure.x, curve.x[place])}"


def _format(axis: Axis, value: float, *ends: float) -> str:
    """Return a value with the ends of its interval and its unit."""
    unit = " points" if axis.unit in ("difference", "spread") else ""
    interval = f" [{', '.join(format_cell(end, axis.unit) for end in ends)}]" if ends else ""
    return f"{format_cell(value, axis.unit)}{interval}{unit}"
