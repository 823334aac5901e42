"""`bayes.meta`: how conclusions vary between studies with one subsample per task and model (section 10 of the study).

The binomial models are fitted to many slices together, by the nested Laplace approximation of `laplace`, on fewer grid
points than a single fit: the bias depends little on how the standard deviations are integrated out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import ndtr

from peekbench import Analysis, Column, Estimate, Table
from peekbench.formatting import pluralize
from peekbench.records import NUMBERS, Cell, FloatArray
from peekbench_bayes import figures
from peekbench_bayes.arrays import PairedArms, region_of, resolve_options, split_results, warn_of_shared_draws
from peekbench_bayes.calibrated import WARM_UP, Cells, sample, summarize_cells
from peekbench_bayes.counts import make_count_rows
from peekbench_bayes.laplace import CountRows, Mode, difference_offsets, differentiate, find_mode
from peekbench_bayes.options import CountPriors, DifferencePriors, Meta, Preset
from peekbench_bayes.posterior import decision_columns, decision_shares, format_region, interval_ends
from peekbench_stats import select_score

BATCH = 10  # slices fitted together; their arrays fit into the processor's cache
CHAIN_BATCH = 50  # slices that are chains of one Gibbs sampler
SLICE_WARM_UP = 20  # with one subsample per cell the variances reach their distribution after ten steps
FIRST_ROUNDS = 8  # rounds of Newton's method for the standard deviations of the first slice
ROUNDS = 2  # rounds for the other slices, which start from the first one
STEP = 3**0.5  # in posterior standard deviations: density weights at these points are close to Gauss-Hermite weights
MAX_STEP = 1.0  # largest step of a log standard deviation


@dataclass(frozen=True, slots=True)
class SliceEffects:
    """One effect in each slice: arrays of shape (n_slices,)."""

    mean: FloatArray
    """Posterior mean."""
    low: FloatArray
    """Lower end of the interval."""
    high: FloatArray
    """Upper end of the interval."""


def draw_slices(arms: PairedArms, num_slices: int, rng: np.random.Generator) -> Iterator[PairedArms]:
    """Draw slices with one random subsample of each task, chosen separately for each model.

    Parameters
    ----------
    arms
        Scores of the two arms.
    num_slices
        Number of slices.
    rng
        Random generator.

    Yields
    ------
    PairedArms
        Arrays of shape (n_models, n_tasks, n_models). The subsample of model i is at position i, because models no
        longer share subsamples; all other values are NaN.
    """
    models = np.arange(len(arms.models))
    for _ in range(num_slices):
        order = np.where(np.isfinite(arms.difference), rng.random(arms.difference.shape), -1.0)
        kept = order.argmax(axis=2)[..., None]
        scores = []
        for arm in (arms.control, arms.treatment):
            kept_scores = np.full((*arm.shape[:2], len(models)), np.nan)
            kept_scores[models, :, models] = np.take_along_axis(arm, kept, axis=2)[..., 0]
            scores.append(kept_scores)
        yield replace(arms, control=scores[0], treatment=scores[1])


def fit_difference_slices(
    slices: Sequence[PairedArms], priors: DifferencePriors, draws: int, level: float, rng: np.random.Generator
) -> SliceEffects:
    """Fit the model `calibrated` to each slice, as one chain of the Gibbs sampler.

    Given the variances, the average effect is normal around the observed average. Its posterior is therefore a mixture
    of normals with one center, whose widths come from the draws. The mean is exact, and 60 draws give an interval as
    precise as 300 draws of the average itself.

    Parameters
    ----------
    slices
        The slices, from `draw_slices`.
    priors
        Priors of the model.
    draws
        Draws per slice.
    level
        Probability of the intervals.
    rng
        Random generator.

    Returns
    -------
    SliceEffects
        Average effect over these tasks and models, in units of the score.
    """
    parts = []
    for start in range(0, len(slices), CHAIN_BATCH):
        cells = summarize_cells(np.stack([arms.difference for arms in slices[start : start + CHAIN_BATCH]]))
        is_present = cells.count > 0
        num_cells = is_present.sum(axis=(1, 2))
        states = itertools.islice(sample(cells, priors, SLICE_WARM_UP + draws, rng), SLICE_WARM_UP, None)
        variances = (np.where(is_present, state.variance / np.maximum(cells.count, 1), 0.0) for state in states)
        sds = np.sqrt(np.array([variance.sum(axis=(1, 2)) for variance in variances])).T / num_cells[:, None]
        half = mixture_quantile(np.full(sds.shape, 1 / draws), np.zeros(sds.shape), sds, (1 + level) / 2)
        center = cells.mean.sum(axis=(1, 2)) / num_cells
        parts.append(SliceEffects(center, center - half, center + half))
    return _join(parts)


def draw_averages(cells: Cells, priors: DifferencePriors, draws: int, rng: np.random.Generator) -> FloatArray:
    """Draw the average effect over these tasks and models from the model `calibrated`: (draws, n_chains)."""
    states = itertools.islice(sample(cells, priors, WARM_UP + draws, rng), WARM_UP, None)
    return np.array([np.nanmean(state.unshrunk, axis=(1, 2)) for state in states])


def fit_count_slices(slices: Sequence[PairedArms], preset: Preset, priors: CountPriors, level: float) -> SliceEffects:
    """Fit a binomial model to each slice.

    Parameters
    ----------
    slices
        The slices, from `draw_slices`.
    preset
        The binomial model.
    priors
        Its priors.
    level
        Probability of the intervals.

    Returns
    -------
    SliceEffects
        Effect in log-odds.

    Raises
    ------
    DataError
        If the scores are not accuracies of a known number of texts.
    """
    rows = [make_count_rows(arms, preset, priors) for arms in slices]
    start = np.log([[0.5 * min(scale, 1.0) for scale in rows[0].scales]])
    start = _find_peaks(_stack(rows[:1]), start, FIRST_ROUNDS).log_sd  # the peaks of other slices are close to this one
    return _join(
        [_fit_together(_stack(rows[first : first + BATCH]), start, level) for first in range(0, len(rows), BATCH)]
    )


def _join(parts: Sequence[SliceEffects]) -> SliceEffects:
    return SliceEffects(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("mean", "low", "high")))


def _stack(rows: Sequence[CountRows]) -> CountRows:
    """Combine data sets of one design along a new first axis of the counts."""
    return replace(
        rows[0],
        right=np.stack([data_set.right for data_set in rows]),
        trials=np.stack([data_set.trials for data_set in rows]),
    )


@dataclass(frozen=True, slots=True)
class _Peaks:
    """Modes of the posterior densities of the log standard deviations, one per data set."""

    log_sd: FloatArray
    """The modes: (n_data_sets, n_sds)."""
    axes: FloatArray
    """Principal axes as columns, scaled to posterior standard deviations: (n_data_sets, n_sds, n_sds)."""
    mode: Mode
    """Modes of the effects near `log_sd`."""


def _find_peaks(rows: CountRows, log_sd: FloatArray, rounds: int) -> _Peaks:
    """Find the modes of the log standard deviations by Newton's method, for data sets along the first axis."""
    num_data_sets, size = log_sd.shape
    offsets = difference_offsets(size)
    repeated = _repeat(rows, len(offsets))
    mode: Mode | None = None
    for _ in range(rounds):
        around = find_mode(repeated, (log_sd[:, None] + offsets).reshape(-1, size), mode)
        gradient, hessian = differentiate(around.log_density.reshape(num_data_sets, -1), size)
        mode = around.at_points(np.arange(0, len(around.log_density), len(offsets)))
        values, vectors = np.linalg.eigh(-hessian)
        values = np.maximum(values, 0.1)
        step = (vectors @ ((np.swapaxes(vectors, 1, 2) @ gradient[..., None]) / values[..., None]))[..., 0]
        log_sd = log_sd + step * np.minimum(1.0, MAX_STEP / np.abs(step).max(axis=1, keepdims=True))
    assert mode is not None
    return _Peaks(log_sd, vectors / np.sqrt(values)[:, None], mode)


