"""Boost and bias in scores other than accuracy, which often need fewer subsamples.

Accuracy changes in steps of one text; log-likelihood and Brier score do not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import pandas as pd

from peekbench import Column, Table
from peekbench.records import Cell, Unit
from peekbench.results import SCORES, Configurations, configurations
from peekbench_summary.estimates import estimate_one_task, estimate_these_tasks
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
RATIO_NOTE = (
    "Number of subsamples that distinguish a bias from zero with the same power, relative to accuracy, if the effect "
    "of the test texts (test - base) on this score is proportional to that on accuracy. Omitted if this effect does "
    "not differ clearly from zero, or if the bias has a different sign than that of accuracy."
)
EffectsByTask: TypeAlias = Mapping[str, Mapping[str, Sequence[float]]]
"""Effect to task to the value of each subsample."""


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
    """Tabulate boost and bias in every score, and the relative number of subsamples that each score needs.

    Parameters
    ----------
    scores
        The result of `probabilistic_scores`.
    level
        Nominal coverage of the intervals.
    """
    if not scores:
        return []
    paired = scores[ACCURACY]
    present = [effect for effect in EFFECTS if effect in paired.effects]
    rows: list[tuple[Cell, ...]] = []
    ratio_rows: list[tuple[Cell, ...]] = []
    for position, configuration in enumerate(paired.configurations):
        effects = {name: score.configurations[position].scores for name, score in scores.items()}
        for effect in present:
            cells: list[Cell] = []
            for by_task in effects.values():
                estimate = estimate_these_tasks(list(by_task[effect].values()), level)
                cells += [estimate.mean, *estimate.limits]
            rows.append((*configuration.cells, effect, *cells))
        ratio_rows.append((*configuration.cells, *_relative_sizes(effects, level)))
    columns = [*paired.columns, Column("effect")]
    for name in scores:
        unit: Unit = "difference" if name in IN_POINTS else "change"
        columns += effect_columns([name], unit)
    title = paired.title(f"Bias and boost by score, {level:.0%} intervals")
    tables = [Table(title, tuple(columns), tuple(rows), NOTE)]
    if any(cell is not None for row in ratio_rows for cell in row[len(paired.columns) :]):
        names = tuple(Column(name, "number") for name in scores if name != ACCURACY)
        title = paired.title("Subsamples needed for the same power, accuracy = 1")
        tables.append(Table(title, (*paired.columns, *names), tuple(ratio_rows), RATIO_NOTE))
    return tables


def _relative_sizes(effects: Mapping[str, EffectsByTask], level: float) -> list[Cell]:
    """Return the subsamples that each score needs, relative to accuracy."""
    needed = {name: needed_subsamples(by_task, level) for name, by_task in effects.items()}
    biases = {
        name: estimate_these_tasks(list(by_task["bias"].values()), level).mean for name, by_task in effects.items()
    }
    for_accuracy = needed[ACCURACY]
    return [
        number / for_accuracy if number is not None and for_accuracy and biases[name] * biases[ACCURACY] > 0 else None
        for name, number in needed.items()
        if name != ACCURACY
    ]


def needed_subsamples(effects: EffectsByTask, level: float) -> float | None:
    """Return the number of subsamples for a given power, up to a factor that all scores of a configuration share.

    It is proportional to (sd of the bias / effect of the test texts)^2.

    Returns
    -------
    float or None
        None if there is no boost, if the effect of the test texts does not differ clearly from zero, or if the bias
        does not vary.
    """
    if "boost" not in effects:
        return None
    total_effect = estimate_these_tasks(
        [
            [boost + bias for boost, bias in zip(effects["boost"][task], biases, strict=True)]
            for task, biases in effects["bias"].items()
        ],
        level,
    )
    variances = [
        estimate_one_task(biases, level).standard_error ** 2 * len(biases) for biases in effects["bias"].values()
    ]
    variance = math.fsum(variances) / len(variances)
    if not total_effect.excludes_zero or not variance > 0:
        return None
    return variance / total_effect.mean**2
