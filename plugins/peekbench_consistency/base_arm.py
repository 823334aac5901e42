"""The base arm sees no unlabeled texts, so neither their number nor the method that would use them can change it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from peekbench import Column, Table
from peekbench.formatting import pluralize
from peekbench.records import Cell, Unit
from peekbench_consistency.findings import UNKNOWN, Finding, Rows, holm, joined, listed, shown_p

if TYPE_CHECKING:
    import pandas as pd

    from peekbench.records import FloatArray

MOSTLY = 0.8  # share of equal base arms from which those that differ are the odd ones


@dataclass(frozen=True, slots=True)
class Comparison:
    """Mean base scores of one pair of sizes, or of methods, task by task and on average."""

    place: dict[str, Any]
    first: Any
    second: Any
    """The size, or the method, of each."""
    tasks: tuple[str, ...]
    differences: FloatArray
    """Of second minus first; by task, then the average over tasks."""
    p: FloatArray
    """Two-sided, in the same order."""


def by_size(rows: Rows, level: float) -> tuple[list[Finding], list[Table]]:
    """Base scores at different `num_test`: Welch's t, task by task and on average over tasks, Holm over all.

    Draws of different sizes are taken for independent. Where they share texts the test is the less likely to alarm.
    """
    comparisons = [
        _compare_sizes(cells, parts)
        for key, group in rows.wide.groupby(["method", "model", "num_train"], sort=False)
        for cells in [dict(zip(("method", "model", "num_train"), key, strict=True))]
        for parts in combinations([part for part in group.groupby("num_test") if part[0] != UNKNOWN], 2)
    ]
    comparisons = [comparison for comparison in comparisons if comparison.tasks]
    adjusted = _adjust(comparisons)
    findings = []
    odd: dict[tuple[Any, ...], float] = {}
    for place in {tuple(comparison.place.items()): None for comparison in comparisons}:
        pairs = [
            (comparison, p)
            for comparison, p in zip(comparisons, adjusted, strict=True)
            if tuple(comparison.place.items()) == place
        ]
        reference = _reference(pairs, rows, dict(place), level)
        for comparison, p in pairs:
            if reference in (comparison.first, comparison.second) and p.min() <= level:
                size = comparison.second if comparison.first == reference else comparison.first
                odd[(*dict(place).values(), size)] = float(p.min())
                findings.append(_size_finding(rows, comparison, p, size, reference, level))
    table = _table(rows, odd)
    return findings, [table] if table.rows else []


def _compare_sizes(cells: dict[str, Any], parts: Sequence[tuple[Any, pd.DataFrame]]) -> Comparison:
    import numpy as np
    from scipy.stats import t

    (first, one), (second, other) = parts
    moments = [_moments(part, size) for size, part in ((first, one), (second, other))]
    tasks = [task for task in moments[0] if task in moments[1]]
    if not tasks:
        return Comparison(cells, first, second, (), np.empty(0), np.empty(0))
    a, b = (np.array([by_task[task] for task in tasks]) for by_task in moments)  # (tasks, 3): mean, error^2, degrees
    differences = np.append(b[:, 0] - a[:, 0], (b[:, 0] - a[:, 0]).mean())
    parts_of_variance = np.column_stack([a[:, 1], b[:, 1]])
    degrees_of_parts = np.column_stack([a[:, 2], b[:, 2]])
    variance = np.append(parts_of_variance.sum(axis=1), parts_of_variance.sum() / len(tasks) ** 2)
    spread = parts_of_variance**2 / degrees_of_parts
    spread_of_all = np.append(spread.sum(axis=1), spread.sum() / len(tasks) ** 4)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * t.sf(np.abs(differences) / np.sqrt(variance), variance**2 / spread_of_all)
    return Comparison(cells, first, second, tuple(tasks), differences, np.where(variance > 0, p, 1.0))


def _moments(part: pd.DataFrame, num_test: int) -> dict[str, tuple[float, float, int]]:
    """By task: mean, squared standard error, degrees of freedom; of tasks with two subsamples or more.

    Other texts are drawn each time, so the variance is no less than that of drawing them.
    """
    base = part.groupby("task", sort=False)["base"].agg(["mean", "var", "count"])
    return {
        str(task): (mean, max(variance, mean * (1 - mean) / num_test) / count, count - 1)
        for task, mean, variance, count in base.itertuples()
        if count > 1
    }


def _reference(pairs: Sequence[tuple[Comparison, Any]], rows: Rows, place: dict[str, Any], level: float) -> Any:
    """The size that the fewest others differ from; among equals that with the most subsamples."""
    there = rows.wide
    for name, value in place.items():
        there = there[there[name] == value]
    subsamples = there.groupby("num_test").size()
    against = dict.fromkeys([size for comparison, _ in pairs for size in (comparison.first, comparison.second)], 0)
    for comparison, p in pairs:
        for size in (comparison.first, comparison.second):
            against[size] += int(p.min() <= level)
    return min(against, key=lambda size: (against[size], -subsamples[size]))


def _size_finding(rows: Rows, found: Comparison, p: FloatArray, size: int, reference: int, level: float) -> Finding:
    sign = 1 if size == found.second else -1
    differing = sorted(
        (position for position in range(len(found.tasks)) if p[position] <= level),
        key=lambda position: -abs(found.differences[position]),
    )
    named = [f"{found.tasks[i]} {rows.difference(sign * found.differences[i])}" for i in differing]
    tasks = (
        f"; {len(named)} of {pluralize(len(found.tasks), 'task')} differ by themselves: {listed(named)}"
        if named
        else ""
    )
    return Finding(
        "fault",
        "the base arm depends on n",
        rows.place(**found.place, num_test=size),
        f"mean base score {rows.difference(sign * found.differences[-1])} from that at n={reference}, "
        f"{shown_p(float(p.min()))}{tasks}",
        "the base arm never sees the n texts: look for other settings, data or code in these runs, and run them again"
        + _swapped(rows, found, size, reference, [found.tasks[i] for i in differing]),
    )


def _swapped(rows: Rows, found: Comparison, size: int, reference: int, tasks: Sequence[str]) -> str:
    """Tasks in which base and extra each look like the other's at the reference size."""
    there = rows.wide
    for name, value in found.place.items():
        there = there[there[name] == value]
    means = there.groupby(["task", "num_test"])[["base", "extra"]].mean()
    swapped = []
    for task in tasks:
        (base, extra), (right_base, right_extra) = (means.loc[[(task, n)]].to_numpy()[0] for n in (size, reference))
        straight, crossed = (base - right_base, extra - right_extra), (base - right_extra, extra - right_base)
        if max(map(abs, crossed)) < 0.25 * min(map(abs, straight)):
            swapped.append(task)
    return f"; base and extra look swapped in {listed(swapped)}" if swapped else ""


