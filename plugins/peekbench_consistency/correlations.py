"""Correlation of tasks over subsamples with the same number, which tasks with independent draws do not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from peekbench import Column, Estimate, Table
from peekbench.formatting import pluralize
from peekbench.records import Key
from peekbench.results import plain_cell
from peekbench_consistency.findings import CONFIGURATION, UNKNOWN, Finding, WideTable, as_mapping, format_p
from peekbench_stats import TaskCorrelation, correlate_tasks, holm

LEVEL = 0.95
NOTE = (
    "Mean correlation of pairs of tasks over subsamples with the same number, of test - extra. Intervals "
    f"have a coverage of {LEVEL:.0%} for normal differences. p: of no positive correlation, by an F test of ranks, "
    "not adjusted. Draws are {draws}"
)
SHARED = (
    "taken as shared, so that averages over tasks count each subsample once, whatever the correlation: zero shows "
    "independence only if the interval is short."
)
INDEPENDENT = "independent according to the table, so that averages over tasks count each trial."


def correlate(table: WideTable) -> dict[tuple[Key, ...], TaskCorrelation]:
    """Return the correlation of tasks by configuration, without those that have too little data."""
    correlations: dict[tuple[Key, ...], TaskCorrelation] = {}
    if not {"extra", "test"} <= set(table.arms):
        return correlations
    rows = table.rows.assign(bias=table.rows["test"] - table.rows["extra"]).dropna(subset="bias")
    rows = rows[rows["num_test"] != 1]  # subsamples are texts, which no tasks share
    for key, group in rows.groupby(list(CONFIGURATION), sort=False):
        tasks = [part for _, part in group.groupby("task", sort=False)]
        values, numbers = ([part[name].tolist() for part in tasks] for name in ("bias", "subsample"))
        found = correlate_tasks(values, numbers, LEVEL)
        if found is not None:
            correlations[tuple(map(plain_cell, key))] = found
    return correlations


def find_correlated_tasks(table: WideTable, level: float) -> Iterator[Finding]:
    """Yield a warning for each configuration whose tasks are called independent, but correlate (Holm's procedure)."""
    found = {key: correlation for key, correlation in correlate(table).items() if table.is_independent[key[0]]}
    adjusted = holm([correlation.p_value for correlation in found.values()]).tolist()
    for (key, correlation), p in zip(found.items(), adjusted, strict=True):
        if p <= level:
            yield Finding(
                "warning",
                "tasks with independent draws are correlated",
                table.locate(**as_mapping(key, CONFIGURATION)),
                f"mean correlation {correlation.mean:+.2f} [{correlation.low:+.2f}, {correlation.high:+.2f}] over "
                f"{pluralize(correlation.num_tasks, 'task')}, {format_p(p)}",
                "intervals of averages over tasks are too short: remove --independent-tasks, or 'yes' from the column "
                "independent_tasks, if the same seeds drew the rows of all tasks",
            )


def tabulate_correlations(table: WideTable) -> Sequence[Table]:
    """Return a table of the correlations; none if no configuration has enough data."""
    found = correlate(table)
    if not found:
        return ()
    varying = [name for name in CONFIGURATION if name == "method" or name in table.varying]
    columns = (
        *(Column(name, "count" if name.startswith("num") else "text") for name in varying),
        Column("tasks", "count"),
        Column("subsamples", "number"),
        Column("correlation", "number"),
        Column("p", "p_value"),
    )
    rows = []
    for key, correlation in found.items():
        cells = as_mapping(key, CONFIGURATION)
        estimate = (
            correlation.num_tasks,
            correlation.num_subsamples,
            Estimate(correlation.mean, correlation.low, correlation.high),
            correlation.p_value,
        )
        sizes = (None if cells[name] == UNKNOWN else cells[name] for name in varying)
        rows.append((*sizes, *estimate))
    draws = INDEPENDENT if all(table.is_independent[key[0]] for key in found) else SHARED
    return (Table("Correlation of tasks over subsamples", columns, tuple(rows), NOTE.format(draws=draws)),)
