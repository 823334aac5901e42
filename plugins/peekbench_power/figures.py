"""Power curves: of this design by bias, and of planned designs by number of subsamples."""

from __future__ import annotations

import math
from collections.abc import Sequence

from peekbench.formatting import pluralize, spread_unit
from peekbench.records import Axis, Curve, Curves
from peekbench_power import Power
from peekbench_power.designs import detectable_bias
from peekbench_power.detection import compute_power, minimum_detectable
from peekbench_power.noise import Measurement, MethodNoise
from peekbench_power.tables import criterion_of

NUM_POINTS = 24  # of a curve
X_RANGE = 1.6  # in minimum detectable biases of the least precise design


def power_curves(measured: Sequence[MethodNoise], options: Power, is_accuracy: bool) -> Curves:
    """Draw the probability of detecting a bias with the subsamples of this design."""
    criterion = criterion_of(options)
    sizes = [size for method in measured for size in method.measurements]
    detected = [minimum_detectable(math.sqrt(size.squared_error), size.degrees, criterion) for size in sizes]
    largest = max([bias for bias in detected if bias], default=max(options.biases))
    biases = tuple(X_RANGE * largest * step / NUM_POINTS for step in range(NUM_POINTS + 1))
    panels = tuple(
        (
            _heading(method, measured),
            tuple(
                Curve(_line_label(size.num_test), biases, _power_at(biases, size, options.alpha))
                for size in method.measurements
            ),
        )
        for method in measured
    )
    return Curves(
        f"Power of this design, {options.alpha:.0%} two-sided",
        _bias_axis("bias", is_accuracy),
        Axis("probability of detection", "fraction"),
        panels,
        "For the t test of the mean bias over these tasks.",
    )


def _power_at(biases: Sequence[float], size: Measurement, alpha: float) -> tuple[float, ...]:
    """Return the power as in the tables, but at least the significance level, which the tables' formula undercuts."""
    error = math.sqrt(size.squared_error)
    return tuple(max(alpha, compute_power(bias, error, size.degrees, alpha)) for bias in biases)


def detectable_curves(planned: Sequence[MethodNoise], options: Power, is_accuracy: bool) -> tuple[Curves, ...]:
    """Draw the minimum detectable bias by number of subsamples, for the measured number of tasks."""
    criterion = criterion_of(options)
    panels = []
    for method in planned:
        curves = []
        for num_test in options.num_test or method.test_sizes:
            biases = {
                number: detectable_bias(method.noise, method.num_tasks, number, num_test, criterion)
                for number in sorted(options.subsamples)
            }
            points = [(float(number), bias) for number, bias in biases.items() if bias is not None]
            curves.append(Curve(_line_label(num_test), tuple(x for x, _ in points), tuple(y for _, y in points)))
        panels.append((f"{_heading(method, planned)}, {pluralize(method.num_tasks, 'task')}", tuple(curves)))
    if not any(curve.x for _, curves in panels for curve in curves):
        return ()
    title = f"Minimum detectable bias by number of subsamples, {options.power:.0%} power, {options.alpha:.0%} two-sided"
    x = Axis("subsamples per task", "count", is_log=True)
    y = _bias_axis("minimum detectable bias", is_accuracy)
    return (Curves(title, x, y, tuple(panels)),)


def _bias_axis(name: str, is_accuracy: bool) -> Axis:
    return Axis(f"{name}, {'accuracy points' if is_accuracy else 'units of the score'}", spread_unit(is_accuracy))


def _heading(method: MethodNoise, methods: Sequence[MethodNoise]) -> str:
    has_several_sizes = len({each.num_train for each in methods}) > 1
    return f"{method.label}, num_train={method.num_train}" if has_several_sizes else method.label


def _line_label(num_test: int | None) -> str:
    return "all sizes" if num_test is None else f"num_test={num_test}"
