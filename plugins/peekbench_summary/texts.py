"""`summary.texts`: the bias for other test texts of these tasks, from the stored predictions."""

from __future__ import annotations

import numpy as np
import pandas as pd

from peekbench import Analysis, Column, Table
from peekbench.records import Cell, Predictions
from peekbench.results import Configuration, check_region, configurations, decide
from peekbench_stats import CrossedMean, cross_interval, cross_texts
from peekbench_summary import OtherTexts

ARMS = ("extra", "test")
NEEDS_RUN = (
    "summary.texts did not run: it needs the predictions of a run, and a table of scores has none; give the store of a "
    "run"
)
NEEDS_ACCURACY = "summary.texts did not run: it averages correct answers over texts, and not all scores are accuracies"


def cross(results: pd.DataFrame, *, options: OtherTexts, predictions: Predictions | None) -> Analysis:
    """Estimate the average bias of each configuration for other subsamples of other texts.

    Parameters
    ----------
    results
        The results table of a run.
    options
        Level of the intervals, and region of practical equivalence.
    predictions
        Predictions of the run.

    Returns
    -------
    Analysis
        A table with one row per configuration; a warning and no table if the results are not from a run, or are not
        accuracies.

    Raises
    ------
    SpecError
        If the region exceeds 20 points.
    """
    if predictions is None:
        return Analysis("texts", warnings=(NEEDS_RUN,))
    found = configurations(results)
    if not found.is_accuracy:
        return Analysis("texts", warnings=(NEEDS_ACCURACY,))
    check_region(options.region, "summary.texts", is_accuracy=True)
    rows = []
    for configuration in found.configurations:
        tasks = [_cross_task(configuration, task, predictions) for task in configuration.scores["bias"]]
        rows.append((*configuration.cells, *_cells(tasks, options)))
    num_tasks = results["task"].nunique()
    columns = (
        *found.columns, Column("texts", "count"), Column("uses of a text", "number"),
        *(Column(f"bias{end}", "difference") for end in ("", ", low", ", high")),
        Column("variance from texts", "fraction"), Column("conclusion"),
    )  # fmt: skip
    return Analysis(
        "texts",
        tables=(
            Table(
                found.title(f"Bias for other texts of {'this task' if num_tasks == 1 else f'these {num_tasks} tasks'}"),
                columns,
                tuple(rows),
                f"{options.level:.0%} intervals for new subsamples of new texts, averaged over tasks. Subsamples of "
                "one data set share texts, so the intervals of `summary` refer to these texts. Uses of a text: number "
                "of subsamples that test it, on average. Variance from texts: the share that new texts add. "
                f"Conclusions use the region of {100 * options.region:g} points and are not adjusted for the number of "
                "methods.",
            ),
        ),
    )


def _cross_task(configuration: Configuration, task: str, predictions: Predictions) -> CrossedMean:
    method, _, num_train, num_test = configuration.key
    assert isinstance(method, str)
    assert isinstance(num_train, int)
    assert isinstance(num_test, int)
    answers = predictions.answers(task, method, num_train, num_test, ARMS)
    is_analyzed = np.isin(answers.subsamples, configuration.subsamples[task])
    extra, test = (answers.is_correct[arm][is_analyzed].astype(float) for arm in ARMS)
    return cross_texts(test - extra, answers.rows[is_analyzed])


def _cells(tasks: list[CrossedMean], options: OtherTexts) -> tuple[Cell, ...]:
    texts = sum(task.num_texts for task in tasks)
    uses = sum(task.num_answers for task in tasks) / texts
    interval = cross_interval(tasks, options.level)
    if interval is None:
        return texts, uses, float(np.mean([task.mean for task in tasks])), None, None, None, "too few subsamples"
    decision = decide(interval.low, interval.high, options.region)
    return texts, uses, interval.mean, interval.low, interval.high, interval.text_share, decision
