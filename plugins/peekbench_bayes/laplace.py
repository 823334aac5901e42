"""Nested Laplace approximation of a binomial model with groups within groups.

The linear predictor of row r of subsample k of task j is

    eta_jkr = Z_r (global effects, effects of task j) + V_jk.

The Hessian is therefore an arrow matrix within an arrow matrix: the code eliminates the subsample effects one by one,
then the small block of each task, then the few global effects. It does so for many values of the variance parameters at
once, along the leading axis of all arrays.

References
----------
Tierney and Kadane (1986), https://doi.org/10.1080/01621459.1986.10478240
Rue, Martino and Chopin (2009), https://doi.org/10.1111/j.1467-9868.2008.00700.x
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields, replace

import numpy as np

from peekbench.records import FloatArray, IntArray

MAX_STEPS = 60
CONVERGED = 1e-6  # largest change of an effect at convergence, log-odds
STEP = 1.2  # distance between points of the grid, in posterior standard deviations
MAX_DROP = 5.0  # points whose log density is lower than the mode's by more than this are omitted
MAX_REACH = 6  # maximum number of points on either side of the mode
DIFFERENCE = 0.15  # step of numerical derivatives, on the log scale of standard deviations


@dataclass(frozen=True, slots=True)
class CountRows:
    """Counts and predictors of one data set, or of several data sets with the same design.

    Missing rows have 0 trials.
    """

    right: FloatArray
    """Right answers: (n_tasks, n_subsamples, n_rows), or (n_points, n_tasks, n_subsamples, n_rows) with one data set
    per point."""
    trials: FloatArray
    """Number of texts: same shape as `right`."""
    features: FloatArray
    """Z: (n_rows, n_global + n_task_effects)."""
    global_sd: FloatArray
    """Standard deviations of the normal priors of the global effects: (n_global,)."""
    task_groups: tuple[int, ...]
    """Index of the standard deviation of each task effect."""
    scales: tuple[float, ...]
    """Scales of the half-normal priors of the standard deviations; the last one belongs to the subsample effects."""

    @property
    def num_global(self) -> int:
        """Number of global effects."""
        return len(self.global_sd)


@dataclass(frozen=True, slots=True)
class Mode:
    """The mode of the effects' density for each of several variance parameters, and its curvature there."""

    log_sd: FloatArray
    """Logarithms of the standard deviations: (n_points, n_sds)."""
    log_density: FloatArray
    """Laplace approximation of the log posterior density of log_sd, up to a constant: (n_points,)."""
    top: FloatArray
    """Global effects: (n_points, n_global)."""
    task: FloatArray
    """Task effects: (n_points, n_tasks, n_task_effects)."""
    group: FloatArray
    """Subsample effects: (n_points, n_tasks, n_subsamples)."""
    top_precision: FloatArray
    """Precision of global effects, with all others integrated out: (n_points, n_global, n_global)."""
    task_precision: FloatArray
    """Precision of a task's effects given the global ones: (n_points, n_tasks, n_task_effects, n_task_effects)."""
    task_cross: FloatArray
    """Cross terms of task and global effects: (n_points, n_tasks, n_task_effects, n_global)."""
    group_precision: FloatArray
    """Precision of a subsample effect given all others: (n_points, n_tasks, n_subsamples)."""
    group_cross: FloatArray
    """Cross terms of subsample and other effects: (n_points, n_tasks, n_subsamples, n_global + n_task_effects)."""
    converged: bool

    def at_points(self, points: IntArray) -> Mode:
        """Return the modes at some of the points."""
        arrays = [field.name for field in fields(self) if field.name != "converged"]
        return replace(self, **{name: getattr(self, name)[points] for name in arrays})


def approximate(rows: CountRows) -> tuple[Mode, FloatArray]:
    """Approximate the posterior on a grid of log standard deviations.

    Parameters
    ----------
    rows
        Counts and predictors of one data set.

    Returns
    -------
    mode
        Modes of the effects at the points of the grid.
    axes
        Axes of the grid: (n_sds, n_sds). Each column is the step from one point to the next.
    """
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


