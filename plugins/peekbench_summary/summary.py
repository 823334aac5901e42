"""The results table to means, figures and verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from peekbench import Analysis, Column, Table, Verdict
from peekbench.figures import Figure
from peekbench.records import Cell, Unit
from peekbench.results import Configurations, configurations
from peekbench_summary.controls import controls_table, unlike_what_is_known
from peekbench_summary.estimates import Estimate, of_one_task, of_other_tasks, of_these_tasks
from peekbench_summary.figures import doses, forests, has_families, one_region, progress, sizes, violins
from peekbench_summary.leaderboard import judge_all, leaderboard
from peekbench_summary.probabilistic_scores import finer_scores, finer_tables
from peekbench_summary.significance_tests import compare, paired_t, sign_flips

if TYPE_CHECKING:
    import pandas as pd

    from peekbench_summary import Summary

MOST_SIDE_BY_SIDE = 12  # configurations
THESE = (
    "boost = extra - base, bias = test - extra. Beside the mean, its interval for further subsamples of the same data "
    "sets, on which the verdicts rest; se is its standard error."
)
OTHERS = (
    " Other tasks: the interval of the same mean where these tasks are taken for a sample of tasks like them (a paired "
    "t over tasks)."
)


def summarize(results: pd.DataFrame, *, options: Summary) -> Analysis:
    """Means, standard errors, intervals, and a verdict on each configuration's bias."""
    everything = configurations(results)
    found, controls = everything.without_controls(), everything.controls()
    finer = finer_scores(results, found)
    verdicts = judge_all(everything, options, finer)
    judged = [verdict for verdict in verdicts if not verdict.control]
    known = [verdict for verdict in verdicts if verdict.control]
    level = options.level
    return Analysis(
        "summary",
        tables=(
            *_tables(found, judged, level),
            _task_table(everything, level),
            *finer_tables(finer, level),
            *([controls_table(controls, known, level)] if known else []),
        ),
        figures=(*_figures(found, judged, level), *_control_figures(controls, known, level)),
        verdicts=verdicts,
        warnings=tuple(unlike_what_is_known(known)),
    )


def _figures(found: Configurations, verdicts: Sequence[Verdict], level: float) -> list[Figure]:
    """On methods of which nothing is known beforehand; none where there is none."""
    if not found.configurations:
        return []
    region = one_region([verdict.region for verdict in verdicts])
    figures: list[Figure] = [*forests(found, level, region), *sizes(found, level, region), *doses(found, level, region)]
    if not has_families(found):
        figures += [*violins(found), *progress(found, level, region)]
    return figures


def _control_figures(controls: Configurations, verdicts: Sequence[Verdict], level: float) -> list[Figure]:
    """What must be seen of them: biases by task, and how they grow with the dose."""
    if not controls.configurations:
        return []
    region = one_region([verdict.region for verdict in verdicts])
    return [*forests(controls, level, region), *doses(controls, level, region)]


def _tables(found: Configurations, verdicts: Sequence[Verdict], level: float) -> list[Table]:
    """On the same."""
    if not found.configurations:
        return []
    return [
        leaderboard(found, verdicts, level),
        _average_table(found, level),
        *(
            [_beyond_table(found, verdicts, level)]
            if max(len(one.scores["bias"]) for one in found.configurations) > 1
            else []
        ),
        *_side_by_task(found),
    ]


def _difference(found: Configurations) -> Unit:
    return "difference" if found.is_accuracy else "change"


def _spread(found: Configurations) -> Unit:
    return "spread" if found.is_accuracy else "number"


def _average_table(found: Configurations, level: float) -> Table:
    """Boost, bias and doses on average; intervals for further subsamples and, of several tasks, for others."""
    several = any(len(one.scores["bias"]) > 1 for one in found.configurations)
    rows = []
    for one in found.configurations:
        for effect in found.effects:
            tasks = list(one.scores[effect].values())
            these, others = of_these_tasks(tasks, level), of_other_tasks(tasks, level)
            rows.append((*one.cells, effect, these.mean, *_ends(these), _error(these), *(_ends(others) * several)))
    unit = _difference(found)
    columns = [
        Column("effect"), Column("mean", unit), Column("mean, low", unit), Column("mean, high", unit),
        Column("se", _spread(found)),
    ]  # fmt: skip
    columns += [Column(f"other tasks, {end}", unit) for end in ("low", "high")] * several
    title = found.title(f"Boost and bias over these tasks, {level:.0%} intervals")
    return Table(title, (*found.columns, *columns), tuple(rows), THESE + OTHERS * several)