def _table(rows: Rows, odd: dict[tuple[Any, ...], float]) -> Table:
    """Mean base scores by configuration, where there are several sizes."""
    body: list[tuple[Cell, ...]] = []
    for key, group in rows.wide.groupby(["method", "model", "num_train"], sort=False):
        sizes = group[group["num_test"] != UNKNOWN].groupby("num_test")
        if len(sizes) < 2:
            continue
        for _, part in sizes:
            by_task = part.groupby("task")["base"].mean()
            where = rows.place(**dict(zip(("method", "model", "num_train"), key, strict=True)))
            num_test = int(part["num_test"].iloc[0])
            body.append((where, num_test, len(part), float(by_task.mean()), odd.get((*key, num_test))))
    unit: Unit = "fraction" if rows.is_accuracy else "number"
    return Table(
        "Base arm by number of texts that it does not see",
        (Column("where"), Column("num_test", "count"), Column("trials", "count"), Column("base", unit),
         Column("p", "p_value")),
        tuple(body),
        "p: that it differs from the size which most others agree with, after Holm; the smallest of the average over "
        "tasks and of single tasks.",
    )  # fmt: skip


def by_method(rows: Rows, shared: bool | None, level: float) -> list[Finding]:
    """Base scores of methods that should have the same base arm: paired t, Holm over all, and odd trials by count."""
    findings, comparisons = [], []
    together = ["num_train", "num_test"] if shared else ["model", "num_train", "num_test"]
    for key, group in rows.wide.groupby(together, sort=False):
        cells: dict[str, Any] = dict(zip(together, key, strict=True))
        if shared is False or (shared is None and cells["model"] == ""):
            continue
        series: dict[str, pd.Series[float]] = {
            (str(method) if shared is None else f"{method} {model}".strip()): part.set_index(["task", "subsample"])[
                "base"
            ]
            for (method, model), part in group.groupby(["method", "model"], sort=False)
        }
        for (one, first), (other, second) in combinations(series.items(), 2):
            difference = (second - first).dropna()
            equal = float((difference == 0).mean()) if len(difference) else 1.0
            if MOSTLY <= equal < 1:
                count = int((difference != 0).sum())
                tasks = list(dict.fromkeys(difference[difference != 0].index.get_level_values("task")))
                findings.append(
                    Finding(
                        "fault",
                        "a shared base arm differs here and there",
                        joined(f"{one} and {other}", rows.place(**cells)),
                        f"equal in all but {count} of {pluralize(len(difference), 'trial')}; {listed(tasks)}",
                        "these trials were run with other settings, or their rows are mixed up; run them again",
                    )
                )
            elif equal < MOSTLY:
                comparisons.append(_compare_methods(cells, one, other, difference))
    for comparison, p in zip(comparisons, _adjust(comparisons), strict=True):
        if p.min() <= level:
            tasks = [task for task, value in zip(comparison.tasks, p, strict=False) if value <= level]
            findings.append(
                Finding(
                    "doubt",
                    "the base arm depends on the method",
                    ", ".join(
                        filter(None, (f"{comparison.first} and {comparison.second}", rows.place(**comparison.place)))
                    ),
                    f"mean base score {rows.difference(comparison.differences[-1])} apart, {shown_p(float(p.min()))}"
                    + (f"; by themselves {listed(tasks)}" if tasks else ""),
                    "without unlabeled texts they should be one model: compare their settings; if they are meant to "
                    "differ, set `shared_base: false`",
                )
            )
    return findings