def _expand(rows: CountRows, center: FloatArray, start: Mode | None) -> tuple[Mode, FloatArray, FloatArray]:
    """Return the mode at `center`, and gradient and Hessian of the log density of log_sd by finite differences."""
    around = find_mode(rows, center + difference_offsets(len(center)), start)
    gradient, hessian = differentiate(around.log_density[None], len(center))
    return around.at_points(np.array([0])), gradient[0], hessian[0]


def difference_offsets(size: int) -> FloatArray:
    """Return the points at which `differentiate` needs a function of `size` variables: (n_offsets, size)."""
    units = np.eye(size)
    mixed = [units[i] + units[j] for i, j in itertools.combinations(range(size), 2)]
    return DIFFERENCE * np.array([np.zeros(size), *units, *-units, *mixed])


def differentiate(values: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
    """Differentiate functions numerically.

    Parameters
    ----------
    values
        Values of n functions at `difference_offsets`: (n, n_offsets).
    size
        Number of variables.

    Returns
    -------
    gradient
        Array of shape (n, size).
    hessian
        Array of shape (n, size, size).
    """
    value, up, down = values[:, :1], values[:, 1 : size + 1], values[:, size + 1 : 2 * size + 1]
    gradient = (up - down) / (2 * DIFFERENCE)
    hessian = np.eye(size) * ((up - 2 * value + down) / DIFFERENCE**2)[:, None]
    for (i, j), both in zip(itertools.combinations(range(size), 2), values[:, 2 * size + 1 :].T, strict=True):
        hessian[:, i, j] = hessian[:, j, i] = (both - up[:, i] - up[:, j] + value[:, 0]) / DIFFERENCE**2
    return gradient, hessian


def _on_grid(rows: CountRows, center: FloatArray, axes: FloatArray, start: Mode) -> Mode:
    """Return the modes on a lattice around the mode: along each axis up to a low density, without the corners."""
    size = len(center)
    steps = [step for step in range(-MAX_REACH, MAX_REACH + 1) if step]
    along = [(axis, step) for axis in range(size) for step in steps]
    on_axes = find_mode(rows, np.array([center + axes[:, axis] * step for axis, step in along]), start)
    drops: list[dict[int, float]] = [{0: 0.0} for _ in range(size)]
    for (axis, step), value in zip(along, start.log_density[0] - on_axes.log_density, strict=True):
        drops[axis][step] = float(value)
    points = [
        point
        for point in itertools.product(*(sorted(drop) for drop in drops))
        if sum(drop[step] for drop, step in zip(drops, point, strict=True)) < MAX_DROP
    ]
    return find_mode(rows, center + np.array(points) @ axes.T, start)


def find_mode(rows: CountRows, log_sd: FloatArray, start: Mode | None = None) -> Mode:
    """Find the modes of the effects by Newton's method, for all points together.

    Parameters
    ----------
    rows
        Counts and predictors.
    log_sd
        Points: (n_points, n_sds).
    start
        Modes to start from; each one is the start of an equal number of neighboring points. By default 0.

    Returns
    -------
    Mode
        The modes and their curvature.
    """
    points, (tasks, subsamples) = len(log_sd), rows.right.shape[-3:-1]
    num_global = rows.num_global
    upper, lower = rows.features[:, :num_global], rows.features[:, num_global:]
    top_prior = 1 / rows.global_sd**2
    task_prior = np.exp(-2 * log_sd[:, list(rows.task_groups)])  # (n_points, n_task_effects)
    group_prior = np.exp(-2 * log_sd[:, -1])[:, None, None]
    shapes = (num_global,), (tasks, lower.shape[1]), (tasks, subsamples)
    begin = [np.zeros((1, *shape)) for shape in shapes] if start is None else [start.top, start.task, start.group]
    top, task, group = (np.repeat(value, points // len(value), axis=0) for value in begin)
    converged = False
    for _ in range(MAX_STEPS):
        eta = (top @ upper.T)[:, None, None] + (task @ lower.T)[:, :, None] + group[..., None]
        probability = 1 / (1 + np.exp(-eta))
        expected = rows.trials * probability
        weight = expected * (1 - probability)
        residual = rows.right - expected
        group_precision = weight.sum(axis=-1) + group_prior
        group_pull = residual.sum(axis=-1) - group * group_prior
        cross = weight @ rows.features
        scaled = cross / group_precision[..., None]
        schur = np.einsum("pjr,ra,rb->pjab", weight.sum(axis=2), rows.features, rows.features, optimize=True)
        schur -= np.swapaxes(scaled, 2, 3) @ cross
        pull = residual.sum(axis=2) @ rows.features - (scaled * group_pull[..., None]).sum(axis=2)
        task_precision = schur[..., num_global:, num_global:] + np.eye(lower.shape[1]) * task_prior[:, None, None]
        task_cross = schur[..., num_global:, :num_global]
        task_pull = pull[..., num_global:] - task * task_prior[:, None]
        eliminated = np.linalg.solve(task_precision, np.concatenate([task_cross, task_pull[..., None]], axis=-1))
        across = np.swapaxes(task_cross, 2, 3)
        top_precision = (schur[..., :num_global, :num_global] - across @ eliminated[..., :-1]).sum(axis=1) + np.diag(
            top_prior
        )
        top_pull = (pull[..., :num_global] - (across @ eliminated[..., -1:])[..., 0]).sum(axis=1) - top * top_prior
        if converged:  # the curvature now belongs to the end of the last step
            break
        top_step = np.linalg.solve(top_precision, top_pull[..., None])
        task_step = eliminated[..., -1] - (eliminated[..., :-1] @ top_step[:, None])[..., 0]
        shift = np.concatenate(
            [np.broadcast_to(top_step[:, None, :, 0], (points, tasks, num_global)), task_step], axis=-1
        )
        group_step = (group_pull - (cross @ shift[..., None])[..., 0]) / group_precision
        largest = max(float(np.abs(step).max()) for step in (shift, group_step))
        damp = min(1.0, 2.0 / largest) if largest > 0 else 1.0
        top, task, group = top + damp * top_step[..., 0], task + damp * task_step, group + damp * group_step
        converged = largest < CONVERGED**0.5  # the error of Newton's next step is the square of this one
    density = log_joint(rows, log_sd, top, task, group) + log_prior(rows, log_sd)
    density -= 0.5 * (
        np.linalg.slogdet(top_precision)[1]
        + np.linalg.slogdet(task_precision)[1].sum(axis=1)
        + np.log(group_precision).sum(axis=(1, 2))
    )
    return Mode(
        log_sd, density, top, task, group, top_precision, task_precision, task_cross, group_precision, cross, converged
    )


def log_joint(rows: CountRows, log_sd: FloatArray, top: FloatArray, task: FloatArray, group: FloatArray) -> FloatArray:
    """Return the log density of counts and effects given the standard deviations, up to a constant: (n_points,)."""
    num_global = rows.num_global
    fixed = (top @ rows.features[:, :num_global].T)[:, None] + task @ rows.features[:, num_global:].T
    eta = fixed[:, :, None] + group[..., None]
    fit = (rows.right * eta - rows.trials * np.log1p(np.exp(eta))).sum(axis=(1, 2, 3))
    task_sd = log_sd[:, list(rows.task_groups)]
    prior = -0.5 * ((top / rows.global_sd) ** 2).sum(axis=1)
    prior -= (0.5 * np.exp(-2 * task_sd) * (task**2).sum(axis=1) + task.shape[1] * task_sd).sum(axis=1)
    prior -= 0.5 * np.exp(-2 * log_sd[:, -1]) * (group**2).sum(axis=(1, 2))
    joint: FloatArray = fit + prior - group[0].size * log_sd[:, -1]
    return joint


def log_prior(rows: CountRows, log_sd: FloatArray) -> FloatArray:
    """Return the log prior density of the logarithms of half-normal standard deviations: (n_points,)."""
    prior: FloatArray = (log_sd - 0.5 * np.exp(2 * log_sd) / np.array(rows.scales) ** 2).sum(axis=1)
    return prior


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