def _ends(estimate: Estimate) -> tuple[Cell, ...]:
    return (estimate.low, estimate.high) if estimate.has_interval else (None, None)


def _error(estimate: Estimate) -> Cell:
    return None if math.isnan(estimate.error) else estimate.error


def _beyond_table(found: Configurations, verdicts: Sequence[Verdict], level: float) -> Table:
    """Each verdict with the tests over tasks, so that a disagreement is seen."""
    rows = []
    too_few = set()
    for one, verdict in zip(found.configurations, verdicts, strict=True):
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
        answer = compare(verdict, differs)
        rows.append((*one.cells, verdict.decision, verdict.estimate, verdict.region, *tests, answer))
    columns = (
        Column("on these tasks"),
        Column("bias", _difference(found)),
        Column("region", _spread(found)),
        Column("p, paired t", "p_value"),
        Column("p, sign flips", "p_value"),
        Column("a bias in others too?"),
    )
    return Table(
        found.title("Would other tasks like these show a bias too?"),
        (*found.columns, *columns),
        tuple(rows),
        "The verdict speaks of these tasks. The two tests take them for a sample and ask whether tasks like them have "
        "a bias on average: a paired t, and exact sign flips of the task means. Where they see none, the bias belongs "
        "to some of these tasks, or these are too few to speak for others. Region: biases up to it do not matter."
        + "".join(map(_least_p, sorted(too_few))),
    )


def _least_p(number: int) -> str:
    """Of sign flips of so many task means."""
    tasks = f"{number} tasks" if number > 1 else "one task"
    return (
        f" Sign flips of {tasks} cannot give a p below {2.0 ** (1 - number):.3f}, so the answer is that of the t test."
    )


def _side_by_task(found: Configurations) -> list[Table]:
    """Tasks by configurations, where there are several and not too many."""
    if not 1 < len(found.configurations) <= MOST_SIDE_BY_SIDE:
        return []
    tasks = dict.fromkeys(task for one in found.configurations for task in one.scores["bias"])
    rows = []
    for task in tasks:
        biases = [one.scores["bias"].get(task, ()) for one in found.configurations]
        rows.append((task, *(math.fsum(bias) / len(bias) if bias else None for bias in biases)))
    columns = (Column("task"), *(Column(one.label, _difference(found)) for one in found.configurations))
    return [Table(found.title("Mean bias, tasks by methods"), columns, tuple(rows), "Test minus extra.")]


def _task_table(found: Configurations, level: float) -> Table:
    rows = []
    for one in found.configurations:
        for task, biases in one.scores["bias"].items():
            scores = [math.fsum(one.scores[arm][task]) / len(biases) for arm in found.arms]
            estimates = [of_one_task(one.scores[effect][task], level) for effect in found.effects]
            means = [cell for estimate in estimates for cell in (estimate.mean, *_ends(estimate))]
            error = _error(estimates[found.effects.index("bias")])
            rows.append((task, *one.cells, len(biases), *scores, *means, error))
    score: Unit = "fraction" if found.is_accuracy else "number"
    columns = [Column("task"), *found.columns, Column("subsamples", "count")]
    columns += [Column(arm, score) for arm in found.arms]
    for effect in found.effects:
        columns += [Column(name, _difference(found)) for name in (effect, f"{effect}, low", f"{effect}, high")]
    columns.append(Column("se of bias", _spread(found)))
    title = found.title(f"Scores, boost and bias by task, {level:.0%} intervals")
    note = "Each task by itself: for further subsamples of the same data set."
    return Table(title, tuple(columns), tuple(rows), note)
