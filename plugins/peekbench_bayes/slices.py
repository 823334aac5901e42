"""What an analysis of one subsample per task and model would have concluded: refits on many random slices.

The binomial models are fitted to all slices together, by the nested Laplace approximation of `laplace`, with fewer
points than a single fit has: the bias depends little on how the standard deviations are integrated out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peekbench_bayes.arrays import Arms
from peekbench_bayes.calibrated import WARM_UP
from peekbench_bayes.counts import lay_rows
from peekbench_bayes.gaussian import Cells, sample, summarize_cells
from peekbench_bayes.laplace import Mode, Rows, differentiate, find_mode, offsets_of

if TYPE_CHECKING:
    import numpy as np

    from peekbench.records import FloatArray
    from peekbench_bayes.model import CountPriors, DifferencePriors, Preset

AT_A_TIME = 10  # slices, so that the arrays stay in the processor's cache
CHAINS_AT_A_TIME = 50
SLICE_WARM_UP = 20  # with one subsample of each cell the widths have settled after ten
FIRST_ROUNDS = 8  # of Newton's method for the standard deviations
ROUNDS = 2
STEP = 3**0.5  # in posterior standard deviations: weights by density there are near those of Gauss and Hermite
LARGEST = 1.0  # step of a log standard deviation


@dataclass(frozen=True, slots=True)
class Effects:
    """One effect as each slice has it; all of shape (n_slices,)."""

    mean: FloatArray
    """Posterior mean."""
    low: FloatArray
    high: FloatArray


def take_slices(arms: Arms, number: int, rng: np.random.Generator) -> Iterator[Arms]:
    """Keep one random subsample of each task, for each model on its own.

    What model i keeps stands at position i: the models no longer share subsamples.
    """
    import numpy as np

    models = np.arange(len(arms.models))
    for _ in range(number):
        order = np.where(np.isfinite(arms.difference), rng.random(arms.difference.shape), -1.0)
        kept = order.argmax(axis=2)[..., None]
        scores = []
        for arm in (arms.control, arms.treatment):
            alone = np.full((*arm.shape[:2], len(models)), np.nan)
            alone[models, :, models] = np.take_along_axis(arm, kept, axis=2)[..., 0]
            scores.append(alone)
        yield replace(arms, control=scores[0], treatment=scores[1])


def fit_difference_slices(
    slices: Sequence[Arms], priors: DifferencePriors, draws: int, level: float, rng: np.random.Generator
) -> Effects:
    """The model `calibrated`: average effect over these tasks and models, each slice a chain of the Gibbs sampler.

    Given the variances, that average is normal around the observed one. So its posterior is a mixture of normals with
    one center, of which the draws give the widths: the mean is exact, and 60 draws do for an interval what 300 draws of
    the average itself would.
    """
    import numpy as np

    parts = []
    for at in range(0, len(slices), CHAINS_AT_A_TIME):
        cells = summarize_cells(np.stack([one.difference for one in slices[at : at + CHAINS_AT_A_TIME]]))
        there = cells.count > 0
        number = there.sum(axis=(1, 2))
        states = itertools.islice(sample(cells, priors, SLICE_WARM_UP + draws, rng), SLICE_WARM_UP, None)
        of_means = (np.where(there, state.variance / np.maximum(cells.count, 1), 0.0) for state in states)
        sds = np.sqrt(np.array([variance.sum(axis=(1, 2)) for variance in of_means])).T / number[:, None]
        half = mixture_quantile(np.full(sds.shape, 1 / draws), np.zeros(sds.shape), sds, (1 + level) / 2)
        center = cells.mean.sum(axis=(1, 2)) / number
        parts.append(Effects(center, center - half, center + half))
    return _join(parts)


def draw_averages(cells: Cells, priors: DifferencePriors, draws: int, rng: np.random.Generator) -> FloatArray:
    """The model `calibrated`: draws of the average effect over these tasks and models: (draws, n_chains)."""
    import numpy as np

    states = itertools.islice(sample(cells, priors, WARM_UP + draws, rng), WARM_UP, None)
    return np.array([np.nanmean(state.alone, axis=(1, 2)) for state in states])


def fit_count_slices(slices: Sequence[Arms], preset: Preset, priors: CountPriors, level: float) -> Effects:
    """A binomial model: effect on the log-odds."""
    import numpy as np

    laid = [lay_rows(one, preset, priors) for one in slices]
    start = np.log([[0.5 * min(scale, 1.0) for scale in laid[0].scales]])
    start = _climb(_stack(laid[:1]), start, FIRST_ROUNDS).log_sd  # near which the others are
    return _join([_fit(_stack(laid[at : at + AT_A_TIME]), start, level) for at in range(0, len(laid), AT_A_TIME)])


def _join(parts: Sequence[Effects]) -> Effects:
    import numpy as np

    return Effects(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("mean", "low", "high")))


def _stack(laid: Sequence[Rows]) -> Rows:
    """Data sets of one design as one, along a new first axis of the counts."""
    import numpy as np

    return replace(
        laid[0], right=np.stack([rows.right for rows in laid]), trials=np.stack([rows.trials for rows in laid])
    )


@dataclass(frozen=True, slots=True)
class Peaks:
    """Where the posterior densities of the log standard deviations are highest, one for each data set."""

    log_sd: FloatArray
    """(n_data_sets, n_sds)"""
    axes: FloatArray
    """Columns are the principal axes, as long as posterior standard deviations: (n_data_sets, n_sds, n_sds)."""
    mode: Mode
    """Of the effects, near there."""


def _climb(rows: Rows, log_sd: FloatArray, rounds: int) -> Peaks:
    """Newton's method for the log standard deviations, for data sets along the first axis of the counts."""
    import numpy as np

    number, size = log_sd.shape
    offsets = offsets_of(size)
    around = _repeat(rows, len(offsets))
    mode: Mode | None = None
    for _ in range(rounds):
        found = find_mode(around, (log_sd[:, None] + offsets).reshape(-1, size), mode)
        gradient, hessian = differentiate(found.log_density.reshape(number, -1), size)
        mode = found.pick(np.arange(0, len(found.log_density), len(offsets)))
        values, vectors = np.linalg.eigh(-hessian)
        values = np.maximum(values, 0.1)
        step = (vectors @ ((np.swapaxes(vectors, 1, 2) @ gradient[..., None]) / values[..., None]))[..., 0]
        log_sd = log_sd + step * np.minimum(1.0, LARGEST / np.abs(step).max(axis=1, keepdims=True))
    assert mode is not None
    return Peaks(log_sd, vectors / np.sqrt(values)[:, None], mode)


