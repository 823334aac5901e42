"""The results table to means, figures and verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from peekbench import (
    Analysis,
    Cell,
    Column,
    Configurations,
    Table,
    Unit,
    Verdict,
    configurations,
)
from peekbench_summary.baselines import compare, paired_t, sign_flips
from peekbench_summary.estimates import Estimate, of_one_task, of_such_tasks, of_these_tasks
from peekbench_summary.figures import doses, forests, has_families, one_region, progress, sizes, violins
from peekbench_summary.finer import finer_table
from peekbench_summary.region import Region, region_of
from peekbench_summary.verdict import judge

if TYPE_CHECKING:
    import pandas as pd

    from peekbench_summary import Summary

NOTE = (
    "boost = extra - base, bias = test - extra. 'These tasks': standard error and interval for further subsamples of "
    "the same data sets. 'Such tasks': for other tasks, of which these are taken as a sample (a paired t over tasks)."
)


def summarise(results: pd.DataFrame, *, options: Summary) -> Analysis:
    """Means, standard errors, intervals, and a verdict on each configuration's bias."""
    found = configurations(results)
    finer = finer_table(results, found, options.level)
    regions = [region_of(one.scores, options.region_unit, options.region, found.is_accuracy) for one in found.each]
    region = one_region([each.half_width for each in regions])
    verdicts = tuple(
        judge(
            one.label,
            list(one.scores["bias"].values()),
            level=options.level,
            region=region,
            is_accuracy=found.is_accuracy,
        )
        for one, region in zip(found.each, regions, strict=True)
    )
    return Analysis(
        "summary",
        tables=(
            _score_table(found),
            _effect_table(found, options.level),
            _side_by_side(found, regions, verdicts, options.level),
            _task_table(found, options.level),
            *([] if finer is None else [finer]),
        ),
        figures=(
            *forests(found, options.level, region),
            *sizes(found, options.level, region),
            *doses(found, options.level, region),
            *(() if has_families(found) else violins(found, region)),
            *(() if has_families(found) else progress(found, options.level, region)),
        ),
        verdicts=verdicts,
    )


def _score_table(found: Configurations) -> Table:
    unit: Unit = "fraction" if found.is_accuracy else "number"
    rows = []
    for one in found.each:
        tasks = one.scores["test"]
        means = (_mean_of_means(one.scores[arm]) for arm in found.arms)
        rows.append((*one.cells, len(tasks), sum(map(len, tasks.values())), *means))
    columns = (Column("tasks", "count"), Column("trials", "count"), *(Column(arm, unit) for arm in found.arms))
    title = found.title("Mean accuracy by arm" if found.is_accuracy else "Mean score by arm")
    return Table(title, (*found.columns, *columns), tuple(rows), "Every task counts alike.")


def _mean_of_means(tasks: Mapping[str, Sequence[float]]) -> float:
    return math.fsum(math.fsum(task) / len(task) for task in tasks.values()) / len(tasks)


def _difference(found: Configurations) -> Unit:
    return "difference" if found.is_accuracy else "number"


def _spread(found: Configurations) -> Unit:
    return "spread" if found.is_accuracy else "number"


def _effect_table(found: Configurations, level: float) -> Table:
    rows = []
    for one in found.each:
        for effect in found.effects:
            tasks = list(one.scores[effect].values())
            these, such = of_these_tasks(tasks, level), of_such_tasks(tasks, level)
            rows.append((*one.cells, effect, *_cells(these), *_cells(such)[1:]))
    columns = [Column("effect"), Column("mean", _difference(found))]
    for which in ("these tasks", "such tasks"):
        columns.append(Column(f"se, {which}", _spread(found)))
        columns += [Column(f"{name}, {which}", _difference(found)) for name in ("low", "high")]
    title = found.title(f"Boost and bias over tasks, {level:.0%} intervals")
    return Table(title, (*found.columns, *columns), tuple(rows), NOTE)


def _cells(estimate: Estimate) -> tuple[Cell, ...]:
    numbers = (estimate.mean, estimate.error, estimate.low, estimate.high)
    return tuple(None if math.isnan(number) else number for number in numbers)


def _side_by_side(found: Configurations, regions: Sequence[Region], verdicts: Sequence[Verdict], level: float) -> Table:
    """Each verdict with the tests over tasks, so that a disagreement is seen."""
    rows = []
    for one, region, verdict in zip(found.each, regions, verdicts, strict=True):
        means = [math.fsum(task) / len(task) for task in one.scores["bias"].values()]
        tests = (paired_t(means), sign_flips(means))
        least = (0.0, 2.0 ** (1 - len(means)))  # p that each test can come to
        differs = [
            p is not None and p <= 1 - level
            for p, reachable in zip(tests, least, strict=True)
            if reachable <= 1 - level
        ]
        agreement = compare(verdict, differs)
        rows.append((*one.cells, verdict.decision, verdict.estimate, region.half_width, *tests, agreement))
    columns = (
        Column("verdict"),
        Column("bias", _difference(found)),
        Column("region", _spread(found)),
        Column("p, paired t", "p_value"),
        Column("p, sign flips", "p_value"),
        Column("agreement"),
    )
    return Table(
        found.title("Verdicts and tests over tasks, side by side"),
        (*found.columns, *columns),
        tuple(rows),
        "The verdict speaks of these tasks. The two tests take the tasks for a sample and ask whether their mean "
        "biases average zero: a paired t, and exact sign flips of the task means, which are left out of the comparison "
        "where the tasks are too few for a p that small. Where verdict and tests disagree, the bias "
        "belongs to some tasks, or the tasks are too few to speak for others.",
    )


def _task_table(found: Configurations, level: float) -> Table:
    rows = []
    for one in found.each:
        for task, biases in one.scores["bias"].items():
            cells: list[Cell] = []
            for effect in found.effects:
                estimate = _cells(of_one_task(one.scores[effect][task], level))
                cells += estimate if effect == "bias" else estimate[:2]
            rows.append((task, *one.cells, len(biases), *cells))
    columns = [Column("task"), *found.columns, Column("subsamples", "count")]
    for effect in found.effects:
        columns += [Column(effect, _difference(found)), Column(f"se of {effect}", _spread(found))]
        if effect == "bias":
            columns += [Column(f"{name} of bias", _difference(found)) for name in ("low", "high")]
    title = found.title(f"Boost and bias by task, {level:.0%} intervals of the bias")
    return Table(title, tuple(columns), tuple(rows), "For further subsamples of the same data set.")
