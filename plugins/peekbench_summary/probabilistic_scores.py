"""Scores finer than accuracy, which moves in steps of one text: the same effects, often from fewer subsamples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from peekbench import Column, Table
from peekbench.records import Cell, Unit
from peekbench.results import Configurations, configurations
from peekbench_summary.estimates import of_one_task, of_these_tasks

if TYPE_CHECKING:
    import pandas as pd

ACCURACY, LOG_LIKELIHOOD = "accuracy", "log-likelihood"
FINER = {"macro-F1": ("macro_f1", 1), LOG_LIKELIHOOD: ("log_loss", -1), "negative Brier score": ("brier", -1)}
"""By name: the column of the results table, and 1 where more is better there."""
IN_POINTS = frozenset({ACCURACY, "macro-F1"})
NOTE = (
    "More is better in all of them. Accuracy and macro-F1 in points; the log-likelihood is the mean of ln p of the "
    "true class, the log loss with the other sign. Means over these tasks, intervals for further subsamples."
)
NEEDED_NOTE = (
    "How many times as many subsamples as with accuracy tell a bias from zero with the same power, if what the test "
    "texts do to one score (test - base) they do to the others in proportion; left out where that is not clear of "
    "zero, or where the bias has another sign than that of accuracy."
)
Scores: TypeAlias = Mapping[str, Mapping[str, Sequence[float]]]


def finer_scores(results: pd.DataFrame, found: Configurations) -> dict[str, Configurations]:
    """Accuracy and every finer score that all rows of methods have, by name; nothing without one, or without accuracy.

    Parameters
    ----------
    found
        The configurations of `results`, without controls; those of each score are in their order.
    """
    rows = results[results["control"] == ""]
    if not found.is_accuracy or rows.empty:
        return {}
    scores = {}
    for name, (column, sign) in FINER.items():
        if rows[column].notna().all():
            finer = configurations(rows.assign(score=sign * rows[column], num_correct=None))
            by_key = {one.key: one for one in finer.configurations}
            scores[name] = replace(finer, configurations=tuple(by_key[one.key] for one in found.configurations))
    return {ACCURACY: found, **scores} if scores else {}


def finer_tables(scores: Mapping[str, Configurations], level: float) -> list[Table]:
    """Boost and bias in every score, and how many subsamples each would need.

    The number of subsamples that gives a test its power is proportional to (sd / effect)^2 of the differences.
    """
    if not scores:
        return []
    found = scores[ACCURACY]
    effects = [effect for effect in ("bias", "boost") if effect in found.effects]
    rows: list[tuple[Cell, ...]] = []
    ratios: list[tuple[Cell, ...]] = []
    for position, one in enumerate(found.configurations):
        of_each = {name: of.configurations[position].scores for name, of in scores.items()}
        for effect in effects:
            cells: list[Cell] = []
            for of in of_each.values():
                estimate = of_these_tasks(list(of[effect].values()), level)
                ends = (estimate.low, estimate.high) if estimate.has_interval else (None, None)
                cells += [estimate.mean, *ends]
            rows.append((*one.cells, effect, *cells))
        ratios.append((*one.cells, *_ratios(of_each, level)))
    columns = [*found.columns, Column("effect")]
    for name in scores:
        unit: Unit = "difference" if name in IN_POINTS else "change"
        columns += [Column(heading, unit) for heading in (name, f"{name}, low", f"{name}, high")]
    title = found.title(f"In finer scores than accuracy: bias and boost, {level:.0%} intervals")
    tables = [Table(title, tuple(columns), tuple(rows), NOTE)]
    if any(cell is not None for row in ratios for cell in row[len(found.columns) :]):
        finer = tuple(Column(name, "number") for name in scores if name != ACCURACY)
        title = found.title("Subsamples that finer scores need for the same power, accuracy = 1")
        tables.append(Table(title, (*found.columns, *finer), tuple(ratios), NEEDED_NOTE))
    return tables


def _ratios(of_each: Mapping[str, Scores], level: float) -> list[Cell]:
    """Of each finer score."""
    needed = {name: needed_subsamples(of, level) for name, of in of_each.items()}
    biases = {name: of_these_tasks(list(of["bias"].values()), level).mean for name, of in of_each.items()}
    accuracy = needed[ACCURACY]
    return [
        here / accuracy if here is not None and accuracy and biases[name] * biases[ACCURACY] > 0 else None
        for name, here in needed.items()
        if name != ACCURACY
    ]


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
