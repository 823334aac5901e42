"""Power curves: of the design at hand by bias, and of planned ones by number of subsamples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from peekbench.figures import Axis, Curve, Curves
from peekbench.formatting import pluralize
from peekbench.records import Unit
from peekbench_power.designs import detectable
from peekbench_power.detection import Wanted, minimum_detectable, power
from peekbench_power.noise import Measured, Noise

if TYPE_CHECKING:
    from peekbench_power import Power

Found = tuple[str, int, list[Measured], Noise]
POINTS = 24  # of a curve
FAR = 1.6  # how far the curves go, in minimum detectable biases of the least sure design


def power_curves(found: Sequence[Found], options: Power, is_accuracy: bool) -> Curves:
    """Chance of telling a bias from zero, with the subsamples at hand."""
    wanted = Wanted(options.power, options.size)
    errors = [(math.sqrt(one.squared_error), one.degrees) for _, _, sizes, _ in found for one in sizes]
    least = [bias for bias in (minimum_detectable(*error, wanted) for error in errors) if bias]
    biases = [FAR * max(least, default=max(options.biases)) * step / POINTS for step in range(POINTS + 1)]
    panels = [
        (
            _heading(label, num_train, found),
            tuple(
                Curve(
                    _line(one.num_test),
                    tuple(biases),
                    tuple(_power(bias, one, options.size) for bias in biases),
                )
                for one in sizes
            ),
        )
        for label, num_train, sizes, _ in found
    ]
    return Curves(
        f"Power of this design, {options.size:.0%} two-sided",
        _bias_axis("bias", is_accuracy),
        Axis("chance of seeing it", "fraction"),
        tuple(panels),
        "Of the t test of the mean bias over these tasks.",
    )


def _power(bias: float, one: Measured, size: float) -> float:
    """As the tables have it; for biases too small to detect, no less than what chance gives."""
    return max(size, power(bias, math.sqrt(one.squared_error), one.degrees, size))


def detectable_curves(found: Sequence[Found], options: Power, is_accuracy: bool) -> tuple[Curves, ...]:
    """Minimum detectable bias by number of subsamples, for as many tasks as were measured."""
    wanted = Wanted(options.power, options.size)
    panels = []
    for label, num_train, sizes, noise in found:
        tasks = max(one.num_tasks for one in sizes)
        curves = []
        for num_test in options.num_test or [one.num_test for one in sizes]:
            points = [(number, detectable(noise, tasks, number, num_test, wanted)) for number in options.subsamples]
            known = [(float(number), bias) for number, bias in sorted(points) if bias is not None]
            curves.append(Curve(_line(num_test), tuple(x for x, _ in known), tuple(y for _, y in known)))
        panels.append((f"{_heading(label, num_train, found)}, {pluralize(tasks, 'task')}", tuple(curves)))
    if not any(curve.x for _, curves in panels for curve in curves):
        return ()
    title = f"Minimum detectable bias by number of subsamples, {options.power:.0%} power, {options.size:.0%} two-sided"
    x = Axis("subsamples of each task", "count", is_log=True)
    y = _bias_axis("minimum detectable bias", is_accuracy)
    return (Curves(title, x, y, tuple(panels)),)


def _bias_axis(what: str, is_accuracy: bool) -> Axis:
    unit: Unit = "spread" if is_accuracy else "number"
    return Axis(f"{what}, {'accuracy points' if is_accuracy else 'units of the score'}", unit)


def _heading(label: str, num_train: int, found: Sequence[Found]) -> str:
    return f"{label}, m={num_train}" if len({number for _, number, *_ in found}) > 1 else label


def _line(num_test: int | None) -> str:
    return "all sizes" if num_test is None else f"n={num_test}"
