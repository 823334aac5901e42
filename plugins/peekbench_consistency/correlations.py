"""Correlation of tasks over subsamples with the same number, which tasks with independent draws do not have."""

from __future__ import annotations

from collections.abc import Iterator

from peekbench.formatting import pluralize
from peekbench.records import Key
from peekbench.results import plain_cell
from peekbench_consistency.findings import CONFIGURATION, Finding, WideTable, as_mapping, format_p
from peekbench_stats import TaskCorrelation, correlate_tasks, holm


def find_correlated_tasks(table: WideTable, level: float) -> Iterator[Finding]:
    """Yield a warning for each configuration whose tasks are called independent, but correlate (Holm's procedure)."""
    found = _correlate(table)
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


def _correlate(table: WideTable) -> dict[tuple[Key, ...], TaskCorrelation]:
    """Return the correlation of tasks that are called independent, by configuration with enough data."""
    correlations: dict[tuple[Key, ...], TaskCorrelation] = {}
    if not {"extra", "test"} <= set(table.arms):
        return correlations
    rows = table.rows.assign(bias=table.rows["test"] - table.rows["extra"]).dropna(subset="bias")
    rows = rows[rows["num_test"] != 1]  # subsamples are texts, which no tasks share
    for key, group in rows.groupby(list(CONFIGURATION), sort=False):
        if not table.is_independent[str(key[0])]:
            continue
        tasks = [part for _, part in group.groupby("task", sort=False)]
        values, numbers = ([part[name].tolist() for part in tasks] for name in ("bias", "subsample"))
        found = correlate_tasks(values, numbers)
        if found is not None:
            correlations[tuple(map(plain_cell, key))] = found
    return correlations
