"""Scores finer than accuracy, which moves in steps of one text: the same effects, often from fewer subsamples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from peekbench import Cell, Column, Configurations, Table, configurations
from peekbench_summary.estimates import of_one_task, of_these_tasks

if TYPE_CHECKING:
    import pandas as pd

ACCURACY = "accuracy"
FINER = {"log loss": ("log_loss", -1), "Brier score": ("brier", -1), "macro-F1": ("macro_f1", 1)}
"""By name: the column of the results table, and 1 where more is better."""
IN_POINTS = frozenset({ACCURACY, "macro-F1"})
NOTE = (
    "More is better: losses are counted negatively. Points are percentage points. Subsamples: how many times "
    "as many as with accuracy tell a bias from zero with the same power, if what the test texts do to one score "
    "(test - base) they do to the others in proportion; left out where that is not clear of zero, or where the bias "
    "has another sign than that of accuracy."
)
Scores: TypeAlias = Mapping[str, Mapping[str, Sequence[float]]]


def finer_table(results: pd.DataFrame, found: Configurations, level: float) -> Table | None:
    """Boost and bias in every score that all rows have; None where accuracy is the only one.

    The number of subsamples that gives a test its power is proportional to (sd / effect)^2 of the differences.
    """
    scores = {ACCURACY: found}
    for name, (column, sign) in FINER.items():
        if results[column].notna().all():
            scores[name] = configurations(results.assign(score=sign * results[column], num_correct=None))
    if not found.is_accuracy or len(scores) == 1:
        return None
    effects = [effect for effect in ("boost", "bias") if effect in found.effects]
    rows: list[tuple[Cell, ...]] = []
    for position, one in enumerate(found.each):
        of_each = {name: of.each[position].scores for name, of in scores.items()}
        needed = {name: needed_subsamples(of, level) for name, of in of_each.items()}
        biases = {name: of_these_tasks(list(of["bias"].values()), level) for name, of in of_each.items()}
        for name, of in of_each.items():
            means = [of_these_tasks(list(of[effect].values()), level).mean for effect in effects]
            scale = 100 if name in IN_POINTS else 1
            here, accuracy, bias = needed[name], needed[ACCURACY], biases[name]
            agree = bias.mean * biases[ACCURACY].mean > 0
            ratio = here / accuracy if here is not None and accuracy and agree else None
            numbers = (None if math.isnan(number) else scale * number for number in (*means, bias.low, bias.high))
            rows.append((*one.cells, f"{name}, points" if name in IN_POINTS else name, *numbers, ratio))
    headings = (*effects, "low", "high", "subsamples, accuracy = 1")
    columns = (*found.columns, Column("score"), *(Column(heading, "number") for heading in headings))
    title = found.title(f"Scores finer than accuracy, {level:.0%} intervals of the bias for these tasks")
    return Table(title, columns, tuple(rows), NOTE)


def needed_subsamples(scores: Scores, level: float) -> float | None:
    """Number of subsamples that a given power takes, up to a factor that is the same for all scores of a configuration.

    None where the effect of the test texts is not clear of zero, or the bias does not vary.
    """
    if "boost" not in scores:
        return None
    effect = of_these_tasks(
        [
            [boost + bias for boost, bias in zip(scores["boost"][task], biases, strict=True)]
            for task, biases in scores["bias"].items()
        ],
        level,
    )
    variances = [of_one_task(biases, level).error ** 2 * len(biases) for biases in scores["bias"].values()]
    variance = math.fsum(variances) / len(variances)
    if not effect.has_interval or effect.low <= 0 <= effect.high or not variance > 0:
        return None
    return variance / effect.mean**2
