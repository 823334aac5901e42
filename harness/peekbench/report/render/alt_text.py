"""What a figure shows, in a sentence made from its numbers: for those who cannot see it, and where it is not drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import assert_never

from peekbench.formatting import format_cell
from peekbench.records.figures import Axis, Curve, Curves, Densities, Figure, Forest, Interval, Sample, Violins

MOST_LISTED = 8  # parts of a figure that are named one by one


def alt_text(figure: Figure) -> str:
    """One sentence, or one for each of a few parts, without the title."""
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
    left_out = len(parts) - MOST_LISTED
    return ". ".join(parts[:MOST_LISTED]) + (f". And {left_out} more" if left_out > 0 else "") + "."


def _shown(value: float, axis: Axis) -> str:
    return "unknown" if math.isnan(value) else format_cell(value, axis.unit)


def _in_words(axis: Axis) -> str:
    """The unit of the numbers, where they do not bring one: percent do."""
    return " points" if axis.unit in ("difference", "spread") else ""


def _titled(heading: str, text: str) -> str:
    return f"{heading}: {text}" if heading else text


def _forest_part(figure: Forest, heading: str, intervals: Sequence[Interval]) -> str:
    axis = figure.axis
    single = [interval for interval in intervals if not interval.is_average]
    parts = []
    if single:
        least, most = (pick(single, key=lambda one: one.estimate) for pick in (min, max))
        span = f"{_shown(least.estimate, axis)} ({least.label}) to {_shown(most.estimate, axis)} ({most.label})"
        beyond = sum(one.low > 0 or one.high < 0 for one in single)
        parts.append(
            f"{len(single)} estimates from {span}{_in_words(axis)}, of whose intervals {beyond or 'none'} "
            f"exclude{'s' if beyond == 1 else ''} zero"
        )
    parts += [
        f"{one.label} {_shown(one.estimate, axis)} [{_shown(one.low, axis)}, {_shown(one.high, axis)}]"
        for one in intervals
        if one.is_average
    ]
    return _titled(heading, "; ".join(parts))


def _mean(sample: Sample) -> float:
    return math.fsum(sample.values) / len(sample.values) if sample.values else math.nan


def _violin_part(figure: Violins, heading: str, samples: Sequence[Sample]) -> str:
    filled = [sample for sample in samples if sample.values]
    if not filled:
        return _titled(heading, "no values")
    least, most = (pick(filled, key=_mean) for pick in (min, max))
    low, high = (pick(pick(sample.values) for sample in filled) for pick in (min, max))
    return _titled(
        heading,
        f"means from {_shown(_mean(least), figure.axis)} ({least.label}) to {_shown(_mean(most), figure.axis)} "
        f"({most.label}), single values from {_shown(low, figure.axis)} to {_shown(high, figure.axis)}"
        + _in_words(figure.axis),
    )


def central(values: Sequence[float], level: float) -> tuple[float, float]:
    """Ends of the central interval that holds such a share of the values; NaN where there are none."""
    if not values:
        return math.nan, math.nan
    ordered = sorted(values)

    def quantile(share: float) -> float:
        place = share * (len(ordered) - 1)
        below = math.floor(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (place - below) * (ordered[above] - ordered[below])

    return quantile((1 - level) / 2), quantile((1 + level) / 2)


def _density_parts(figure: Densities) -> Iterator[str]:
    for heading, samples in figure.groups:
        for sample in samples:
            low, high = (_shown(end, figure.axis) for end in central(sample.values, figure.level))
            text = f"mean {_shown(_mean(sample), figure.axis)}, {figure.level:.0%} from {low} to {high}"
            text += _in_words(figure.axis)
            if sample.mark is not None:
                text += f", {figure.mark} {_shown(sample.mark, figure.axis)}"
            yield _titled(", ".join(filter(None, (heading, sample.label))), text)


def _curve_parts(figure: Curves) -> Iterator[str]:
    for heading, curves in figure.panels:
        for curve in curves:
            yield _titled(", ".join(filter(None, (heading, curve.label))), _course(figure, curve))


def _course(figure: Curves, curve: Curve) -> str:
    if not curve.x:
        return "no points"

    def at(position: int) -> str:
        text = _shown(curve.y[position], figure.y)
        if curve.low:
            text += f" [{_shown(curve.low[position], figure.y)}, {_shown(curve.high[position], figure.y)}]"
        return f"{text}{_in_words(figure.y)} at {_shown(curve.x[position], figure.x)}{_in_words(figure.x)}"

    return f"from {at(0)} to {at(-1)}" if len(curve.x) > 1 else at(0)
