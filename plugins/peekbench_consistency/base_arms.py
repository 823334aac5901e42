"""Checks of base arms, which see no unlabeled texts: their number cannot change their scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t

from peekbench.formatting import pluralize
from peekbench.records import FloatArray
from peekbench_consistency.findings import (
    UNKNOWN,
    Finding,
    WideTable,
    as_mapping,
    format_p,
    join_names,
)
from peekbench_stats import holm, welch_satterthwaite

GROUP = ("method", "model", "num_train")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Mean base scores of one pair of sizes, by task and on average."""

    values: dict[str, Any]
    """Columns that both have in common."""
    first: Any
    """The first size."""
    second: Any
    """The second size."""
    tasks: tuple[str, ...]
    differences: FloatArray
    """Second minus first by task, then the average over tasks: (n_tasks + 1,)."""
    p: FloatArray
    """Two-sided p-values in the same order."""


def compare_sizes(table: WideTable, level: float) -> list[Finding]:
    """Compare base scores between values of `num_test`.

    Welch's t-test by task and on average over tasks, with Holm's adjustment over all tests. The test treats draws of
    different sizes as independent; if they share texts it is conservative.

    Parameters
    ----------
    table
        The results.
    level
        Level of the adjusted tests.

    Returns
    -------
    list of Finding
        One error per size that differs.
    """
    findings: list[Finding] = []
    if "base" not in table.arms:
        return findings
    groups = [
        [
            comparison
            for parts in combinations([part for part in group.groupby("num_test") if part[0] != UNKNOWN], 2)
            if (comparison := _compare_sizes(table, as_mapping(key, GROUP), parts)).tasks
        ]
        for key, group in table.rows.groupby(list(GROUP), sort=False)
    ]
    if not any(groups):
        return findings
    adjusted = iter(holm(np.concatenate([comparison.p for group in groups for comparison in group])).tolist())
    for group in groups:
        pairs = [(comparison, np.array(list(islice(adjusted, len(comparison.p))))) for comparison in group]
        if not pairs:
            continue
        reference = _reference_size(pairs, table, level)
        for comparison, p in pairs:
            if reference in (comparison.first, comparison.second) and p.min() <= level:
                findings.append(_size_finding(table, comparison, p, reference, level))
    return findings


def _compare_sizes(table: WideTable, values: dict[str, Any], parts: Sequence[tuple[Any, pd.DataFrame]]) -> Comparison:
    (first, first_rows), (second, second_rows) = parts
    moments = [_moments(rows, table.num_scored.loc[rows.index, "base"].min()) for rows in (first_rows, second_rows)]
    tasks = [task for task in moments[0] if task in moments[1]]
    if not tasks:
        return Comparison(values, first, second, (), np.empty(0), np.empty(0))
    # Each (n_tasks, 3): mean, squared standard error, degrees of freedom.
    a, b = (np.array([by_task[task] for task in tasks]) for by_task in moments)
    differences = np.append(b[:, 0] - a[:, 0], (b[:, 0] - a[:, 0]).mean())
    squared_errors = np.column_stack([a[:, 1], b[:, 1]])
    degrees = np.column_stack([a[:, 2], b[:, 2]])
    variance = np.append(squared_errors.sum(axis=1), squared_errors.sum() / len(tasks) ** 2)
    # The average divides by powers of the number of tasks, which rounds differently from all estimates together.
    average_terms = (squared_errors**2 / degrees).sum() / len(tasks) ** 4
    with np.errstate(divide="ignore", invalid="ignore"):
        all_degrees = np.append(welch_satterthwaite(squared_errors, degrees), variance[-1] ** 2 / average_terms)
        p = 2 * t.sf(np.abs(differences) / np.sqrt(variance), all_degrees)
    return Comparison(values, first, second, tuple(tasks), differences, np.where(variance > 0, p, 1.0))


def _moments(rows: pd.DataFrame, num_scored: float) -> dict[str, tuple[float, float, int]]:
    """Return mean, squared standard error and degrees of freedom of each task with at least two subsamples.

    Each subsample draws other texts, so the variance is at least that of drawing them.
    """
    base = rows.groupby("task", sort=False)["base"].agg(["mean", "var", "count"])
    return {
        str(task): (mean, max(variance, mean * (1 - mean) / num_scored) / count, count - 1)
        for task, mean, variance, count in base.itertuples()
        if count > 1
    }


def _reference_size(pairs: Sequence[tuple[Comparison, FloatArray]], table: WideTable, level: float) -> int:
    """Return the size that differs from the fewest others; of several, the one with the most subsamples."""
    rows = table.rows
    for name, value in pairs[0][0].values.items():
        rows = rows[rows[name] == value]
    subsamples = rows.groupby("num_test").size()
    differing: Counter[int] = Counter()
    for comparison, p in pairs:
        for size in (comparison.first, comparison.second):
            differing[size] += int(p.min() <= level)
    return min(differing, key=lambda size: (differing[size], -subsamples[size]))


def _size_finding(table: WideTable, comparison: Comparison, p: FloatArray, reference: int, level: float) -> Finding:
    sign, size = 1, comparison.second
    if size == reference:
        sign, size = -1, comparison.first
    differing = sorted(
        (position for position in range(len(comparison.tasks)) if p[position] <= level),
        key=lambda position: -abs(comparison.differences[position]),
    )
    names = [
        f"{comparison.tasks[position]} {table.format_difference(sign * comparison.differences[position])}"
        for position in differing
    ]
    tasks = ""
    if names:
        noun = pluralize(len(comparison.tasks), "task")
        tasks = f"; {len(names)} of {noun} differ individually: {join_names(names)}"
    return Finding(
        "error",
        "the base arm depends on num_test",
        table.locate(**comparison.values, num_test=size),
        f"mean base score {table.format_difference(sign * comparison.differences[-1])} compared with "
        f"num_test={reference}, {format_p(float(p.min()))}{tasks}",
        "the base arm never sees the test texts: check these runs for other settings, data or code, and run them again",
    )
