"""What all formats share about figures: names of files, descriptions in words, axes, and the plugin that draws them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import fmean

from peekbench.formatting import TICK_STEPS, format_quantity, tick_decimals, with_sign
from peekbench.plugins import registry
from peekbench.plugins.entries import RendererEntry
from peekbench.plugins.protocols import Form, Renderer
from peekbench.plugins.registry import find_default
from peekbench.records.figures import Axis, Curve, Curves, Figure, Forest, Interval, Violins
from peekbench.records.report import Report
from peekbench.records.verdicts import Estimate, Unit

FOLDER = "figures"
UNDRAWN = "The formats html, svg and png draw this figure (report.formats)."
PICTURES: tuple[Form, ...] = ("svg", "png")
MAX_NAME_LENGTH = 60  # characters of a picture's name, without its number
MAX_DESCRIBED = 12  # parts of a figure


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure, and the name of its file without suffix."""

    figure: Figure
    name: str


def name_figures(report: Report) -> Iterator[Picture]:
    """Yield each figure with a file name from the first words of its title, such as '02-bias-by-task'."""
    for number, figure in enumerate(report.figures, 1):
        first_words = re.split(r"[:,(]", figure.title.lower())[0]
        words = re.sub(r"[^a-z0-9.]+", "-", first_words)[:MAX_NAME_LENGTH].strip("-.")
        yield Picture(figure, "-".join(filter(None, (f"{number:02d}", words))))


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
    parts: list[tuple[str, str, str]]
    match figure:
        case Forest():
            parts = [
                (heading, interval.label, _describe_interval(figure.axis, interval))
                for heading, group in figure.groups
                for interval in group
            ]
            if len(parts) > MAX_DESCRIBED:
                parts = [(heading, "", _summarize(figure.axis, group)) for heading, group in figure.groups if group]
        case Curves():
            parts = [
                (heading, curve.label, f"{_describe_point(figure, curve, 0)} to {_describe_point(figure, curve, -1)}")
                for heading, curves in figure.panels
                for curve in curves
                if curve.x
            ]
        case _:
            groups = figure.columns if isinstance(figure, Violins) else figure.groups
            parts = [
                (heading, sample.label, f"mean {format_quantity(fmean(sample.values), figure.axis.unit)}")
                for heading, samples in groups
                for sample in samples
                if sample.values
            ]
    named = [(", ".join(filter(None, (heading, label))), text) for heading, label, text in parts[:MAX_DESCRIBED]]
    shown = [": ".join(filter(None, part)) for part in named]
    if len(parts) > MAX_DESCRIBED:
        shown.append(f"And {len(parts) - MAX_DESCRIBED} more")
    return f"{'. '.join(shown) or 'No values'}."


def _summarize(axis: Axis, group: Sequence[Interval]) -> str:
    """Return the range of estimates that are too many to be listed."""
    single = [interval for interval in group if not interval.is_average] or group
    ends = [end(single, key=attrgetter("estimate")) for end in (min, max)]
    low, high = (f"{format_quantity(interval.estimate, axis.unit)} ({interval.label})" for interval in ends)
    number = sum(not interval.low <= 0 <= interval.high for interval in single)
    averages = [interval for interval in group if interval not in single]
    parts = [f"{interval.label} {_describe_interval(axis, interval)}" for interval in averages]
    return "; ".join([f"{len(single)} estimates from {low} to {high}", f"{number} intervals exclude zero", *parts])


def _describe_interval(axis: Axis, interval: Interval) -> str:
    return format_quantity(Estimate(interval.estimate, interval.low, interval.high), axis.unit)


def _describe_point(figure: Curves, curve: Curve, place: int) -> str:
    estimate = Estimate(curve.y[place])
    if curve.low:
        estimate = Estimate(curve.y[place], curve.low[place], curve.high[place])
    return f"{format_quantity(estimate, figure.y.unit)} at {format_quantity(curve.x[place], figure.x.unit)}"


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


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear axis from `low` to `high`."""

    low: float
    high: float
    unit: Unit

    @classmethod
    def fitting(cls, values: Iterable[float | None], unit: Unit, margin: float = 0.0) -> Scale:
        """Return an axis that contains zero and all finite values.

        Parameters
        ----------
        values
            Values to show; None and values that are not finite are ignored.
        unit
            Unit of the values.
        margin
            Share of the length to add on either side.
        """
        finite = [0.0, *(value for value in values if value is not None and math.isfinite(value))]
        low, high = min(finite), max(finite)
        if low == high:
            low, high = (-0.01, 0.01) if unit == "difference" else (-1.0, 1.0)
        added = (high - low) * margin
        return cls(low - added, high + added, unit)

    def share(self, value: float) -> float:
        """Return the position of a value, limited to the axis, from 0 to 1."""
        return (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)

    def ticks(self, max_number: float) -> list[tuple[float, str]]:
        """Return (value, label) of a few round numbers, including zero, in percentage points for differences."""
        factor = 100 if self.unit == "difference" else 1
        low, high = self.low * factor, self.high * factor
        step = next((step for step in TICK_STEPS if (high - low) / step <= max_number), TICK_STEPS[-1])
        numbers = range(math.ceil(low / step), math.floor(high / step) + 1)
        return [(number * step / factor, with_sign(number * step, tick_decimals(step))) for number in numbers]
