"""`summary.texts`: the bias for other test texts of these tasks, from the answers to single texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from peekbench import Analysis, Column, Estimate, Table
from peekbench.records import Cell, Predictions
from peekbench.results import Configuration, configurations, decide
from peekbench_stats import CrossedMean, check_region, cross_interval, cross_texts
from peekbench_summary import OtherTexts
from peekbench_summary.estimates import format_chosen, shared_averages
from peekbench_summary.text_noise import read_answers

NEEDS_ANSWERS = (
    "summary.texts did not run: it needs the answers to the same texts in several subsamples, which are in the store "
    "of a run, or in a table with one row for each text (column text) and subsample"
)
NEEDS_MEANS = "summary.texts did not run: it averages scores of texts, and not all scores are means over texts"
NOTE = (
    "{level:.0%} intervals for new subsamples (or training seeds) and other texts, averaged over tasks. The subsamples "
    "share texts, so the intervals of the verdicts are for new subsamples (or seeds) and these texts. Uses of a text: "
    "number of subsamples that test it, on average. Variance from texts: the share that other texts add. Conclusions "
    "use the region of {region} and are not adjusted for the number of methods."
)


OF_GROUPS = (
    "Texts of a group are alike: groups take the place of texts, so the intervals are for other groups. Groups: their "
    "number."
)


def cross(results: pd.DataFrame, *, options: OtherTexts, predictions: Predictions | None) -> Analysis:
    """Estimate the average bias of each configuration for other subsamples of other texts.

    Parameters
    ----------
    results
        The results table of a run, or of rows of single texts.
    options
        Level of the intervals, and region of practical equivalence.
    predictions
        Answers to single texts.

    Returns
    -------
    Analysis
        A table with one row per configuration; a warning and no table if the answers to single texts are not known, or
        scores are not means over texts.

    Raises
    ------
    SpecError
        If scores are in points and the region exceeds 20 points.
    """
    if predictions is None:
        return Analysis("texts", warnings=(NEEDS_ANSWERS,))
    found = configurations(results)
    check_region(options.region, "summary.texts", units=found.units)
    rows: list[tuple[Cell, ...]] = []
    has_groups = False
    for configuration in found.configurations:
        crossed = [_cross_task(configuration, task, predictions) for task in configuration.scores["bias"]]
        tasks = [task for task in crossed if task is not None]
        if len(tasks) < len(crossed):
            return Analysis("texts", warnings=(NEEDS_MEANS,))
        shared = shared_averages(configuration, "bias")
        num_groups = sum(task.num_groups for task in tasks)
        has_groups = has_groups or num_groups > 0
        rows.append((*configuration.cells, *_cells(tasks, shared, options), num_groups or None))
    num_tasks = results["task"].nunique()
    scope = "this task" if num_tasks == 1 else f"these {num_tasks} tasks"
    columns: tuple[Column, ...] = (
        *found.columns, Column("bias", found.units.difference), Column("conclusion"),
        Column("texts", "count"), Column("uses of a text", "number"), Column("variance from texts", "fraction"),
        Column("groups", "count"),
    )  # fmt: skip
    note = NOTE.format(level=options.level, region=format_chosen(options.region, found.units))
    if has_groups:
        note = f"{note} {OF_GROUPS}"
    else:
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return Analysis(
        "texts",
        tables=(
            Table(
                f"Bias for other texts of {scope}",
                columns,
                tuple(rows),
                found.note(note),
            ),
        ),
    )


def _cross_task(configuration: Configuration, task: str, predictions: Predictions) -> CrossedMean | None:
    answers = read_answers(configuration, task, predictions)
    if answers is None:
        return None
    return cross_texts(answers.scores["test"] - answers.scores["extra"], answers.rows, answers.groups)


def _cells(tasks: list[CrossedMean], shared: Sequence[float], options: OtherTexts) -> tuple[Cell, ...]:
    texts = sum(task.num_texts for task in tasks)
    uses = sum(task.num_answers for task in tasks) / texts
    interval = cross_interval(tasks, options.level, shared)
    if interval is None:
        mean = Estimate(float(np.mean([task.mean for task in tasks])))
        return mean, "too few subsamples", texts, uses, None
    decision = decide(interval.low, interval.high, options.region)
    # Scores that are means over texts, such as accuracy and F1, lie between 0 and 1.
    bias = Estimate(interval.mean, max(interval.low, -1.0), min(interval.high, 1.0))
    return bias, decision, texts, uses, interval.text_share
