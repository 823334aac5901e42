"""What the summary shows as pictures: biases by task, distributions, and how they go with doses, sizes, subsamples."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from peekbench.figures import Axis, Curve, Curves, Forest, Interval, Sample, Violins, downsample
from peekbench.records import Cell
from peekbench.results import Configuration, Configurations
from peekbench_summary.estimates import Estimate, of_one_task, of_these_tasks

AVERAGE = "average of these tasks"
DOSE = re.compile(r"mix-(\S+) - extra")
FIRST = 5  # subsamples; with fewer the interval is wider than anything to come
STEPS = 16  # of the interval's progress
MAX_VALUES = 100  # of a violin


def axis_of(found: Configurations, effect: str, region: float = 0.0) -> Axis:
    """Of an effect, in points where scores are accuracies."""
    if found.is_accuracy:
        return Axis(f"{effect}, accuracy points", "difference", region=region)
    return Axis(f"{effect}, units of the score", "change", region=region)


def forests(found: Configurations, level: float, region: float) -> tuple[Forest, ...]:
    """One forest, or none where single subsamples give no interval."""
    groups: list[tuple[str, tuple[Interval, ...]]] = []
    for one in found.configurations:
        tasks = one.scores["bias"]
        estimates = [(task, of_one_task(values, level), False) for task, values in tasks.items()]
        if len(tasks) > 1:
            estimates.append((AVERAGE, of_these_tasks(list(tasks.values()), level), True))
        intervals = tuple(
            Interval(label, estimate.mean, estimate.low, estimate.high, is_average)
            for label, estimate, is_average in estimates
            if estimate.has_interval
        )
        if intervals:
            groups.append((one.label, intervals))
    if not groups:
        return ()
    score = "accuracy" if found.is_accuracy else "score"
    what = "Bias of controls by task" if found.configurations[0].control else "Bias by task"
    title = f"{what}: {score} of test minus {score} of extra, {level:.0%} intervals"
    note = "Intervals are for further subsamples of the same data sets."
    axis = axis_of(found, "bias")
    return (Forest(title, tuple(groups), note, axis.unit, axis.label, region),)


def violins(found: Configurations) -> tuple[Violins, ...]:
    """Differences of single subsamples, a figure for the bias and one for the boost; none where there is one each."""
    if max(len(values) for one in found.configurations for values in one.scores["bias"].values()) < 2:
        return ()
    what = {"bias": ("test", "extra"), "boost": ("extra", "base")}
    return tuple(
        Violins(
            found.title(f"{effect.capitalize()} of single subsamples, {more} minus {less}, by task"),
            axis_of(found, effect),
            tuple(
                (
                    one.label,
                    tuple(Sample(task, downsample(values, MAX_VALUES)) for task, values in one.scores[effect].items()),
                )
                for one in found.configurations
            ),
            "How wide a violin is says how much single differences vary, not how sure their mean is.",
        )
        for effect, (more, less) in what.items()
        if effect in found.effects
    )


def progress(found: Configurations, level: float, region: float) -> tuple[Curves, ...]:
    """The average bias with its interval after so many subsamples of each task; none where there are few."""
    panels = []
    for one in found.configurations:
        tasks = list(one.scores["bias"].values())
        most = max(map(len, tasks))
        if most < 2 * FIRST:
            continue
        numbers = sorted({round(FIRST * (most / FIRST) ** (step / STEPS)) for step in range(STEPS + 1)})
        points = {number: of_these_tasks([task[:number] for task in tasks], level) for number in numbers}
        panels.append((one.label, (_curve(AVERAGE, points),)))
    if not panels:
        return ()
    title = found.title(f"The average bias as subsamples accrue, {level:.0%} intervals")
    x = Axis("subsamples of each task", "count", is_log=True)
    note = "A look back. Who stops drawing as soon as an interval pleases gets intervals that are too short."
    return (Curves(title, x, axis_of(found, "bias", region), tuple(panels), note, is_centered=True),)


def doses(found: Configurations, level: float, region: float) -> tuple[Curves, ...]:
    """The score by the share of test texts among the unlabeled, compared with none; only where there are doses."""
    shares = {match[1]: effect for effect in found.effects if (match := DOSE.fullmatch(effect))}
    if not shares:
        return ()
    panels = []
    for one in found.configurations:
        nothing = Estimate(0.0, 0.0, 0.0, 0.0)
        points = {0.0: nothing, **{float(share): _average(one, effect, level) for share, effect in shares.items()}}
        points[1.0] = _average(one, "bias", level)
        panels.append((one.label, (_curve(AVERAGE, points),)))
    title = found.title(f"Dose and response: score above that of extra, {level:.0%} intervals")
    x = Axis("share of test texts among the unlabeled", "fraction")
    y = axis_of(found, "difference from extra", region)
    note = "At 100% it is the bias. A real peek should grow with the dose."
    return (Curves(title, x, y, tuple(panels), note),)


def sizes(found: Configurations, level: float, region: float) -> tuple[Curves, ...]:
    """The bias against the number of test texts; only where there are several.

    Tasks of one size each that are called NAME-n25, NAME-n50 and so on are drawn as a line NAME; others as an average.
    """
    names = [column.name for column in found.columns]
    if "num_test" not in names:
        return ()
    panels: dict[str, dict[str, dict[float, Estimate]]] = {}
    for one in found.configurations:
        if one.num_test is None:
            return ()
        cells = dict(zip(names, one.cells, strict=True))
        families = _families(one, level)
        model = str(cells.get("model") or "")
        panel = _heading(cells, with_model=families is not None)
        for label, estimate in (families or {model or AVERAGE: _average(one, "bias", level)}).items():
            panels.setdefault(panel, {}).setdefault(label, {})[one.num_test] = estimate
    curves = [
        (panel, tuple(_curve(label, points) for label, points in lines.items())) for panel, lines in panels.items()
    ]
    if max(len(curve.x) for _, lines in curves for curve in lines) < 2:
        return ()
    title = f"Bias by number of test texts, {level:.0%} intervals"
    x = Axis("test texts, and as many extra texts", "count", is_log=True)
    return (Curves(title, x, axis_of(found, "bias", region), tuple(curves)),)


def _families(one: Configuration, level: float) -> dict[str, Estimate] | None:
    """Tasks whose names end in their size, by what comes before; None where there is another."""
    ending = re.compile(rf"(.+?)[-_. ]?n{one.num_test}")
    tasks = one.scores["bias"]
    matches = {task: ending.fullmatch(task) for task in tasks}
    found = {match[1]: of_one_task(tasks[task], level) for task, match in matches.items() if match}
    return found if len(found) == len(tasks) else None


def has_families(found: Configurations) -> bool:
    """Whether each task has one size of its own, so that lines over sizes say more than what is at each size."""
    return len(found.configurations) > 1 and all(one.num_test and _families(one, 0.5) for one in found.configurations)


def _heading(cells: Mapping[str, Cell], *, with_model: bool) -> str:
    parts = [str(cells["model"])] if with_model and cells.get("model") else []
    if cells.get("num_train") is not None:
        parts.append(f"m={cells['num_train']}")
    return f"{cells['method']} ({', '.join(parts)})" if parts else str(cells["method"])


def _average(one: Configuration, effect: str, level: float) -> Estimate:
    return of_these_tasks(list(one.scores[effect].values()), level)


def _curve(label: str, points: Mapping[float, Estimate]) -> Curve:
    """Through estimates by x; those without an interval have one of no width."""
    ordered = sorted(points.items())
    return Curve(
        label,
        tuple(float(x) for x, _ in ordered),
        tuple(estimate.mean for _, estimate in ordered),
        tuple(_or(estimate.low, estimate.mean) for _, estimate in ordered),
        tuple(_or(estimate.high, estimate.mean) for _, estimate in ordered),
    )


def _or(value: float, otherwise: float) -> float:
    return otherwise if math.isnan(value) else value


def one_region(half_widths: Sequence[float | None]) -> float:
    """The region that all have, or 0: none is drawn where they differ."""
    return half_widths[0] or 0.0 if len(set(half_widths)) == 1 else 0.0