def _fit_together(rows: CountRows, start: FloatArray, level: float) -> SliceEffects:
    """Fit data sets along the first axis of the counts."""
    num_data_sets, size = len(rows.right), start.shape[1]
    peaks = _find_peaks(rows, np.repeat(start, num_data_sets, axis=0), ROUNDS)
    points = STEP * np.concatenate([np.zeros((1, size)), np.eye(size), -np.eye(size)])
    log_sd = peaks.log_sd[:, None] + points @ np.swapaxes(peaks.axes, 1, 2)
    modes = find_mode(_repeat(rows, len(points)), log_sd.reshape(-1, size), peaks.mode)
    log_density = modes.log_density.reshape(num_data_sets, -1)
    weights = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    means = modes.top[:, -1].reshape(num_data_sets, -1)
    sds = np.sqrt(np.linalg.inv(modes.top_precision)[:, -1, -1]).reshape(num_data_sets, -1)
    low, high = (mixture_quantile(weights, means, sds, q) for q in interval_ends(level))
    return SliceEffects((weights * means).sum(axis=1), low, high)


def _repeat(rows: CountRows, times: int) -> CountRows:
    """Repeat each data set consecutively."""
    return replace(rows, right=np.repeat(rows.right, times, axis=0), trials=np.repeat(rows.trials, times, axis=0))


def mixture_quantile(weights: FloatArray, means: FloatArray, sds: FloatArray, q: float) -> FloatArray:
    """Compute a quantile of mixtures of normals by bisection.

    Parameters
    ----------
    weights, means, sds
        Weights, means and standard deviations of the components: (n_mixtures, n_components).
    q
        Probability of a value below the quantile.

    Returns
    -------
    array
        Quantiles of shape (n_mixtures,).
    """
    low, high = (means - 8 * sds).min(axis=1), (means + 8 * sds).max(axis=1)
    for _ in range(50):
        middle = (low + high) / 2
        is_below = (weights * ndtr((middle[:, None] - means) / sds)).sum(axis=1) < q
        low[is_below], high[~is_below] = middle[is_below], middle[~is_below]
    quantile: FloatArray = (low + high) / 2
    return quantile


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
        middle = Estimate(low=low, high=high)
        means.append((*key, float(effects.mean.mean()), middle, float(effects.mean.std()), beyond, excludes))
        intervals = zip(effects.low.tolist(), effects.high.tolist(), strict=True)
        conclusions.append((*key, *decision_shares(intervals, region)))
    units = NUMBERS
    if options.preset == "calibrated":
        units = splits[0].units
    unit = units.difference
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
                    *columns, Column("mean", unit), Column("middle", unit),
                    Column("sd", units.spread),
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
        warnings=(
            *(
                f"{arms.label}, {arms.effect}: no task has more than one subsample, so all slices are identical; run "
                "more subsamples before you interpret the spread of the slices"
                for arms in splits
                if arms.difference.shape[2] == 1
            ),
            *warn_of_shared_draws(results),
        ),
    )  # fmt: skip


def _fit(arms: PairedArms, options: Meta) -> SliceEffects:
    rng = np.random.default_rng(options.seed)
    slices = list(draw_slices(arms, options.num_slices, rng))
    if options.preset == "calibrated":
        return fit_difference_slices(slices, options.difference_priors, options.draws, options.level, rng)
    return fit_count_slices(slices, options.preset, options.count_priors, options.level)
