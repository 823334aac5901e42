"""Where an axis begins, ends and has its numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from peekbench_figures.page import text_width
from peekbench_figures.style import FAINT, INK, REGION, SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from peekbench.figures import Axis

ROOM = 0.04  # of the axis, beyond its outermost value
NEAR = 1.0  # lengths of the longest range from zero
SQUEEZED, MUCH_SQUEEZED = 2.5, 5.0  # times as long as the axis of the others: a panel that makes it so has its own
LITTLE_LONGER = 1.35  # times
GAP = 0.09  # inches between two numbers
MOST_WANTED = 8
FEWEST = 3  # numbers that an axis may have, however short
MOST_TRIED = 60
SPACING = 0.4  # inches between two numbers, from middle to middle, at least
UPRIGHT_SPACING = 0.3  # where they stand above each other
STEPS = tuple(digit * 10.0**power for power in range(-6, 10) for digit in (1, 2, 5))


def name_of(axis: Axis) -> str:
    """What to write at it."""
    return f"{axis.label} (logarithmic scale)" if axis.is_log else axis.label


def factor(axis: Axis) -> float:
    """What values are multiplied with to be drawn: fractions become points or percent."""
    return 100.0 if axis.unit in ("difference", "fraction", "spread") else 1.0


def limits(values: Iterable[float], axis: Axis) -> tuple[float, float]:
    """First and last drawn number; those of differences include zero and a little of both its sides."""
    drawn = [value * factor(axis) for value in values if math.isfinite(value)]
    if axis.unit in ("difference", "change"):
        drawn += [0.0]
    if not drawn:
        return (1.0, 10.0) if axis.is_log else (-1.0, 1.0)
    low, high = min(drawn), max(drawn)
    if axis.is_log:
        room = (high / low) ** ROOM if high > low else 2.0
        return low / room, high * room
    room = (high - low) * ROOM or max(abs(low), 1.0)
    return low - room, high + room


def shared(panels: Sequence[Sequence[float]], axis: Axis) -> list[tuple[float, float]]:
    """Ends for each of several axes: the same, but for panels that would squeeze the others."""
    own = [limits(values, axis) for values in panels]
    spans = [(math.log(low), math.log(high)) for low, high in own] if axis.is_log else own
    sharing = _sharing(spans, SQUEEZED)
    together = limits((value for number in sharing for value in panels[number]), axis)
    return [together if number in sharing else ends for number, ends in enumerate(own)]


def centerd(panels: Sequence[Sequence[float]], axis: Axis) -> list[tuple[float, float]]:
    """Ends for each of several axes of the same length, around their own values; zero is there where it is near.

    Where one axis for all would be little longer, they share it; panels that would squeeze the others have their own.
    """
    drawn = [[value * factor(axis) for value in values if math.isfinite(value)] or [0.0] for values in panels]
    lengths = [max(values) - min(values) for values in drawn]
    sharing = _sharing([(0.0, length) for length in lengths], MUCH_SQUEEZED)
    longest = max((lengths[number] for number in sharing), default=0.0)
    near = [[*values, *([0.0] if max(map(abs, values)) <= longest * NEAR else [])] for values in drawn]
    length = max((max(near[number]) - min(near[number]) for number in sharing), default=0.0) * (1 + 2 * ROOM) or 2.0
    together = limits((value for number in sharing for value in panels[number]), axis)
    if together[1] - together[0] <= length * LITTLE_LONGER:
        return [together if number in sharing else limits(values, axis) for number, values in enumerate(panels)]
    middles = [(max(values) + min(values)) / 2 for values in near]
    return [
        (middle - length / 2, middle + length / 2) if number in sharing else limits(panels[number], axis)
        for number, middle in enumerate(middles)
    ]


def _sharing(spans: Sequence[tuple[float, float]], times: float) -> list[int]:
    """Which axes can be one: the narrower half, and of the wider ones all before the first that squeezes the others."""
    ordered = sorted(range(len(spans)), key=lambda number: spans[number][1] - spans[number][0])
    low, high = math.inf, -math.inf
    for place, number in enumerate(ordered):
        widest = max(high, spans[number][1]) - min(low, spans[number][0])
        if place >= len(ordered) / 2 and widest > times * (high - low):
            return sorted(ordered[:place])
        low, high = min(low, spans[number][0]), max(high, spans[number][1])
    return sorted(ordered)


def have_own(ends: Sequence[tuple[float, float]]) -> list[bool]:
    """Whether an axis is longer or shorter than most are."""
    lengths = [round(high - low, 9) for low, high in ends]
    commonest = max(lengths, key=lengths.count, default=0.0)
    return [length != commonest for length in lengths]


def ticks(
    axis: Axis, ends: tuple[float, float], inches: float, wanted: Sequence[float] = (), *, is_upright: bool = False
) -> dict[float, str]:
    """Numbers that do not touch each other, by their place.

    Parameters
    ----------
    wanted
        Values to show rather than round ones, where there is room: those of the points.
    """
    low, high = ends
    if axis.is_log:
        places = sorted({value * factor(axis) for value in wanted})
        if not 0 < len(places) <= MOST_WANTED:
            places = [*places[:1], *places[-1:], *(step for step in STEPS if low <= step <= high)]
        return _without_collisions({place: _number(place, axis) for place in places}, ends, inches, is_log=True)
    most = max(FEWEST, inches / (UPRIGHT_SPACING if is_upright else SPACING))
    sparse: dict[float, str] = {}
    for step in (step for step in STEPS if (high - low) / step <= MOST_TRIED):
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        numbers = sorted(range(math.ceil(low / step), math.floor(high / step) + 1), key=abs)
        labels = {number * step: _number(round(number * step, digits), axis) for number in numbers}
        kept = labels if is_upright else _without_collisions(labels, ends, inches, is_log=False)
        if len(labels) <= most and len(kept) == len(labels) and (len(labels) > 1 or not sparse):
            return labels
        if len(labels) == 1:
            break
        sparse = kept if len(kept) > 1 else sparse
    return dict(list(sparse.items())[:2])


def _without_collisions(
    labels: dict[float, str], ends: tuple[float, float], inches: float, *, is_log: bool
) -> dict[float, str]:
    """Labels that do not touch one before them."""
    low, high = (math.log(end) for end in ends) if is_log else ends
    kept: dict[float, str] = {}
    taken: list[tuple[float, float]] = []
    for place, label in labels.items():
        middle = ((math.log(place) if is_log else place) - low) / (high - low) * inches
        half = (text_width(label, SMALL) + GAP) / 2
        if all(middle + half <= left or right <= middle - half for left, right in taken):
            kept[place] = label
            taken.append((middle - half, middle + half))
    return kept


def _number(value: float, axis: Axis) -> str:
    if axis.unit == "fraction":
        return f"{value:g}%"
    if axis.unit == "count":
        return f"{value:,.0f}"
    is_signed = axis.unit in ("difference", "change") and value
    text = f"{value:+g}" if is_signed else f"{value:g}"
    return text.replace("-", "\N{MINUS SIGN}")


def set_up_x(axes: Axes, axis: Axis, ends: tuple[float, float], inches: float, wanted: Sequence[float] = ()) -> None:
    """Limits and numbers of the horizontal axis."""
    if axis.is_log:
        axes.set_xscale("log")
    axes.set_xlim(*ends)
    shown = dict(sorted(ticks(axis, ends, inches, wanted).items()))
    axes.set_xticks(list(shown), list(shown.values()), minor=False)
    axes.set_xticks([], minor=True)


def mark_zero(axes: Axes, axis: Axis, ends: tuple[float, float]) -> None:
    """Zero line and region of the horizontal axis."""
    if axis.region:
        half = axis.region * factor(axis)
        axes.axvspan(max(-half, ends[0]), min(half, ends[1]), color=INK, alpha=REGION, lw=0, zorder=0.5)
    if ends[0] <= 0 <= ends[1]:
        axes.axvline(0, color=INK, lw=0.7, alpha=0.6, zorder=0.7)


def set_up_y(axes: Axes, axis: Axis, ends: tuple[float, float], inches: float, *, are_numbers_shown: bool) -> None:
    """The same of the vertical axis, whose numbers stand above each other."""
    if axis.is_log:
        axes.set_yscale("log")
    axes.set_ylim(*ends)
    shown = dict(sorted(ticks(axis, ends, inches, is_upright=True).items()))
    axes.set_yticks(list(shown), list(shown.values()) if are_numbers_shown else [""] * len(shown))
    axes.set_yticks([], minor=True)
    axes.grid(axis="y", color=INK, alpha=FAINT / 2, lw=0.5)
    axes.set_axisbelow(True)
    if axis.region:
        half = axis.region * factor(axis)
        if -half < ends[1] and ends[0] < half:
            axes.axhspan(max(-half, ends[0]), min(half, ends[1]), color=INK, alpha=REGION, lw=0, zorder=0.5)
    if ends[0] <= 0 <= ends[1] and not axis.is_log:
        axes.axhline(0, color=INK, lw=0.7, alpha=0.6, zorder=0.7)


def in_words(axis: Axis) -> str:
    """What the shading is, for the small print."""
    if not axis.region:
        return ""
    unit = " points" if axis.unit == "difference" else ""
    return f"Shaded: differences below {axis.region * factor(axis):g}{unit}, which do not matter."
