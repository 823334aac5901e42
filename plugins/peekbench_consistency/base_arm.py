"""Checks of the base arm by size: it sees no unlabeled texts, so their number cannot change its scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t

from peekbench import Column, Table
from peekbench.formatting import pluralize
from peekbench.records import Cell, FloatArray, Unit
from peekbench_consistency.findings import (
    UNKNOWN,
    Finding,
    WideTable,
    as_mapping,
    format_p,
    join_names,
)
from peekbench_stats import holm, welch_satterthwaite

SWAP_RATIO = 0.25  # swapped arms explain the means if they leave less than this share of the differences
GROUP = ("method", "model", "num_train")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Mean base scores of one pair of sizes, or of methods, by task and on average."""

    values: dict[str, Any]
    """Columns that both have in common."""
    first: Any
    """The first size or method."""
    second: Any
    """The second size or method."""
    tasks: tuple[str, ...]
    differences: FloatArray
    """Second minus first by task, then the average over tasks: (n_tasks + 1,)."""
    p: FloatArray
    """Two-sided p-values in the same order."""


def compare_sizes(table: WideTable, level: float) -> tuple[list[Finding], list[Table]]:
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
    findings
        One error per size that differs.
    tables
        Mean base scores by size; empty if no method has several sizes.
    """
    comparisons = [
        comparison
        for key, group in table.rows.groupby(list(GROUP), sort=False)
        for parts in combinations([part for part in group.groupby("num_test") if part[0] != UNKNOWN], 2)
        if (comparison := _compare_sizes(table, as_mapping(key, GROUP), parts)).tasks
    ]
    adjusted = adjust(comparisons)
    findings = []
    p_values: dict[tuple[Any, ...], float] = {}
    for key in dict.fromkeys(tuple(comparison.values.values()) for comparison in comparisons):
        pairs = [
            (comparison, p)
            for comparison, p in zip(comparisons, adjusted, strict=True)
            if tuple(comparison.values.values()) == key
        ]
        reference = _reference_size(pairs, table, as_mapping(key, GROUP), level)
        for comparison, p in pairs:
            if reference in (comparison.first, comparison.second) and p.min() <= level:
                size = comparison.second if comparison.first == reference else comparison.first
                p_values[(*key, size)] = float(p.min())
                findings.append(_size_finding(table, comparison, p, size, level))
    base_table = _base_table(table, p_values)
    return findings, [base_table] if base_table.rows else []


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


def _select(table: WideTable, values: dict[str, Any]) -> pd.DataFrame:
    rows = table.rows
    for name, value in values.items():
        rows = rows[rows[name] == value]
    return rows


def _reference_size(
    pairs: Sequence[tuple[Comparison, FloatArray]], table: WideTable, values: dict[str, Any], level: float
) -> Any:
    """Return the size that differs from the fewest others; of several, the one with the most subsamples."""
    subsamples = _select(table, values).groupby("num_test").size()
    differing = dict.fromkeys([size for comparison, _ in pairs for size in (comparison.first, comparison.second)], 0)
    for comparison, p in pairs:
        for size in (comparison.first, comparison.second):
            differing[size] += int(p.min() <= level)
    return min(differing, key=lambda size: (differing[size], -subsamples[size]))


def _size_finding(table: WideTable, comparison: Comparison, p: FloatArray, size: int, level: float) -> Finding:
    sign, reference = (1, comparison.first) if size == comparison.second else (-1, comparison.second)
    differing = sorted(
        (position for position in range(len(comparison.tasks)) if p[position] <= level),
        key=lambda position: -abs(comparison.differences[position]),
    )
    names = [
        f"{comparison.tasks[position]} {table.format_difference(sign * comparison.differences[position])}"
        for position in differing
    ]
    tasks = (
        f"; {len(names)} of {pluralize(len(comparison.tasks), 'task')} differ individually: {join_names(names)}"
        if names
        else ""
    )
    return Finding(
        "error",
        "the base arm depends on num_test",
        table.locate(**comparison.values, num_test=size),
        f"mean base score {table.format_difference(sign * comparison.differences[-1])} compared with "
        f"num_test={reference}, {format_p(float(p.min()))}{tasks}",
        "the base arm never sees the test texts: check these runs for other settings, data or code, and run them again"
        + _swapped(table, comparison.values, (size, reference), [comparison.tasks[number] for number in differing]),
    )


def _swapped(table: WideTable, values: dict[str, Any], sizes: tuple[int, int], tasks: Sequence[str]) -> str:
    """Name tasks whose base and extra scores at one size each look like the other arm's at the reference size."""
    means = _select(table, values).groupby(["task", "num_test"])[["base", "extra"]].mean()
    swapped = []
    for task in tasks:
        (base, extra), (reference_base, reference_extra) = (means.loc[[(task, n)]].to_numpy()[0] for n in sizes)
        straight = (base - reference_base, extra - reference_extra)
        crossed = (base - reference_extra, extra - reference_base)
        if max(map(abs, crossed)) < SWAP_RATIO * min(map(abs, straight)):
            swapped.append(task)
    return f"; base and extra look swapped in {join_names(swapped)}" if swapped else ""


def _base_table(table: WideTable, p_values: dict[tuple[Any, ...], float]) -> Table:
    """Return mean base scores by configuration, for methods with several sizes."""
    body: list[tuple[Cell, ...]] = []
    for key, group in table.rows.groupby(list(GROUP), sort=False):
        sizes = group[group["num_test"] != UNKNOWN].groupby("num_test")
        if len(sizes) < 2:
            continue
        for _, rows in sizes:
            by_task = rows.groupby("task")["base"].mean()
            location = table.locate(**as_mapping(key, GROUP))
            num_test = int(rows["num_test"].iloc[0])
            body.append((location, num_test, len(rows), float(by_task.mean()), p_values.get((*key, num_test))))
    unit: Unit = "fraction" if table.is_accuracy else "number"
    return Table(
        "Base arm by number of unlabeled texts, which it does not see",
        (Column("location"), Column("num_test", "count"), Column("trials", "count"), Column("base", unit),
         Column("p", "p_value")),
        tuple(body),
        "p: test of a difference from the size that agrees with most others, after Holm; the smallest p-value of the "
        "average over tasks and of single tasks.",
    )  # fmt: skip


def adjust(comparisons: Sequence[Comparison]) -> list[FloatArray]:
    """Adjust the p-values of all comparisons together after Holm."""
    if not comparisons:
        return []
    adjusted = holm(np.concatenate([comparison.p for comparison in comparisons]))
    return np.split(adjusted, np.cumsum([len(comparison.p) for comparison in comparisons])[:-1])