def _compare_methods(cells: dict[str, Any], one: str, other: str, difference: pd.Series[float]) -> Comparison:
    """Paired t over subsamples, by task and on average; a difference of means takes as many texts as it is large."""
    import numpy as np
    from scipy.stats import t

    moments = difference.groupby(level="task", sort=False).agg(["mean", "var", "count"])
    moments = moments[moments["count"] > 1]
    mean, variance, count = (moments[name].to_numpy(dtype="float64") for name in ("mean", "var", "count"))
    least = np.abs(mean) * (1 - np.abs(mean)) / max(1, cells["num_test"])
    errors = np.maximum(variance, least) / count
    if not len(mean):
        return Comparison(cells, one, other, (), np.zeros(1), np.ones(1))
    squared = np.append(errors, errors.sum() / len(mean) ** 2)
    degrees = np.append(count - 1, errors.sum() ** 2 / max((errors**2 / (count - 1)).sum(), 1e-300))
    differences = np.append(mean, mean.mean())
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * t.sf(np.abs(differences) / np.sqrt(squared), degrees)
    return Comparison(cells, one, other, tuple(map(str, moments.index)), differences, np.where(squared > 0, p, 1.0))


def _adjust(comparisons: Sequence[Comparison]) -> list[FloatArray]:
    """Holm over the tests of all comparisons."""
    import numpy as np

    if not comparisons:
        return []
    adjusted = np.array(holm(np.concatenate([comparison.p for comparison in comparisons]).tolist()))
    return np.split(adjusted, np.cumsum([len(comparison.p) for comparison in comparisons])[:-1])
