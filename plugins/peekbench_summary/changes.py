"""The comparison of two runs: scores, boost, bias and verdict of the same methods in both, and the differences."""

from __future__ import annotations

import pandas as pd

from peekbench import Analysis, Column, Table
from peekbench.errors import SpecError
from peekbench.formatting import difference_unit, spread_unit
from peekbench.records import Cell
from peekbench.results import Configurations
from peekbench_summary import Summary
from peekbench_summary.choice import choose_configurations, resolve_options
from peekbench_summary.columns import interval_columns
from peekbench_summary.pairing import Change, compare
from peekbench_summary.verdict import judge_all

RUN = "run"
QUANTITIES = ("extra", "boost", "bias")
KEY_COLUMNS = (Column("method"), Column("model"), Column("num_train", "count"), Column("num_test", "count"))
NOTE = (
    "Means over the tasks that both runs have, in points; all tasks have equal weight. 'paired' is the number of "
    "subsamples that both runs have and that were compared pairwise; others are left out of the means. If it is 0, the "
    "runs were compared as independent sets of subsamples. The {level:.0%} interval of the change is for new "
    "subsamples of the same data."
)


def compare_runs(results: pd.DataFrame, *, options: Summary) -> Analysis:
    """Compare two runs, configuration by configuration.

    Parameters
    ----------
    results
        The results tables of both runs, one below the other, with the name of the run in a column `run`.
    options
        Level and region.

    Returns
    -------
    Analysis
        A table of verdicts and a table of means and their changes.

    Raises
    ------
    SpecError
        If there are not two runs, or if only one of them is scored by accuracy.
    """
    names = list(map(str, results[RUN].unique())) if RUN in results.columns else []
    if len(names) != 2:
        raise SpecError("`summary.changes` compares two runs; use `peekbench compare RUN_A RUN_B`")
    options = resolve_options(results, options)
    before, after = (choose_configurations(results[results[RUN] == name], options, "summary.changes") for name in names)
    if before.is_accuracy != after.is_accuracy:
        raise SpecError(f"only one of {names[0]} and {names[1]} is scored by accuracy; compare runs of one kind")
    keys = [configuration.key for run in (before, after) for configuration in run.configurations]
    varying = [part for part in range(len(KEY_COLUMNS)) if part == 0 or len({key[part] for key in keys}) > 1]
    verdicts = _verdict_table(before, after, varying, options)
    changes = _change_table(before, after, varying, options.level, f"Changes from {names[0]} to {names[1]}")
    return Analysis("changes", (verdicts, changes))


def _change_table(before: Configurations, after: Configurations, varying: list[int], level: float, title: str) -> Table:
    """Tabulate the changes; `varying` lists the parts of the key that differ between configurations."""
    pairs = [(old, new) for old in before.configurations for new in after.configurations if old.key == new.key]
    quantities = [
        quantity for quantity in QUANTITIES if all(quantity in (*run.arms, *run.effects) for run in (before, after))
    ]
    rows = tuple(
        (*(old.key[part] for part in varying), quantity, *_cells(change))
        for old, new in pairs
        for quantity in quantities
        if (change := compare(old, new, quantity, level)) is not None
    )
    columns = (
        *(KEY_COLUMNS[part] for part in varying),
        Column("quantity"),
        *(Column(name, spread_unit(before.is_accuracy)) for name in ("before", "after")),
        *interval_columns("change", difference_unit(before.is_accuracy)),
        Column("paired", "count"),
    )
    overview = tuple(column.name for column in columns if not column.name.endswith((", low", ", high")))
    return Table(title, columns, rows, NOTE.format(level=level), overview=overview)


def _cells(change: Change) -> tuple[Cell, ...]:
    return (change.before, change.after, change.difference.mean, *change.difference.limits, change.num_paired)


def _verdict_table(before: Configurations, after: Configurations, varying: list[int], options: Summary) -> Table:
    """Tabulate the verdicts of both runs."""
    decisions = [
        {
            configuration.key: verdict.decision
            for configuration, verdict in zip(run.configurations, judge_all(run, options, {}), strict=True)
        }
        for run in (before, after)
    ]
    rows = []
    for key in dict.fromkeys(configuration.key for run in (before, after) for configuration in run.configurations):
        old, new = (by_key.get(key) for by_key in decisions)
        rows.append((*(key[part] for part in varying), old or "-", new or "-", _describe_change(old, new)))
    columns = (
        *(KEY_COLUMNS[part] for part in varying),
        Column("before"),
        Column("after"),
        Column("changed"),
    )
    overview = tuple(column.name for column in columns)
    return Table("Verdicts before and after", columns, tuple(rows), overview=overview)


def _describe_change(old: str | None, new: str | None) -> str:
    if old is None or new is None:
        return "only before" if new is None else "only after"
    return "no" if old == new else "yes"
