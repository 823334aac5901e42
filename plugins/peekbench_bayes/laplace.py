"""Nested Laplace approximation of a binomial model with groups within groups.

The linear predictor of row r of subsample k of task j is

    eta_jkr = Z_r (global effects, effects of task j) + V_jk,

so that the Hessian is an arrow within an arrow: subsample effects are eliminated one by one, then each task's small
block, then the few global effects. Everything is done for many values of the variance parameters at once, the leading
axis of all arrays. Sources: Tierney and Kadane (1986), https://doi.org/10.1080/01621459.1986.10478240; Rue, Martino and
Chopin (2009), https://doi.org/10.1111/j.1467-9868.2008.00700.x.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from peekbench.records import FloatArray, IntArray

MAX_STEPS = 60
CONVERGED = 1e-6  # largest change of an effect, log-odds
STEP = 1.2  # between the points of the grid, in posterior standard deviations
DROP = 5.0  # of the log density, beyond which points are left out
REACH = 6  # most points on either side of the mode
DIFFERENCE = 0.15  # for numerical derivatives, on the log scale of standard deviations


@dataclass(frozen=True, slots=True)
class Rows:
    """Counts and predictors; rows that do not exist have 0 trials. Several data sets of one design may be in a row."""

    right: FloatArray
    """(n_tasks, n_subsamples, n_rows), or with one data set for each point, (n_points, n_tasks, ...)."""
    trials: FloatArray
    """As `right`."""
    features: FloatArray
    """Z: (n_rows, n_global + n_task_effects)"""
    global_sd: FloatArray
    """Of the normal priors of the global effects."""
    task_groups: tuple[int, ...]
    """For each effect of a task, which standard deviation it has."""
    scales: tuple[float, ...]
    """Of the half-normal priors of the standard deviations; the last is that of subsample effects."""

    @property
    def num_global(self) -> int:
        return len(self.global_sd)


@dataclass(frozen=True, slots=True)
class Mode:
    """Where the effects' density is highest for each of several variance parameters, and its curvature there."""

    log_sd: FloatArray
    """(n_points, n_sds)"""
    log_density: FloatArray
    """Laplace's approximation to the log posterior density of log_sd, up to a constant: (n_points,)."""
    top: FloatArray
    """Global effects (n_points, n_global)."""
    task: FloatArray
    """(n_points, n_tasks, n_task_effects)"""
    group: FloatArray
    """Subsample effects (n_points, n_tasks, n_subsamples)."""
    top_precision: FloatArray
    """Of global effects, all others integrated out: (n_points, n_global, n_global)."""
    task_precision: FloatArray
    """Of a task's effects given the global ones: (n_points, n_tasks, n_task_effects, n_task_effects)."""
    task_cross: FloatArray
    """(n_points, n_tasks, n_task_effects, n_global)"""
    group_precision: FloatArray
    """Of a subsample effect given all others: as `group`."""
    group_cross: FloatArray
    """(n_points, n_tasks, n_subsamples, n_global + n_task_effects)"""
    converged: bool

    def pick(self, points: IntArray) -> Mode:
        """Those of some points."""
        arrays = [one.name for one in fields(self) if one.name != "converged"]
        return replace(self, **{name: getattr(self, name)[points] for name in arrays})


def approximate(rows: Rows) -> tuple[Mode, FloatArray]:
    """The effects' modes on a grid of log standard deviations that covers their posterior, and the grid's axes.

    A column of the axes, shape (n_sds, n_sds), is the step from a point to the next.
    """
    import numpy as np

    center = np.log(np.array([0.5 * min(scale, 1.0) for scale in rows.scales]))
    start: Mode | None = None
    for _ in range(MAX_STEPS):
        start, gradient, hessian = _expand(rows, center, start)
        values, vectors = np.linalg.eigh(-hessian)
        values = np.maximum(values, 0.1)
        step = vectors @ ((vectors.T @ gradient) / values)
        center = center + step * min(1.0, 1.0 / float(np.abs(step).max()))
        if np.abs(step).max() < 0.02:
            break
    start, _, hessian = _expand(rows, center, start)
    values, vectors = np.linalg.eigh(-hessian)
    axes = vectors / np.sqrt(np.maximum(values, 0.1)) * STEP
    return _on_grid(rows, center, axes, start), axes


def _expand(rows: Rows, center: FloatArray, start: Mode | None) -> tuple[Mode, FloatArray, FloatArray]:
    """Value, gradient and Hessian of the log density of log_sd, by differences."""
    import numpy as np

    found = find_mode(rows, center + offsets_of(len(center)), start)
    gradient, hessian = differentiate(found.log_density[None], len(center))
    return found.pick(np.array([0])), gradient[0], hessian[0]


