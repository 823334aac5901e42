"""Collects the warnings of a report: of the installed check, of the data, and of base arms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from peekbench.data.data_warnings import MAX_LISTED, measured_overlaps, warn_of_design
from peekbench.records.analysis import Analysis
from peekbench.results.analyze import ask, drop_incomplete, find_analysis, without_controls

if TYPE_CHECKING:
    import pandas as pd

    from peekbench.spec.design import Design

BLOCK = ["method", "num_train", "num_test", "task"]
STANDARD_ERRORS = 2.0  # above guessing, for a base arm that has learned something


def check_results(
    results: pd.DataFrame, analyses: Sequence[Analysis] = (), *, is_run: bool = False
) -> tuple[Analysis, ...]:
    """Run the default analysis with the role 'check', without incomplete trials.

    Parameters
    ----------
    results
        Results table.
    analyses
        Analyses of the same table. If one of them judges controls, they are not checked again.
    is_run
        Whether the table is from a store. Its base arms are shared where plugins declare it, so methods with the same
        language model are not expected to have the same base arm.

    Returns
    -------
    tuple of Analysis
        One analysis, or none if there is nothing to check.
    """
    is_judged = any(verdict.control for analysis in analyses for verdict in analysis.verdicts)
    checked = without_controls(results) if is_judged else results
    if checked["arm"].value_counts().nunique() > 1:
        checked = drop_incomplete(checked)
    if is_run:
        checked = checked.assign(model="")
    is_paired = checked["arm"].isin(("extra", "test")).any()
    return (ask(find_analysis("check"), checked),) if is_paired else ()


def warn_of_run(
    designs: Mapping[str, Design],
    tasks: Mapping[str, Mapping[str, Any]],
    texts: Mapping[str, Mapping[str, Any]],
    results: pd.DataFrame,
) -> Iterator[str]:
    """Yield warnings about a run that its results table alone does not show.

    Parameters
    ----------
    designs
        Design of each task.
    tasks
        Facts about each task's data.
    texts
        Descriptions of each task's texts, as `peekbench.data.text_statistics.describe_texts` returns them.
    results
        Results table.
    """
    yield from _warn_of_base_arms(without_controls(results), tasks)
    yield from warn_of_design(designs, tasks, measured_overlaps(texts))


def _warn_of_base_arms(results: pd.DataFrame, tasks: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a warning about base arms that are not clearly more accurate than guessing."""
    chance = {name: 1 / len(task["class_names"]) for name, task in tasks.items() if task["class_names"]}
    base = results[(results["arm"] == "base") & results["task"].isin(list(chance))]
    if base.empty:
        return
    blocks = base.groupby(BLOCK, sort=False, dropna=False)
    scores = blocks["score"].agg(["mean", "std", "count"]).assign(answers=blocks["num_scored"].min()).reset_index()
    scores["chance"] = scores["task"].map(chance)
    binomial = scores["mean"] * (1 - scores["mean"]) / scores["answers"].astype(float)
    variance = np.maximum(scores["std"].fillna(0.0) ** 2, binomial) / scores["count"]
    scores["excess"] = scores["mean"] - scores["chance"]
    poor = scores[scores["excess"] <= STANDARD_ERRORS * np.sqrt(variance)].sort_values("excess")
    if poor.empty:
        return
    varying = [size for size in ("num_train", "num_test") if scores[size].nunique() > 1]
    named = [_describe_base_arm(row, varying) for row in poor.head(MAX_LISTED).to_dict("records")]
    rest = len(poor) - len(named)
    yield (
        f"Base arms that are not clearly better than guessing: {'; '.join(named)}"
        + (f" and {rest} more" if rest else "")
        + ". They have learned little, so their boost says little: increase num_train, or check the method and labels"
    )


def _describe_base_arm(row: Mapping[Any, Any], sizes: Sequence[str]) -> str:
    place = ", ".join([row["task"], *(f"{size} {row[size]}" for size in sizes)])
    return f"{row['method']} in {place}: {row['mean']:.1%} (guessing: {row['chance']:.1%})"
