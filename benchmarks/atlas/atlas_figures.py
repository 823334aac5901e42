"""Draws the figures of the atlas from its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from atlas_records import POINTS, Effect, Line, Method, Section, Series

from peekbench.figures import Axis, Curve, Curves, Forest, Interval
from peekbench.formatting import pluralize

REGION = 0.005
"""Half an accuracy point, the region of practical equivalence of `summary`."""
UNITS = {POINTS: "accuracy points"}
ADJUSTED = "95% intervals for new subsamples of these tasks, adjusted for {}."
X_AXES = {
    "dose": Axis("share of test texts", "fraction"),
    "num_test": Axis("test texts", "count", is_log=True),
    "num_train": Axis("train texts", "count", is_log=True),
}
TITLES = {
    "dose": "Accuracy minus the accuracy of extra, by the share of test texts among the unlabeled texts",
    "num_test": "Bias by number of test texts",
    "num_train": "Bias by number of train texts",
}


def draw_biases(section: Section) -> Forest:
    """Draw the average bias of each method."""
    methods = without_controls(section)
    unit = "difference" if section.unit == POINTS else "change"
    return Forest(
        "Bias: score of test minus score of extra",
        (("", _intervals((method.name, method.bias) for method in methods)),),
        ADJUSTED.format(pluralize(len(methods), "method")),
        unit,  # type: ignore[arg-type]
        UNITS.get(section.unit, section.unit),
        REGION if section.unit == POINTS else 0.0,
    )


def draw_effects(section: Section) -> Forest:
    """Draw boost and bias side by side, methods in order of their boost."""
    methods = sorted(without_controls(section), key=lambda method: -method.boost.mean)
    groups = (
        ("boost: extra minus base", _intervals((method.name, method.boost) for method in methods)),
        ("bias: test minus extra", _intervals((method.name, method.bias) for method in methods)),
    )
    unit = "difference" if section.unit == POINTS else "change"
    note = "In order of the boost. " + ADJUSTED.format(pluralize(len(methods), "method"))
    return Forest("Boost and bias", groups, note, unit, UNITS.get(section.unit, section.unit))  # type: ignore[arg-type]


def draw_series(series: Series) -> Curves:
    """Draw one panel for each method; the negative control, whose bias is exactly 0, has none."""
    panels = tuple((line.method, (_curve(line),)) for line in series.lines if line.control != "negative")
    ordinate = "difference from extra" if series.name == "dose" else "bias"
    y = Axis(f"{ordinate}, accuracy points", "difference", region=REGION)
    num_estimates = sum(len(line.effects) - (series.name == "dose") for line in series.lines if not line.control)
    note = f"95% intervals for new subsamples of these tasks, adjusted for {num_estimates} estimates."
    return Curves(TITLES[series.name], X_AXES[series.name], y, panels, note)


def without_controls(section: Section) -> Sequence[Method]:
    """Return the methods of a section that are not controls."""
    return [method for method in section.methods if not method.control]


def _intervals(effects: Iterable[tuple[str, Effect]]) -> tuple[Interval, ...]:
    return tuple(Interval(label, effect.mean, *_limits(effect)) for label, effect in effects)


def _limits(effect: Effect) -> tuple[float, float]:
    """Return the interval, of zero width if there is none."""
    return (effect.mean if effect.low is None else effect.low, effect.mean if effect.high is None else effect.high)


def _curve(line: Line) -> Curve:
    limits = [_limits(effect) for effect in line.effects]
    means = tuple(effect.mean for effect in line.effects)
    return Curve("mean of these tasks", tuple(line.x), means, *(tuple(ends) for ends in zip(*limits, strict=True)))
