"""Figures of the summary: biases by task, distributions, and curves by dose, test size and number of subsamples."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from peekbench import Estimate, Verdict
from peekbench.records import Axis, Curve, Curves, Forest, Interval, Sample, Violins
from peekbench.results import Configuration, Configurations, label_configuration
from peekbench_stats import downsample, units_of
from peekbench_summary.estimates import (
    NO_EFFECT,
    estimate_effect,
    estimate_task,
    estimate_these_tasks,
    failures_cancel,
)
from peekbench_summary.scores import average_effect, verdict_note

AVERAGE = "average of these tasks"
DOSE_EFFECT = re.compile(r"mix-(\S+) - extra")
FIRST = 5  # subsamples per task; with fewer, the wide interval would dominate the figure
NUM_STEPS = 16  # between the first and the last interval
MAX_VALUES = 100  # of a violin
ARMS = {"bias": ("test", "extra"), "boost": ("extra", "base")}
"""Effect to the two arms whose difference it is."""


def effect_axis(results: Configurations, effect: str, region: float = 0.0) -> Axis:
    """Return the axis of an effect, in points if scores are fractions."""
    unit = {"difference": "points"}.get(results.units.difference, "units of the score")
    if results.is_accuracy:
        unit = "accuracy points"
    return Axis(f"{effect}, {unit}", results.units.difference, region=region)


def forests(results: Configurations, verdicts: Sequence[Verdict], level: float, region: float) -> tuple[Forest, ...]:
    """Draw the bias by task, and on average that of the verdict, with intervals; nothing without any interval."""
    groups: list[tuple[str, tuple[Interval, ...]]] = []
    for configuration, verdict in zip(results.configurations, verdicts, strict=True):
        tasks = configuration.scores["bias"]
        estimates: list[tuple[str, Estimate, bool]] = [
            (task, estimate_task(configuration, "bias", task, level), False) for task in tasks
        ]
        if len(tasks) > 1:
            estimates.append((AVERAGE, verdict.estimate, True))
        else:
            estimates = [(task, verdict.estimate, False) for task in tasks]
        intervals = tuple(
            Interval(label, estimate.mean, estimate.low, estimate.high, is_average)
            for label, estimate, is_average in estimates
            if estimate.has_interval
        )
        if intervals and (verdict.estimate.has_interval or not verdict.control):  # a control without one is exact
            groups.append((configuration.label, intervals))
    if not groups:
        return ()
    score = "accuracy" if results.is_accuracy else "score"
    subject = "Bias of controls by task" if results.configurations[0].control else "Bias by task"
    title = f"{subject}: {score} of test minus {score} of extra, {level:.0%} intervals"
    note = "Intervals are for new subsamples of the same data sets."
    note += verdict_note(verdicts, level, "averages", "single tasks")
    axis = effect_axis(results, "bias")
    return (Forest(title, tuple(groups), note, axis.unit, axis.label, region),)


def violins(results: Configurations) -> tuple[Violins, ...]:
    """Draw the differences of single subsamples, one figure per effect; nothing if all tasks have single subsamples."""
    if (
        max(len(values) for configuration in results.configurations for values in configuration.scores["bias"].values())
        < 2
    ):
        return ()
    return tuple(
        Violins(
            f"{effect.capitalize()} of single subsamples, {minuend} minus {subtrahend}, by task",
            effect_axis(results, effect),
            tuple((configuration.label, _samples(configuration, effect)) for configuration in results.configurations),
            results.note(
                "The width of a violin shows how much single differences vary, not how precisely their mean is known."
            ),
        )
        for effect, (minuend, subtrahend) in ARMS.items()
        if effect in results.effects
    )


def _samples(configuration: Configuration, effect: str) -> tuple[Sample, ...]:
    return tuple(Sample(task, downsample(values, MAX_VALUES)) for task, values in configuration.scores[effect].items())


def progress(results: Configurations, verdicts: Sequence[Verdict], level: float, region: float) -> tuple[Curves, ...]:
    """Draw the average bias and its interval after the first 5, 6, ... subsamples; nothing for fewer than 10.

    The intervals have the level of that of the verdict, which is the last one.
    """
    panels = []
    for configuration, verdict in zip(results.configurations, verdicts, strict=True):
        tasks = units_of(configuration, configuration.scores["bias"])
        last = max(map(len, tasks))
        if last < 2 * FIRST:
            continue
        numbers = sorted({round(FIRST * (last / FIRST) ** (step / NUM_STEPS)) for step in range(NUM_STEPS + 1)})
        coverage = level
        if verdict.estimate.has_interval:
            coverage = verdict.estimate.level
        points: dict[float, Estimate] = {
            number: estimate_these_tasks(
                [task[:number] for task in tasks],
                coverage,
                configuration.step,
                is_skewed=not failures_cancel(configuration, "bias"),
            )
            for number in numbers
        }
        points[last] = average_effect(configuration, "bias", level, verdict)
        panels.append((configuration.label, (_curve(AVERAGE, points),)))
    if not panels:
        return ()
    title = f"Average bias by number of subsamples, {level:.0%} intervals"
    x = Axis("subsamples per task", "count", is_log=True)
    note = results.note("A retrospective view: intervals are too short if sampling stops as soon as one looks good.")
    return (Curves(title, x, effect_axis(results, "bias", region), tuple(panels), note),)


def doses(results: Configurations, verdicts: Sequence[Verdict], level: float, region: float) -> tuple[Curves, ...]:
    """Draw the score by the share of the test set among the unlabeled texts; nothing without dose arms."""
    shares = {match[1]: effect for effect in results.effects if (match := DOSE_EFFECT.fullmatch(effect))}
    if not shares:
        return ()
    panels = []
    for configuration, verdict in zip(results.configurations, verdicts, strict=True):
        points: dict[float, Estimate] = {0.0: NO_EFFECT}
        points |= {float(share): estimate_effect(configuration, effect, level) for share, effect in shares.items()}
        points[1.0] = average_effect(configuration, "bias", level, verdict)
        panels.append((configuration.label, (_curve(AVERAGE, points),)))
    title = f"Dose response: score minus the score of extra, {level:.0%} intervals"
    x = Axis("share of the test set among the unlabeled", "fraction")
    y = effect_axis(results, "difference from extra", region)
    note = results.note("The value at 100% is the bias. A bias caused by the test set should grow with the dose.")
    return (Curves(title, x, y, tuple(panels), note),)


def sizes(results: Configurations, verdicts: Sequence[Verdict], level: float, region: float) -> tuple[Curves, ...]:
    """Draw the average bias by the number of test texts; nothing for a single size."""
    names = [column.name for column in results.columns]
    if "num_test" not in names:
        return ()
    panels: dict[str, dict[str, dict[float, Estimate]]] = {}
    for configuration, verdict in zip(results.configurations, verdicts, strict=True):
        if configuration.num_test is None:
            return ()
        cells = dict(zip(names, configuration.cells, strict=True))
        heading = label_configuration({part: cells[part] for part in ("method", "num_train") if part in cells})
        label = str(cells.get("model") or "") or AVERAGE
        estimate = average_effect(configuration, "bias", level, verdict)
        panels.setdefault(heading, {}).setdefault(label, {})[configuration.num_test] = estimate
    curves = [
        (heading, tuple(_curve(label, points) for label, points in lines.items())) for heading, lines in panels.items()
    ]
    if max(len(curve.x) for _, lines in curves for curve in lines) < 2:
        return ()
    title = f"Bias by number of test texts, {level:.0%} intervals"
    x = Axis("test texts, and as many extra texts", "count", is_log=True)
    return (Curves(title, x, effect_axis(results, "bias", region), tuple(curves)),)


def _curve(label: str, points: Mapping[float, Estimate]) -> Curve:
    """Return the curve through estimates by x; an estimate without an interval gets one of zero width."""
    ordered = sorted(points.items())
    return Curve(
        label,
        tuple(float(x) for x, _ in ordered),
        tuple(estimate.mean for _, estimate in ordered),
        tuple(_replace_nan(estimate.low, estimate.mean) for _, estimate in ordered),
        tuple(_replace_nan(estimate.high, estimate.mean) for _, estimate in ordered),
    )


def _replace_nan(value: float, replacement: float) -> float:
    return replacement if math.isnan(value) else value


def common_region(half_widths: Sequence[float | None]) -> float:
    """Return the region that all configurations share; 0, which draws none, if they differ."""
    return half_widths[0] or 0.0 if len(set(half_widths)) == 1 else 0.0
