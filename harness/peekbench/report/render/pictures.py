"""What all formats share about figures: names of files, descriptions in words, axes, and the plugin that draws them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from peekbench.formatting import TICK_STEPS, format_quantity, tick_decimals, with_sign
from peekbench.plugins import registry
from peekbench.plugins.boundary import Foreign
from peekbench.plugins.entries import RendererEntry
from peekbench.plugins.protocols import Form, Renderer
from peekbench.plugins.registry import find_default
from peekbench.records.figures import Curve, Curves, Densities, Figure, Forest, Interval, Sample, Violins
from peekbench.records.report import Report
from peekbench.records.verdicts import Estimate, Unit

FOLDER = "figures"
UNDRAWN = "The formats html, svg and png draw this figure (report.formats)."
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
    parts = []
    for heading, members in groups_of(figure):
        for member in members:
            name = ", ".join(filter(None, (heading, member.label)))
            if text := _describe(member, figure):
                parts.append(": ".join(filter(None, (name, text))))
    if len(parts) > MAX_DESCRIBED:
        parts[MAX_DESCRIBED:] = [f"And {len(parts) - MAX_DESCRIBED} more"]
    return f"{'. '.join(parts) or 'No values'}."


def groups_of(figure: Figure) -> Sequence[tuple[str, Sequence[Interval | Sample | Curve]]]:
    """Return the headings and the members of the groups, columns or panels of a figure."""
    match figure:
        case Violins():
            return figure.columns
        case Curves():
            return figure.panels
    return figure.groups


def _describe(member: Interval | Sample | Curve, figure: Figure) -> str:
    """Describe an interval, the mean of a sample, or the ends of a curve; empty without any value."""
    if isinstance(figure, Curves) and isinstance(member, Curve):
        unknown = (math.nan,) * len(member.y)
        points = zip(member.x, member.y, member.low or unknown, member.high or unknown, strict=True)
        texts = [
            f"{format_quantity(Estimate(*estimate), figure.y.unit)} at {format_quantity(x, figure.x.unit)}"
            for x, *estimate in points
        ]
        return " to ".join(texts[:1] + texts[-1:])
    if isinstance(figure, Forest) and isinstance(member, Interval):
        return format_quantity(Estimate(member.estimate, member.low, member.high), figure.unit)
    if isinstance(figure, Violins | Densities) and isinstance(member, Sample) and member.values:
        return f"mean {format_quantity(fmean(member.values), figure.axis.unit)}"
    return ""


def make_renderer(use: str) -> Renderer:
    """Return a function that draws figures; it finds its renderer for the first one, so others need none."""

    def render(figure: Figure, form: Form) -> bytes:
        entry = registry.find(use or find_default(RendererEntry, "renderer of figures", lambda _: True), RendererEntry)
        picture: bytes = Foreign(f"renderer {entry.name}").call(entry.render, {"figure": figure, "form": form}, bytes)
        return picture

    return render


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
            high = {"difference": 0.01}.get(unit, 1.0)
            low = -high
        added = (high - low) * margin
        return cls(low - added, high + added, unit)

    def share(self, value: float) -> float:
        """Return the position of a value, limited to the axis, from 0 to 1."""
        return (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)

    def ticks(self, max_number: float) -> list[tuple[float, str]]:
        """Return (value, label) of a few round numbers, including zero, in percentage points for differences."""
        factor = {"difference": 100}.get(self.unit, 1)
        low, high = self.low * factor, self.high * factor
        step = next((step for step in TICK_STEPS if (high - low) / step <= max_number), TICK_STEPS[-1])
        numbers = range(math.ceil(low / step), math.floor(high / step) + 1)
        return [(number * step / factor, with_sign(number * step, tick_decimals(step))) for number in numbers]
