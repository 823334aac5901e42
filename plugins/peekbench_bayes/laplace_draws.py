"""Draws from a nested Laplace approximation, and their importance weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peekbench.records import FloatArray, IntArray
from peekbench_bayes.laplace import CountRows, Mode, log_joint, log_prior


@dataclass(frozen=True, slots=True)
class Draws:
    """Joint draws of the effects from the mixture of normal approximations."""

    point: IntArray
    """Index of the grid point of each draw: (n_draws,)."""
    top: FloatArray
    """Global effects: (n_draws, n_global)."""
    task: FloatArray
    """Task effects: (n_draws, n_tasks, n_task_effects)."""
    group: FloatArray
    """Subsample effects: (n_draws, n_tasks, n_subsamples)."""
    log_density: FloatArray
    """Log density of the effects under the approximation at their point, up to the constant that `log_joint` omits:
    (n_draws,)."""


def draw(mode: Mode, points: IntArray, rng: np.random.Generator) -> Draws:
    """Draw the effects once at each of the given grid points.

    Parameters
    ----------
    mode
        Modes on the grid.
    points
        Indices of grid points: (n_draws,).
    rng
        Random generator.

    Returns
    -------
    Draws
        One draw per point.
    """
    top, task, group = (
        rng.standard_normal((len(points), *value.shape[1:])) for value in (mode.top, mode.task, mode.group)
    )

    def scale_noise(precision: FloatArray, noise: FloatArray) -> FloatArray:
        root = np.linalg.cholesky(precision)[points]
        return np.linalg.solve(np.swapaxes(root, -1, -2), noise[..., None])[..., 0]

    top_shift = scale_noise(mode.top_precision, top)
    conditional_mean = -np.linalg.solve(mode.task_precision, mode.task_cross)[points] @ top_shift[:, None, :, None]
    task_shift = conditional_mean[..., 0] + scale_noise(mode.task_precision, task)
    tasks = task.shape[1]
    shift = np.concatenate([np.repeat(top_shift[:, None], tasks, axis=1), task_shift], axis=-1)
    precision = mode.group_precision[points]
    pull = np.empty_like(group)
    for point in np.unique(points):  # by point, to avoid a copy of the large arrays for each draw
        is_here = points == point
        pull[is_here] = np.moveaxis(mode.group_cross[point] @ np.moveaxis(shift[is_here], 0, -1), -1, 0)
    group_shift = group / np.sqrt(precision) - pull / precision
    log_density = -0.5 * ((top**2).sum(axis=1) + (task**2).sum(axis=(1, 2)) + (group**2).sum(axis=(1, 2)))
    log_density += (
        0.5
        * (
            np.linalg.slogdet(mode.top_precision)[1]
            + np.linalg.slogdet(mode.task_precision)[1].sum(axis=1)
            + np.log(mode.group_precision).sum(axis=(1, 2))
        )[points]
    )
    return Draws(
        points, mode.top[points] + top_shift, mode.task[points] + task_shift, mode.group[points] + group_shift,
        log_density,
    )  # fmt: skip


def grid_weights(mode: Mode) -> FloatArray:
    """Return the posterior probability of each grid point: (n_points,)."""
    density = np.exp(mode.log_density - mode.log_density.max())
    normalized: FloatArray = density / density.sum()
    return normalized


def log_importance_weights(rows: CountRows, mode: Mode, draws: Draws) -> FloatArray:
    """Return the log importance weights of draws against the exact joint density on the grid: (n_draws,)."""
    log_sd = mode.log_sd[draws.point]
    target = log_joint(rows, log_sd, draws.top, draws.task, draws.group) + log_prior(rows, log_sd)
    log_weights: FloatArray = target - draws.log_density - mode.log_density[draws.point]
    return log_weights
