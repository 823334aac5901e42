"""Checks of base arms that methods should share: without unlabeled texts, they are the same model."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t

from peekbench.formatting import pluralize
from peekbench_consistency.base_arm import Comparison, adjust
from peekbench_consistency.findings import Finding, WideTable, as_mapping, format_p, join_locations, join_names
from peekbench_stats import welch_satterthwaite

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
