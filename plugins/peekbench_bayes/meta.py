"""`bayes.meta`: how conclusions vary between studies with one subsample per task and model.

See section 10 of the study.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from peekbench import Analysis, Column, Table
from peekbench.formatting import difference_unit, pluralize, spread_unit
from peekbench.records import Cell, FloatArray
from peekbench.results import select_score
from peekbench_bayes import figures
from peekbench_bayes.arrays import PairedArms, split_results
from peekbench_bayes.options import Meta
from peekbench_bayes.scores import region_of, resolve_options
from peekbench_bayes.slices import SliceEffects, draw_slices, fit_count_slices, fit_difference_slices
from peekbench_bayes.summaries import decision_columns, decision_shares, format_region, interval_ends


def analyze_slices(results: pd.DataFrame, *, options: Meta) -> Analysis:
    """Refit each method at each design point on random slices of its results.

    Parameters
    ----------
    results
        The results table.
    options
        Number of slices, preset, priors and level.

    Returns
    -------
    Analysis
        The distribution of posterior means and of conclusions over slices, and a figure of the means.

    Raises
    ------
    DataError
        If the preset is binomial and the scores are not accuracies of a known number of texts.
    SpecError
        If the region of accuracies exceeds 20 points.
    """
    options = resolve_options(results, options)
    keys, splits = split_results(select_score(results, options.score, "bayes.meta"), options.effects)
    region = region_of(options, "bayes.meta", splits)
    means: list[tuple[Cell, ...]] = []
    conclusions: list[tuple[Cell, ...]] = []
    distributions: list[tuple[PairedArms, FloatArray, float]] = []
    for arms in splits:
        effects = _fit(arms, options)
        low, high = np.quantile(effects.mean, interval_ends(options.level)).tolist()
        beyond = float((np.abs(effects.mean) > region).mean())
        excludes = float(((effects.low > 0) | (effects.high < 0)).mean())
        distributions.append((arms, effects.mean, beyond))
        key = (*arms.cells, arms.effect)
        means.append((*key, float(effects.mean.mean()), low, high, float(effects.mean.std()), beyond, excludes))
        intervals = zip(effects.low.tolist(), effects.high.tolist(), strict=True)
        conclusions.append((*key, *decision_shares(intervals, region)))
    is_accuracy = all(arms.is_accuracy for arms in splits)
    is_in_points = options.preset == "calibrated" and is_accuracy
    unit = difference_unit(is_in_points)
    subject = f"of {pluralize(options.num_slices, 'slice')}, preset {options.preset}"
    scale = "" if options.preset == "calibrated" else ", log-odds"
    size = format_region(region, unit)
    columns = (*keys, Column("effect"))
    return Analysis(
        "meta",
        tables=(
            Table(
                f"Posterior means {subject}{scale}",
                (
                    *columns, Column("mean", unit), Column("middle, low", unit), Column("middle, high", unit),
                    Column("sd", spread_unit(is_in_points)),
                    Column(f"beyond {size}", "fraction"), Column("interval excludes 0", "fraction"),
                ),
                tuple(means),
                "A slice keeps one random subsample of each task and model, like a study without replication. Middle: "
                f"the range of the central {options.level:.0%} of the posterior means. Interval: the "
                f"{options.level:.0%} interval of a slice. Slices of the same results are not independent.",
            ),
            Table(
                f"Conclusions {subject}, region {size}{scale}",
                (*columns, *decision_columns()),
                tuple(conclusions),
                f"Share of slices whose {options.level:.0%} interval leads to each conclusion.",
            ),
        ),
        figures=(figures.slice_means(distributions, options.preset, options.level, region, unit),),
        warnings=tuple(
            f"{arms.label}, {arms.effect}: no task has more than one subsample, so all slices are identical; run more "
            "subsamples before you interpret the spread of the slices"
            for arms in splits
            if arms.difference.shape[2] == 1
        ),
    )  # fmt: skip


def _fit(arms: PairedArms, options: Meta) -> SliceEffects:
    rng = np.random.default_rng(options.seed)
    slices = list(draw_slices(arms, options.num_slices, rng))
    if options.preset == "calibrated":
        return fit_difference_slices(slices, options.difference_priors, options.draws, options.level, rng)
    return fit_count_slices(slices, options.preset, options.count_priors, options.level)
