"""How much would conclusions vary between studies with one subsample per task and model (section 10 of the study)?"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, get_args

from peekbench import Analysis, Column, Table
from peekbench.formatting import pluralize
from peekbench.records import Cell, Decision, Unit
from peekbench.results import decide
from peekbench_bayes import figures
from peekbench_bayes.arrays import Arms, split
from peekbench_bayes.slices import Effects, fit_count_slices, fit_difference_slices, take_slices

if TYPE_CHECKING:
    import pandas as pd

    from peekbench.records import FloatArray
    from peekbench_bayes import Meta

DECISIONS: tuple[Decision, ...] = get_args(Decision)


def analyse_slices(results: pd.DataFrame, *, options: Meta) -> Analysis:
    """Refit each method at each design point on random slices of its results.

    Raises
    ------
    DataError
        Where a binomial preset is asked for scores that are no accuracies.
    """
    import numpy as np

    keys, parts = split(results, options.effects)
    rows: list[tuple[Cell, ...]] = []
    conclusions: list[tuple[Cell, ...]] = []
    spreads: list[tuple[Arms, FloatArray, float]] = []
    for arms in parts:
        found = _fit(arms, options)
        low, high = np.quantile(found.mean, [(1 - options.level) / 2, (1 + options.level) / 2]).tolist()
        outside = float((np.abs(found.mean) > options.limit).mean())
        excludes = float(((found.low > 0) | (found.high < 0)).mean())
        spreads.append((arms, found.mean, outside))
        start = (*arms.cells, arms.effect)
        rows.append((*start, float(found.mean.mean()), low, high, float(found.mean.std()), outside, excludes))
        limits = zip(found.low.tolist(), found.high.tolist(), strict=True)
        said = Counter(decide(*ends, options.limit) for ends in limits)
        conclusions.append((*start, *(said[decision] / options.num_slices for decision in DECISIONS)))
    is_accuracy = all(arms.num_test for arms in parts)
    unit: Unit = "difference" if options.preset == "calibrated" and is_accuracy else "change"
    of = f"of {pluralize(options.num_slices, 'slice')}, preset {options.preset}"
    scale = "" if options.preset == "calibrated" else ", log-odds"
    size = f"{options.limit * 100:g} points" if unit == "difference" else f"{options.limit:g}"
    first = (*keys, Column("effect"))
    spread: Unit = "spread" if unit == "difference" else "number"
    return Analysis(
        "meta",
        tables=(
            Table(
                f"Posterior means {of}{scale}",
                (
                    *first, Column("mean", unit), Column("middle, low", unit), Column("middle, high", unit),
                    Column("sd", spread),
                    Column(f"beyond {size}", "fraction"), Column("interval excludes 0", "fraction"),
                ),
                tuple(rows),
                "A slice keeps one random subsample of each task and model, as a study without replication has. "
                f"Middle: where {options.level:.0%} of the posterior means lie. Interval: the {options.level:.0%} "
                "interval of a slice. Slices of the same results are not independent of each other.",
            ),
            Table(
                f"Conclusions {of}, region {size}{scale}",
                (*first, *(Column(decision, "fraction") for decision in DECISIONS)),
                tuple(conclusions),
                f"What the {options.level:.0%} intervals of the slices say.",
            ),
        ),
        figures=(figures.conclusions(spreads, options.preset, options.level, options.limit, unit),),
        warnings=tuple(
            f"{arms.label}, {arms.effect}: no task has more than one subsample, so all slices are the same; the "
            "spread of the slices says nothing"
            for arms in parts
            if arms.difference.shape[2] == 1
        ),
    )  # fmt: skip


def _fit(arms: Arms, options: Meta) -> Effects:
    import numpy as np

    rng = np.random.default_rng(options.seed)
    slices = list(take_slices(arms, options.num_slices, rng))
    if options.preset == "calibrated":
        return fit_difference_slices(slices, options.difference_priors, options.draws, options.level, rng)
    return fit_count_slices(slices, options.preset, options.count_priors, options.level)