def offsets_of(size: int) -> FloatArray:
    """Where a function of `size` variables is needed for `differentiate`: (n_offsets, size)."""
    import numpy as np

    units = np.eye(size)
    mixed = [units[i] + units[j] for i, j in itertools.combinations(range(size), 2)]
    return DIFFERENCE * np.array([np.zeros(size), *units, *-units, *mixed])


def differentiate(values: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
    """Gradients (n, size) and Hessians (n, size, size) from values at `offsets_of`, (n, n_offsets)."""
    import numpy as np

    value, up, down = values[:, :1], values[:, 1 : size + 1], values[:, size + 1 : 2 * size + 1]
    gradient = (up - down) / (2 * DIFFERENCE)
    hessian = np.eye(size) * ((up - 2 * value + down) / DIFFERENCE**2)[:, None]
    for (i, j), both in zip(itertools.combinations(range(size), 2), values[:, 2 * size + 1 :].T, strict=True):
        hessian[:, i, j] = hessian[:, j, i] = (both - up[:, i] - up[:, j] + value[:, 0]) / DIFFERENCE**2
    return gradient, hessian


def _on_grid(rows: Rows, center: FloatArray, axes: FloatArray, start: Mode) -> Mode:
    """Points on a lattice around the mode: as far along each axis as the density reaches, corners left out."""
    import numpy as np

    size = len(center)
    steps = [step for step in range(-REACH, REACH + 1) if step]
    along = [(axis, step) for axis in range(size) for step in steps]
    on_axes = find_mode(rows, np.array([center + axes[:, axis] * step for axis, step in along]), start)
    drops: list[dict[int, float]] = [{0: 0.0} for _ in range(size)]
    for (axis, step), value in zip(along, start.log_density[0] - on_axes.log_density, strict=True):
        drops[axis][step] = float(value)
    wanted = [
        point
        for point in itertools.product(*(sorted(drop) for drop in drops))
        if sum(drop[step] for drop, step in zip(drops, point, strict=True)) < DROP
    ]
    return find_mode(rows, center + np.array(wanted) @ axes.T, start)


def find_mode(rows: Rows, log_sd: FloatArray, start: Mode | None = None) -> Mode:
    """Newton's method, for all points (n_points, n_sds) together.

    It starts from the modes of `start`, each of which is for an equal number of neighboring points.
    """
    import numpy as np

    points, (tasks, subsamples) = len(log_sd), rows.right.shape[-3:-1]
    number = rows.num_global
    upper, lower = rows.features[:, :number], rows.features[:, number:]
    top_prior = 1 / rows.global_sd**2
    task_prior = np.exp(-2 * log_sd[:, list(rows.task_groups)])  # (n_points, n_task_effects)
    group_prior = np.exp(-2 * log_sd[:, -1])[:, None, None]
    shapes = (number,), (tasks, lower.shape[1]), (tasks, subsamples)
    begin = [np.zeros((1, *shape)) for shape in shapes] if start is None else [start.top, start.task, start.group]
    top, task, group = (np.repeat(value, points // len(value), axis=0) for value in begin)
    converged = False
    for _ in range(MAX_STEPS):
        eta = (top @ upper.T)[:, None, None] + (task @ lower.T)[:, :, None] + group[..., None]
        chance = 1 / (1 + np.exp(-eta))
        expected = rows.trials * chance
        weight = expected * (1 - chance)
        residual = rows.right - expected
        group_precision = weight.sum(axis=-1) + group_prior
        group_pull = residual.sum(axis=-1) - group * group_prior
        cross = weight @ rows.features
        scaled = cross / group_precision[..., None]
        schur = np.einsum("pjr,ra,rb->pjab", weight.sum(axis=2), rows.features, rows.features, optimize=True)
        schur -= np.swapaxes(scaled, 2, 3) @ cross
        pull = residual.sum(axis=2) @ rows.features - (scaled * group_pull[..., None]).sum(axis=2)
        task_precision = schur[..., number:, number:] + np.eye(lower.shape[1]) * task_prior[:, None, None]
        task_cross = schur[..., number:, :number]
        task_pull = pull[..., number:] - task * task_prior[:, None]
        eliminated = np.linalg.solve(task_precision, np.concatenate([task_cross, task_pull[..., None]], axis=-1))
        across = np.swapaxes(task_cross, 2, 3)
        top_precision = (schur[..., :number, :number] - across @ eliminated[..., :-1]).sum(axis=1) + np.diag(top_prior)
        top_pull = (pull[..., :number] - (across @ eliminated[..., -1:])[..., 0]).sum(axis=1) - top * top_prior
        if converged:  # the curvature is now that of the last step's end
            break
        top_step = np.linalg.solve(top_precision, top_pull[..., None])
        task_step = eliminated[..., -1] - (eliminated[..., :-1] @ top_step[:, None])[..., 0]
        shift = np.concatenate([np.broadcast_to(top_step[:, None, :, 0], (points, tasks, number)), task_step], axis=-1)
        group_step = (group_pull - (cross @ shift[..., None])[..., 0]) / group_precision
        largest = max(float(np.abs(step).max()) for step in (shift, group_step))
        damp = min(1.0, 2.0 / largest) if largest > 0 else 1.0
        top, task, group = top + damp * top_step[..., 0], task + damp * task_step, group + damp * group_step
        converged = largest < CONVERGED**0.5  # Newton's next error is the square of this one
    density = log_joint(rows, log_sd, top, task, group) + _log_prior(rows, log_sd)
    density -= 0.5 * (
        np.linalg.slogdet(top_precision)[1]
        + np.linalg.slogdet(task_precision)[1].sum(axis=1)
        + np.log(group_precision).sum(axis=(1, 2))
    )
    return Mode(
        log_sd, density, top, task, group, top_precision, task_precision, task_cross, group_precision, cross, converged
    )


def log_joint(rows: Rows, log_sd: FloatArray, top: FloatArray, task: FloatArray, group: FloatArray) -> FloatArray:
    """Log density of counts and effects given the standard deviations, up to a constant: (n_points,)."""
    import numpy as np

    number = rows.num_global
    fixed = (top @ rows.features[:, :number].T)[:, None] + task @ rows.features[:, number:].T
    eta = fixed[:, :, None] + group[..., None]
    fit = (rows.right * eta - rows.trials * np.log1p(np.exp(eta))).sum(axis=(1, 2, 3))
    task_sd = log_sd[:, list(rows.task_groups)]
    prior = -0.5 * ((top / rows.global_sd) ** 2).sum(axis=1)
    prior -= (0.5 * np.exp(-2 * task_sd) * (task**2).sum(axis=1) + task.shape[1] * task_sd).sum(axis=1)
    prior -= 0.5 * np.exp(-2 * log_sd[:, -1]) * (group**2).sum(axis=(1, 2))
    joint: FloatArray = fit + prior - group[0].size * log_sd[:, -1]
    return joint


def _log_prior(rows: Rows, log_sd: FloatArray) -> FloatArray:
    """Of the logarithms of half-normal standard deviations."""
    import numpy as np

    prior: FloatArray = (log_sd - 0.5 * np.exp(2 * log_sd) / np.array(rows.scales) ** 2).sum(axis=1)
    return prior


@dataclass(frozen=True, slots=True)
class Draws:
    """Joint draws of the effects from the mixture of normal approximations."""

    point: IntArray
    """(n_draws,), of the grid."""
    top: FloatArray
    task: FloatArray
    group: FloatArray
    log_density: FloatArray
    """Of the effects, under the approximation at their point, up to the constant that `log_joint` leaves out."""


def draw(mode: Mode, points: IntArray, rng: np.random.Generator) -> Draws:
    """One draw at each of the given points."""
    import numpy as np

    top, task, group = (
        rng.standard_normal((len(points), *value.shape[1:])) for value in (mode.top, mode.task, mode.group)
    )

    def spread(precision: FloatArray, noise: FloatArray) -> FloatArray:
        root = np.linalg.cholesky(precision)[points]
        return np.linalg.solve(np.swapaxes(root, -1, -2), noise[..., None])[..., 0]

    top_shift = spread(mode.top_precision, top)
    follow = -np.linalg.solve(mode.task_precision, mode.task_cross)[points] @ top_shift[:, None, :, None]
    task_shift = follow[..., 0] + spread(mode.task_precision, task)
    tasks = task.shape[1]
    shift = np.concatenate([np.repeat(top_shift[:, None], tasks, axis=1), task_shift], axis=-1)
    precision = mode.group_precision[points]
    pull = np.empty_like(group)
    for point in np.unique(points):  # which saves a copy of its large arrays for each of its draws
        at = points == point
        pull[at] = np.moveaxis(mode.group_cross[point] @ np.moveaxis(shift[at], 0, -1), -1, 0)
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


def weights(mode: Mode) -> FloatArray:
    """Posterior probability of each point: (n_points,)."""
    import numpy as np

    chances = np.exp(mode.log_density - mode.log_density.max())
    normalized: FloatArray = chances / chances.sum()
    return normalized


def importance(rows: Rows, mode: Mode, draws: Draws) -> FloatArray:
    """Log importance weights of draws from the mixture, against the exact joint density on the grid."""
    log_sd = mode.log_sd[draws.point]
    target = log_joint(rows, log_sd, draws.top, draws.task, draws.group) + _log_prior(rows, log_sd)
    log_weights: FloatArray = target - draws.log_density - mode.log_density[draws.point]
    return log_weights
