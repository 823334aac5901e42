"""Figures in reports: finds the plugin that draws them, describes them in sentences, draws forests in characters."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import assert_never

from peekbench.errors import PluginError
from peekbench.formatting import format_cell
from peekbench.plugins import registry
from peekbench.plugins.entries import RendererEntry
from peekbench.plugins.protocols import Form, Renderer
from peekbench.plugins.registry import find_default
from peekbench.records.figures import Axis, Curve, Curves, Densities, Figure, Forest, Interval, Sample, Violins
from peekbench.records.report import Report

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


MAX_PARTS = 8  # parts of a figure that are described one by one


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
    'lsa: 1 estimate of +1.00 points (trec); no interval excludes zero.'
    """
    match figure:
        case Forest():
            parts = [_forest_part(figure, heading, intervals) for heading, intervals in figure.groups]
        case Violins():
            parts = [_violin_part(figure, heading, samples) for heading, samples in figure.columns]
        case Densities():
            parts = list(_density_parts(figure))
        case Curves():
            parts = list(_curve_parts(figure))
        case _:
            assert_never(figure)
    num_left_out = len(parts) - MAX_PARTS
    return ". ".join(parts[:MAX_PARTS]) + (f". And {num_left_out} more" if num_left_out > 0 else "") + "."


def _format(value: float, axis: Axis) -> str:
    return "unknown" if math.isnan(value) else format_cell(value, axis.unit)


def _unit_of(axis: Axis) -> str:
    """Return the unit of formatted numbers that do not include it, as percentages do."""
    return " points" if axis.unit in ("difference", "spread") else ""


def _headed(heading: str, text: str) -> str:
    return f"{heading}: {text}" if heading else text


def _forest_part(figure: Forest, heading: str, intervals: Sequence[Interval]) -> str:
    axis = figure.axis
    single = [interval for interval in intervals if not interval.is_average]
    parts = []
    if single:
        lowest, highest = (select(single, key=lambda interval: interval.estimate) for select in (min, max))
        low, high = (_format(interval.estimate, axis) for interval in (lowest, highest))
        if len(single) == 1:
            estimates = f"1 estimate of {low}{_unit_of(axis)} ({lowest.label})"
        else:
            estimates = (
                f"{len(single)} estimates from {low} ({lowest.label}) to {high} ({highest.label}){_unit_of(axis)}"
            )
        num_excluding = sum(interval.low > 0 or interval.high < 0 for interval in single)
        verb = "intervals exclude" if num_excluding > 1 else "interval excludes"
        parts += [estimates, f"{num_excluding or 'no'} {verb} zero"]
    parts += [
        f"{interval.label} {_format(interval.estimate, axis)} [{_format(interval.low, axis)}, "
        f"{_format(interval.high, axis)}]"
        for interval in intervals
        if interval.is_average
    ]
    return _headed(heading, "; ".join(parts))


def _mean(sample: Sample) -> float:
    return math.fsum(sample.values) / len(sample.values) if sample.values else math.nan


def _violin_part(figure: Violins, heading: str, samples: Sequence[Sample]) -> str:
    filled = [sample for sample in samples if sample.values]
    if not filled:
        return _headed(heading, "no values")
    axis = figure.axis
    lowest, highest = (select(filled, key=_mean) for select in (min, max))
    low, high = (select(select(sample.values) for sample in filled) for select in (min, max))
    return _headed(
        heading,
        f"means from {_format(_mean(lowest), axis)} ({lowest.label}) to {_format(_mean(highest), axis)} "
        f"({highest.label}), single values from {_format(low, axis)} to {_format(high, axis)}{_unit_of(axis)}",
    )


def central_interval(values: Sequence[float], level: float) -> tuple[float, float]:
    """Return the ends of the interval between two quantiles that contains a share of the values.

    Parameters
    ----------
    values
        Values, in any order.
    level
        Share of the values in the interval, between 0 and 1.

    Returns
    -------
    tuple[float, float]
        Ends, interpolated linearly as by `numpy.quantile`; NaN if there are no values.
    """
    if not values:
        return math.nan, math.nan
    ordered = sorted(values)

    def quantile(share: float) -> float:
        rank = share * (len(ordered) - 1)
        below = math.floor(rank)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (rank - below) * (ordered[above] - ordered[below])

    return quantile((1 - level) / 2), quantile((1 + level) / 2)


def _density_parts(figure: Densities) -> Iterator[str]:
    axis = figure.axis
    for heading, samples in figure.groups:
        for sample in samples:
            low, high = (_format(end, axis) for end in central_interval(sample.values, figure.level))
            text = (
                f"mean {_format(_mean(sample), axis)}, central {figure.level:.0%} from {low} to {high}{_unit_of(axis)}"
            )
            if sample.mark is not None:
                text += f", {figure.mark} {_format(sample.mark, axis)}"
            yield _headed(", ".join(filter(None, (heading, sample.label))), text)


def _curve_parts(figure: Curves) -> Iterator[str]:
    for heading, curves in figure.panels:
        for curve in curves:
            yield _headed(", ".join(filter(None, (heading, curve.label))), _ends(figure, curve))


def _ends(figure: Curves, curve: Curve) -> str:
    """Describe the first and the last point of a curve."""
    if not curve.x:
        return "no points"

    def describe(number: int) -> str:
        text = _format(curve.y[number], figure.y)
        if curve.low:
            text += f" [{_format(curve.low[number], figure.y)}, {_format(curve.high[number], figure.y)}]"
        return f"{text}{_unit_of(figure.y)} at {_format(curve.x[number], figure.x)}{_unit_of(figure.x)}"

    if curve.is_scatter and len(curve.x) > 1:
        return f"{len(curve.x)} points, from {describe(0)} to {describe(-1)}"
    return f"from {describe(0)} to {describe(-1)}" if len(curve.x) > 1 else describe(0)
