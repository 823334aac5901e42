"""Boost and bias in scores other than accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from peekbench import Column, Table
from peekbench.records import Cell, Unit
from peekbench.results import SCORES, Configurations, configurations
from peekbench_summary.estimates import estimate_these_tasks
from peekbench_summary.tables import EFFECTS, effect_columns

ACCURACY = "accuracy"
OTHER_SCORES = sorted(
    (score for score in SCORES if score.name not in ("num_correct", "score")),
    key=lambda score: score.unit != "fraction",
)
"""All scores except accuracy, those in points first."""
LOG_LIKELIHOOD = next(score.title for score in OTHER_SCORES if score.name == "log_loss")
IN_POINTS = (ACCURACY, *(score.title for score in OTHER_SCORES if score.unit == "fraction"))
NOTE = (
    f"Higher is better in all scores. {' and '.join(('Accuracy', *IN_POINTS[1:]))} are in points; the "
    f"{LOG_LIKELIHOOD} is the mean of ln p of the true class, the negative of the log loss. Means over these tasks, "
    "intervals for new subsamples."
)


def probabilistic_scores(results: pd.DataFrame, paired: Configurations) -> dict[str, Configurations]:
    """Return accuracy and every other score that is available for all methods, by name.

    Parameters
    ----------
    results
        The results table.
    paired
        The configurations of `results` without controls; those of each score have the same order.

    Returns
    -------
    dict
        Empty if scores are not accuracies, or if no other score is available.
    """
    rows = results[results["control"] == ""]
    if not paired.is_accuracy or rows.empty:
        return {}
    scores = {}
    for score in OTHER_SCORES:
        values = rows[score.name] if score.is_higher_better else -rows[score.name]
        if values.notna().all():
            rescored = configurations(rows.assign(score=values, num_correct=None))
            by_key = {each.key: each for each in rescored.configurations}
            ordered = tuple(by_key[each.key] for each in paired.configurations)
            scores[score.title] = replace(rescored, configurations=ordered)
    return {ACCURACY: paired, **scores} if scores else {}


def score_tables(scores: Mapping[str, Configurations], level: float) -> list[Table]:
    """Tabulate boost and bias in every score that `probabilistic_scores` returned; nothing without other scores."""
    if not scores:
        return []
    paired = scores[ACCURACY]
    rows: list[tuple[Cell, ...]] = []
    for position, configuration in enumerate(paired.configurations):
        for effect in (effect for effect in EFFECTS if effect in paired.effects):
            cells: list[Cell] = []
            for score in scores.values():
                estimate = estimate_these_tasks(list(score.configurations[position].scores[effect].values()), level)
                cells += [estimate.mean, *estimate.limits]
            rows.append((*configuration.cells, effect, *cells))
    columns = [*paired.columns, Column("effect")]
    for name in scores:
        unit: Unit = "difference" if name in IN_POINTS else "change"
        columns += effect_columns([name], unit)
    title = paired.title(f"Bias and boost by score, {level:.0%} intervals")
    return [Table(title, tuple(columns), tuple(rows), NOTE)]
