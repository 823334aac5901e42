"""The results table to means, figures and verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
from peekbench_summary.leaderboard import judge_all, leaderboard

if TYPE_CHECKING:
    import pandas as pd

    from peekbench_summary import Summary

MOST_SIDE_BY_SIDE = 12  # configurations
THESE = (
    "boost = extra - base, bias = test - extra. Standard errors and intervals are for further subsamples of the same "
    "data sets; the verdicts rest on them."
)
SUCH_TASKS = "Such tasks: boost and bias over others like these"
SUCH = (
    "The same means, these tasks taken for a sample of such tasks: standard errors and intervals are for the mean over "
    "those (a paired t over tasks)."
)


def summarise(results: pd.DataFrame, *, options: Summary) -> Analysis:
    """Means, standard errors, intervals, and a verdict on each configuration's bias."""
    found = configurations(results)
    several = any(len(one.scores["bias"]) > 1 for one in found.each)
    finer = finer_table(results, found, options.level)
    verdicts = judge_all(found, options)
    region = one_region([verdict.region for verdict in verdicts])
    return Analysis(
        "summary",
        tables=(
            leaderboard(found, verdicts, options.level),
            _effect_table(found, options.level, "Boost and bias over these tasks", of_these_tasks, THESE),
            _side_by_side(found, verdicts, options.level),
            *([_effect_table(found, options.level, SUCH_TASKS, of_such_tasks, SUCH)] if several else []),
            _task_table(found, options.level),
            *_side_by_task(found),
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


def _difference(found: Configurations) -> Unit:
    return "difference" if found.is_accuracy else "number"


def _spread(found: Configurations) -> Unit:
    return "spread" if found.is_accuracy else "number"


def _effect_table(
    found: Configurations,
    level: float,
    title: str,
    estimate: Callable[[Sequence[Sequence[float]], float], Estimate],
    note: str,
) -> Table:
    rows = [
        (*one.cells, effect, *_cells(estimate(list(one.scores[effect].values()), level)))
        for one in found.each
        for effect in found.effects
    ]
    unit = _difference(found)
    columns = (
        Column("effect"),
        Column("mean", unit),
        Column("se", _spread(found)),
        Column("low", unit),
        Column("high", unit),
    )
    title = found.title(f"{title}, {level:.0%} intervals")
    return Table(title, (*found.columns, *columns), tuple(rows), note)


def _cells(estimate: Estimate) -> tuple[Cell, ...]:
    numbers = (estimate.mean, estimate.error, estimate.low, estimate.high)
    return tuple(None if math.isnan(number) else number for number in numbers)


def _side_by_side(found: Configurations, verdicts: Sequence[Verdict], level: float) -> Table:
    """Each verdict with the tests over tasks, so that a disagreement is seen."""
    rows = []
    too_few = set()
    for one, verdict in zip(found.each, verdicts, strict=True):
        means = [math.fsum(task) / len(task) for task in one.scores["bias"].values()]
        tests = (paired_t(means), sign_flips(means))
        least = (0.0, 2.0 ** (1 - len(means)))  # p that each test can come to
        differs = [
            p is not None and p <= 1 - level
            for p, reachable in zip(tests, least, strict=True)
            if reachable <= 1 - level
        ]
        if least[1] > 1 - level:
            too_few.add(len(means))
        agreement = compare(verdict, differs)
        rows.append((*one.cells, verdict.decision, verdict.estimate, verdict.region, *tests, agreement))
    columns = (
        Column("verdict"),
        Column("bias", _difference(found)),
        Column("region", _spread(found)),
        Column("p, paired t", "p_value"),
        Column("p, sign flips", "p_value"),
        Column("agreement"),
    )
    return Table(
        found.title("Verdicts on these tasks beside tests for such tasks"),
        (*found.columns, *columns),
        tuple(rows),
        "The verdict speaks of these tasks. The two tests take the tasks for a sample and ask whether such tasks have "
        "a bias on average: a paired t, and exact sign flips of the task means. Where verdict and tests disagree, the "
        "bias belongs to some tasks, or the tasks are too few to speak for others."
        + "".join(map(_least_p, sorted(too_few))),
    )


def _least_p(number: int) -> str:
    """Of sign flips of so many task means."""
    tasks = f"{number} tasks" if number > 1 else "one task"
    return (
        f" With {tasks} sign flips cannot give a p below {2.0 ** (1 - number):.3g}, and do not count as a disagreement."
    )


def _side_by_task(found: Configurations) -> list[Table]:
    """Tasks by configurations, where there are several and not too many."""
    if not 1 < len(found.each) <= MOST_SIDE_BY_SIDE:
        return []
    tasks = dict.fromkeys(task for one in found.each for task in one.scores["bias"])
    rows = []
    for task in tasks:
        biases = [one.scores["bias"].get(task, ()) for one in found.each]
        rows.append((task, *(math.fsum(bias) / len(bias) if bias else None for bias in biases)))
    columns = (Column("task"), *(Column(one.label, _difference(found)) for one in found.each))
    return [Table(found.title("Mean bias, tasks by methods"), columns, tuple(rows), "Test minus extra.")]


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
    return Table(
        title, tuple(columns), tuple(rows), "Each task by itself: for further subsamples of the same data set."
    )