def _fit(rows: Rows, start: FloatArray, level: float) -> Effects:
    """For data sets along the first axis of the counts."""
    import numpy as np

    number, size = len(rows.right), start.shape[1]
    peaks = _climb(rows, np.repeat(start, number, axis=0), ROUNDS)
    points = STEP * np.concatenate([np.zeros((1, size)), np.eye(size), -np.eye(size)])
    log_sd = peaks.log_sd[:, None] + points @ np.swapaxes(peaks.axes, 1, 2)
    found = find_mode(_repeat(rows, len(points)), log_sd.reshape(-1, size), peaks.mode)
    log_density = found.log_density.reshape(number, -1)
    chances = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    means = found.top[:, -1].reshape(number, -1)
    sds = np.sqrt(np.linalg.inv(found.top_precision)[:, -1, -1]).reshape(number, -1)
    low, high = (mixture_quantile(chances, means, sds, q) for q in ((1 - level) / 2, (1 + level) / 2))
    return Effects((chances * means).sum(axis=1), low, high)


def _repeat(rows: Rows, times: int) -> Rows:
    """Each data set so many times in a row."""
    import numpy as np

    return replace(rows, right=np.repeat(rows.right, times, axis=0), trials=np.repeat(rows.trials, times, axis=0))


def mixture_quantile(chances: FloatArray, means: FloatArray, sds: FloatArray, q: float) -> FloatArray:
    """Quantiles of mixtures of normals, shape (n_mixtures, n_parts), by bisection: (n_mixtures,)."""
    from scipy.special import ndtr

    low, high = (means - 8 * sds).min(axis=1), (means + 8 * sds).max(axis=1)
    for _ in range(50):
        middle = (low + high) / 2
        below = (chances * ndtr((middle[:, None] - means) / sds)).sum(axis=1) < q
        low[below], high[~below] = middle[below], middle[~below]
    quantile: FloatArray = (low + high) / 2
    return quantile
