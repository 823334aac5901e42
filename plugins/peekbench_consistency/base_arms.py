"""Checks of base arms, which see no unlabeled texts: neither their number nor the method can change their scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
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
    join_locations,
    join_names,
)
from peekbench_stats import holm, welch_satterthwaite

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
    comparisons = [
        comparison
        for key, group in table.rows.groupby(list(GROUP), sort=False)
        for parts in combinations([part for part in group.groupby("num_test") if part[0] != UNKNOWN], 2)
        if (comparison := _compare_sizes(table, as_mapping(key, GROUP), parts)).tasks
    ]
    adjusted = adjust(comparisons)
    findings = []
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
                findings.append(_size_finding(table, comparison, p, size, level))
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
        "the base arm never sees the test texts: check these runs for other settings, data or code, and run them again",
    )


def adjust(comparisons: Sequence[Comparison]) -> list[FloatArray]:
    """Adjust the p-values of all comparisons together after Holm."""
    if not comparisons:
        return []
    adjusted = holm(np.concatenate([comparison.p for comparison in comparisons]))
    return np.split(adjusted, np.cumsum([len(comparison.p) for comparison in comparisons])[:-1])


MIN_EQUAL = 0.8  # share of equal base arms above which the arms that differ are the exception


def compare_methods(table: WideTable, shared: bool | None, level: float) -> list[Finding]:
    """Compare base scores of methods that should share their base arm.

    Paired t-test with Holm's adjustment over all tests; if nearly all trials are equal, the others are errors.

    Parameters
    ----------
    table
        The results.
    shared
        Whether all methods share their base arm; None: methods of the same model do.
    level
        Level of the adjusted tests.

    Returns
    -------
    list of Finding
        Errors for single trials, and warnings for methods.
    """
    findings, comparisons = [], []
    for values, (first, first_base), (second, second_base) in _method_pairs(table, shared):
        difference = (second_base - first_base).dropna()
        equal = float((difference == 0).mean()) if len(difference) else 1.0
        if MIN_EQUAL <= equal < 1:
            count = int((difference != 0).sum())
            tasks = list(dict.fromkeys(difference[difference != 0].index.get_level_values("task")))
            findings.append(
                Finding(
                    "error",
                    "a shared base arm differs in a few trials",
                    join_locations(f"{first} and {second}", table.locate(**values)),
                    f"equal in all except {count} of {pluralize(len(difference), 'trial')}; {join_names(tasks)}",
                    "these trials had other settings, or their rows are in the wrong place; run them again",
                )
            )
        elif equal < MIN_EQUAL:
            comparisons.append(_compare_pair(values, first, second, difference))
    for comparison, p in zip(comparisons, adjust(comparisons), strict=True):
        if p.min() <= level:
            tasks = [task for task, value in zip(comparison.tasks, p, strict=False) if value <= level]
            findings.append(
                Finding(
                    "warning",
                    "the base arm depends on the method",
                    join_locations(f"{comparison.first} and {comparison.second}", table.locate(**comparison.values)),
                    f"mean base scores differ by {table.format_difference(comparison.differences[-1])}, "
                    f"{format_p(float(p.min()))}" + (f"; individually {join_names(tasks)}" if tasks else ""),
                    "without unlabeled texts they should be the same model: compare their settings; if they are meant "
                    "to differ, set `shared_base: false`",
                )
            )
    return findings


def _method_pairs(
    table: WideTable, shared: bool | None
) -> Iterator[tuple[dict[str, Any], tuple[str, pd.Series[float]], tuple[str, pd.Series[float]]]]:
    """Yield the common columns, and name and base scores of two methods that should share their base arm."""
    if shared is False:
        return
    columns = ["num_train", "num_test"] if shared else ["model", "num_train", "num_test"]
    for key, group in table.rows.groupby(columns, sort=False):
        values = as_mapping(key, columns)
        if shared is None and values["model"] == "":
            continue
        base_scores = {
            str(method) if shared is None else f"{method} {model}".strip(): rows.set_index(["task", "subsample"])[
                "base"
            ]
            for (method, model), rows in group.groupby(["method", "model"], sort=False)
        }
        for first, second in combinations(base_scores.items(), 2):
            yield values, first, second


def _compare_pair(values: dict[str, Any], first: str, second: str, difference: pd.Series[float]) -> Comparison:
    """Compare by a paired t-test over subsamples, by task and on average.

    A mean difference of d requires that at least a share d of the texts changes, which bounds the variance from below.
    """
    moments = difference.groupby(level="task", sort=False).agg(["mean", "var", "count"])
    moments = moments[moments["count"] > 1]
    mean, variance, count = (moments[name].to_numpy(dtype="float64") for name in ("mean", "var", "count"))
    min_variance = np.abs(mean) * (1 - np.abs(mean)) / max(1, values["num_test"])
    errors = np.maximum(variance, min_variance) / count
    if not len(mean):
        return Comparison(values, first, second, (), np.zeros(1), np.ones(1))
    squared = np.append(errors, errors.sum() / len(mean) ** 2)
    degrees = np.append(count - 1, welch_satterthwaite(errors, count - 1))
    differences = np.append(mean, mean.mean())
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * t.sf(np.abs(differences) / np.sqrt(squared), degrees)
    tasks = tuple(map(str, moments.index))
    return Comparison(values, first, second, tasks, differences, np.where(squared > 0, p, 1.0))
