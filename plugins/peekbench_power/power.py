"""From a results table, or a pilot's store: components, minimum detectable bias, planned designs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from peekbench import Analysis, Column, Table
from peekbench.records import Cell, Unit
from peekbench_power.designs import Plan, cheapest, detectable, enough
from peekbench_power.detection import Wanted, minimum_detectable, power
from peekbench_power.figures import detectable_curves, power_curves
from peekbench_power.measure import biases, measured, plain
from peekbench_power.noise import Measured, Noise

if TYPE_CHECKING:
    import pandas as pd

    from peekbench_power import Power

Found = tuple[str, int, list[Measured], Noise]


def assess(results: pd.DataFrame, *, options: Power) -> Analysis:
    """Variance components of the bias, what this design and planned ones detect, and at what cost."""
    is_accuracy = bool(results["num_correct"].notna().all())
    found = list(measured(biases(results), is_accuracy))
    if not found:
        return Analysis("power", warnings=("power: no task has two subsamples, so its noise is unknown; draw more.",))
    shown = _Shown(is_accuracy)
    return Analysis(
        "power",
        tables=(
            _component_table(found, shown),
            _detection_table(found, options, shown),
            _curve_table(found, options, shown),
            _cost_table(found, options, shown),
        ),
        figures=(
            power_curves(found, options, is_accuracy),
            *detectable_curves(_planned(found, options), options, is_accuracy),
        ),
    )


class _Shown:
    """How biases are written: those of accuracies in points."""

    def __init__(self, is_accuracy: bool) -> None:
        self.unit: Unit = "spread" if is_accuracy else "number"
        self._is_accuracy = is_accuracy

    def size(self, bias: float) -> str:
        return f"{bias * 100:g} points" if self._is_accuracy else f"{bias:g}"


def _component_table(found: Sequence[Found], shown: _Shown) -> Table:
    rows = []
    for label, num_train, sizes, noise in found:
        for one in sizes:
            sampled = noise.sampling / one.num_test if one.num_test else None
            trained = None if sampled is None else math.sqrt(noise.training)
            independent = math.sqrt(one.binomial / one.num_test) if one.num_test and one.binomial else None
            rows.append((
                label, plain(num_train), one.num_test, one.num_tasks, one.subsamples, math.sqrt(max(0, one.between)),
                math.sqrt(one.within), trained, None if sampled is None else math.sqrt(sampled), independent,
            ))  # fmt: skip
    sizes_of_design = (Column("tasks", "count"), Column("subsamples", "number"))
    names = ("sd between tasks", "sd within tasks", "of it training", "of it test texts", "if arms were independent")
    return Table(
        "Where the bias varies",
        (*_head(), *sizes_of_design, *(Column(name, shown.unit) for name in names)),
        tuple(rows),
        "Standard deviations of test - extra. Training: what more test texts would not lower. Test texts: that n of "
        "them are a sample; fitted over the test sizes, or where there is one, 0.15 of what independent arms would "
        "have, as in the accuracies published with arXiv 2410.00179. If arms were independent: sqrt(2 p (1 - p) / n).",
    )  # fmt: skip


def _detection_table(found: Sequence[Found], options: Power, shown: _Shown) -> Table:
    wanted = Wanted(options.power, options.size)
    rows: list[tuple[Cell, ...]] = []
    for label, num_train, sizes, _ in found:
        for one in sizes:
            error, such = math.sqrt(one.squared_error), math.sqrt(one.squared_error_such)
            rows.append((
                label, plain(num_train), one.num_test, one.num_tasks, one.subsamples,
                minimum_detectable(error, one.degrees, wanted), minimum_detectable(such, one.num_tasks - 1, wanted),
                *(power(bias, error, one.degrees, options.size) for bias in options.biases),
            ))  # fmt: skip
    return Table(
        f"Minimum detectable bias of this design, {options.power:.0%} power, {options.size:.0%} two-sided",
        (
            *_head(),
            Column("tasks", "count"),
            Column("subsamples", "number"),
            Column("these tasks", shown.unit),
            Column("other tasks", shown.unit),
            *(Column(f"power at {shown.size(bias)}", "fraction") for bias in options.biases),
        ),
        tuple(rows),
        "Of t tests of the mean bias over these tasks, and over other tasks like these; the power is of the first.",
    )


def _curve_table(found: Sequence[Found], options: Power, shown: _Shown) -> Table:
    wanted = Wanted(options.power, options.size)
    rows: list[tuple[Cell, ...]] = []
    for label, num_train, sizes, noise in _planned(found, options):
        for num_test in options.num_test or [one.num_test for one in sizes]:
            for tasks in options.tasks or [max(one.num_tasks for one in sizes)]:
                curve = (detectable(noise, tasks, number, num_test, wanted) for number in options.subsamples)
                rows.append((label, plain(num_train), num_test, tasks, *curve))
    columns = (Column("tasks", "count"), *(Column(f"{number:,}", shown.unit) for number in options.subsamples))
    return Table(
        "Minimum detectable bias by number of subsamples",
        (*_head(), *columns),
        tuple(rows),
        "Planned designs, with the components above: for the mean over so many tasks, as noisy as these."
        + _nearest_note(found, options),
    )


def _cost_table(found: Sequence[Found], options: Power, shown: _Shown) -> Table:
    wanted = Wanted(options.power, options.size)
    rows: list[tuple[Cell, ...]] = []
    for label, num_train, sizes, noise in _planned(found, options):
        for tasks in options.tasks or [max(one.num_tasks for one in sizes)]:
            plans: list[Plan] = []
            for num_test in options.num_test or [one.num_test for one in sizes]:
                plan = enough(noise, tasks, num_test, options.wanted, wanted)
                plans += [plan] if plan is not None else []
            best = cheapest(plans)
            for plan in plans:
                mark = "least" if plan is best and len(plans) > 1 else ""
                cells = (plan.num_test, tasks, plan.subsamples, plan.trials, plan.seconds, mark)
                rows.append((label, plain(num_train), *cells))
    columns = (Column("tasks", "count"), Column("subsamples", "count"), Column("trials", "count"),
               Column("time", "seconds"), Column("cost"))  # fmt: skip
    return Table(
        f"What it takes to detect {shown.size(options.wanted)}",
        (*_head(), *columns),
        tuple(rows),
        "Fewest subsamples of each task. Time: of all trials one after the other, from the times in the table, of "
        "which a part grows with n; without times, the fewest trials cost least." + _nearest_note(found, options),
    )


def _planned(found: Sequence[Found], options: Power) -> list[Found]:
    """What was measured, or for each `num_train` wanted what was measured nearest to it."""
    if not options.num_train:
        return list(found)
    planned = []
    for label in dict.fromkeys(label for label, *_ in found):
        of_label = [one for one in found if one[0] == label]
        for num_train in options.num_train:
            _, _, sizes, noise = min(of_label, key=lambda one: abs(math.log(max(1, one[1]) / num_train)))
            planned.append((label, num_train, sizes, noise))
    return planned


def _nearest_note(found: Sequence[Found], options: Power) -> str:
    unmeasured = sorted(set(options.num_train) - {num_train for _, num_train, *_ in found})
    if not unmeasured:
        return ""
    return f" num_train {', '.join(map(str, unmeasured))} was not measured: noise and times are those of the nearest."


def _head() -> tuple[Column, ...]:
    return (Column("method"), Column("num_train", "count"), Column("num_test", "count"))
