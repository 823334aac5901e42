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
from peekbench_bayes.gaussian import sample, summarise_cells
from peekbench_bayes.laplace import STEP, Mode, Rows, differentiate, find_mode, offsets_of

if TYPE_CHECKING:
    import numpy as np

    from peekbench import FloatArray
    from peekbench_bayes.model import CountPriors, DifferencePriors, Preset

AT_A_TIME = 25  # slices, so that the arrays stay in the processor's cache
ROUNDS = 5  # of Newton's method for the standard deviations
REACH = 2  # points on either side of the mode, on all axes together
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
    """The model `calibrated`: average effect over these tasks and models, each slice a chain of the Gibbs sampler."""
    import numpy as np

    cells = summarise_cells(np.stack([one.difference for one in slices]))
    states = itertools.islice(sample(cells, priors, WARM_UP + draws, rng), WARM_UP, None)
    average = np.array([np.nanmean(state.alone, axis=(1, 2)) for state in states])
    low, high = np.quantile(average, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Effects(average.mean(axis=0), low, high)


def fit_count_slices(slices: Sequence[Arms], preset: Preset, priors: CountPriors, level: float) -> Effects:
    """A binomial model: effect on the log-odds."""
    import numpy as np

    laid = [lay_rows(one, preset, priors) for one in slices]
    parts = [
        _fit(
            replace(
                laid[0],
                right=np.stack([rows.right for rows in laid[at : at + AT_A_TIME]]),
                trials=np.stack([rows.trials for rows in laid[at : at + AT_A_TIME]]),
            ),
            level,
        )
        for at in range(0, len(laid), AT_A_TIME)
    ]
    return Effects(*(np.concatenate([getattr(part, name) for part in parts]) for name in Effects.__slots__))


def _fit(rows: Rows, level: float) -> Effects:
    """For data sets along the first axis of the counts."""
    import numpy as np

    number, size = len(rows.right), len(rows.scales)
    center = np.tile(np.log([0.5 * min(scale, 1.0) for scale in rows.scales]), (number, 1))
    mode: Mode | None = None
    offsets = offsets_of(size)
    around = _repeat(rows, len(offsets))
    for _ in range(ROUNDS):
        found = find_mode(around, (center[:, None] + offsets).reshape(-1, size), mode)
        gradient, hessian = differentiate(found.log_density.reshape(number, -1), size)
        mode = found.pick(np.arange(0, len(found.log_density), len(offsets)))
        values, vectors = np.linalg.eigh(-hessian)
        values = np.maximum(values, 0.1)
        step = (vectors @ ((np.swapaxes(vectors, 1, 2) @ gradient[..., None]) / values[..., None]))[..., 0]
        center = center + step * np.minimum(1.0, LARGEST / np.abs(step).max(axis=1, keepdims=True))
    axes = vectors / np.sqrt(values)[:, None] * STEP
    steps = range(-REACH, REACH + 1)
    points = np.array([point for point in itertools.product(steps, repeat=size) if sum(map(abs, point)) <= REACH])
    log_sd = center[:, None] + points @ np.swapaxes(axes, 1, 2)
    found = find_mode(_repeat(rows, len(points)), log_sd.reshape(-1, size), mode)
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
