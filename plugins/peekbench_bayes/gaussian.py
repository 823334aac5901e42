"""The model `calibrated`: a hierarchical Gaussian model of the paired differences, by blocked Gibbs sampling.

For model i, task j and subsample k, with d = score of treatment - score of control:

    d_ijk     ~ Normal(theta_ij, sigma_ij)
    theta_ij  = mu_i + u_j + w_ij      u_j ~ Normal(0, tau_task)   w_ij ~ Normal(0, tau_cell), none with one model
    sigma_ij^2 ~ ScaledInvChi^2(df, s_i^2)    s_i^2 ~ Gamma(1, rate 1 / residual_sd^2)
    mu_i      = m + delta_i            m ~ Normal(0, mean_sd)      delta_i ~ Normal(0, model_sd)
    tau_task, tau_cell ~ HalfNormal

The average over the tasks at hand is taken of effects that are not shrunk (tau infinite, the same residual variances):
it needs no assumption on how tasks resemble each other, and intervals of averages of shrunk effects turn out too wide
where the tasks do not differ (docs/statistics.md has the figures).

Everything is conjugate but the two standard deviations tau, which are drawn from their conditional on a fine grid, the
effects u and w integrated out. So the draws hardly depend on each other, and a few hundred suffice. All arrays have a
leading axis for chains; replicated data sets may be chains as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from peekbench.records import FloatArray
    from peekbench_bayes.model import DifferencePriors

GRID = 40  # values of tau; neighbors differ by a quarter, and a draw is spread over the cell
SPAN = (1e-3, 4.0)  # of the grid, in units of the prior's scale
TINY = 1e-8  # added to variances, so that differences that are all the same do not run away


@dataclass(frozen=True, slots=True)
class Cells:
    """Sufficient statistics; shape (n_chains, n_models, n_tasks)."""

    count: FloatArray
    mean: FloatArray
    """0 where a cell has no subsample."""
    squares: FloatArray
    """Sum of squared deviations from the cell's mean."""


@dataclass(frozen=True, slots=True)
class State:
    """One draw of every chain."""

    theta: FloatArray
    """Effects, shrunk: (n_chains, n_models, n_tasks)."""
    mu: FloatArray
    """(n_chains, n_models)"""
    alone: FloatArray
    """Effects, not shrunk, for averages over just these models and tasks: as theta."""
    variance: FloatArray
    """Of single differences, (n_chains, n_models, n_tasks)."""
    tau_task: FloatArray
    """(n_chains,)"""
    tau_cell: FloatArray
    """(n_chains,)"""


def summarize_cells(differences: FloatArray) -> Cells:
    """Of differences of shape (n_chains, n_models, n_tasks, n_subsamples), NaN where there is none."""
    import numpy as np

    there = np.isfinite(differences)
    count = there.sum(axis=-1).astype(float)
    values = np.where(there, differences, 0.0)
    mean = values.sum(axis=-1) / np.maximum(count, 1)
    squares = (np.where(there, values - mean[..., None], 0.0) ** 2).sum(axis=-1)
    return Cells(count, mean, squares)


def sample(cells: Cells, priors: DifferencePriors, steps: int, rng: np.random.Generator) -> Iterator[State]:
    """`steps` draws of every chain, the first of them not yet from the posterior."""
    import numpy as np

    chains, models, tasks = cells.count.shape
    count, mean = cells.count, cells.mean
    df = priors.residual_df
    mu: FloatArray = np.zeros((chains, models))
    tau_cell = np.full(chains, priors.cell_sd / 10 if models > 1 else 0.0)
    variance = (cells.squares + df * priors.residual_sd**2 / 4) / (count + df) + TINY
    between = np.full((models, models), priors.mean_sd**2) + np.eye(models) * (priors.model_sd**2 if models > 1 else 0)
    prior_precision = np.linalg.inv(between)
    grid = np.geomspace(*SPAN, GRID)
    for _ in range(steps):
        precision = count / variance  # of a cell's mean
        rest = mean - mu[..., None]
        tau_task = _draw_tau_task(rest, _marginal(precision, tau_cell), priors.task_sd, grid, rng)
        if models > 1:
            tau_cell = _draw_tau_cell(rest, precision, tau_task, priors.cell_sd, grid, rng)
        weight = _marginal(precision, tau_cell)
        mu = _draw_mu(mean, weight, tau_task, prior_precision, rng)
        rest = mean - mu[..., None]
        # u given mu, with w integrated out; then w given both.
        task_precision = weight.sum(axis=1) + 1 / tau_task[:, None] ** 2
        u = (weight * rest).sum(axis=1) / task_precision + _normal(rng, (chains, tasks)) / np.sqrt(task_precision)
        theta = mu[..., None] + u[:, None, :]
        if models > 1:
            cell_precision = precision + 1 / tau_cell[:, None, None] ** 2
            w = precision * (mean - theta) / cell_precision
            theta = theta + w + _normal(rng, theta.shape) / np.sqrt(cell_precision)
        scale = rng.gamma(
            1 + tasks * df / 2, 1 / (1 / priors.residual_sd**2 + df / 2 * (1 / variance).sum(axis=2))
        )  # the prior's Gamma(1) and a Gamma likelihood of each task
        total = df * scale[..., None] + cells.squares + count * (mean - theta) ** 2
        variance = total / 2 / rng.standard_gamma((df + count) / 2) + TINY
        yield State(theta, mu, _alone(cells, variance, rng), variance, tau_task, tau_cell)


def _alone(cells: Cells, variance: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Effects of the cells, each judged by its own subsamples; NaN where it has none."""
    import numpy as np

    there = cells.count > 0
    error = np.sqrt(variance / np.maximum(cells.count, 1))
    return np.where(there, cells.mean + error * _normal(rng, error.shape), np.nan)


def over_such_tasks(
    cells: Cells, alone: FloatArray, tau_task: FloatArray, tau_cell: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Draws of the mean effect over tasks of which these are a sample, the models given; shape (n_chains, ...).

    Given the standard deviations, it is normal around the average of these tasks, every task weighing alike. `mu`
    weighs stable tasks more, and lies elsewhere where effects go with noise.

    Parameters
    ----------
    alone
        As in `State`, with any axes between the first and the last two; `tau_task` and `tau_cell` have the others.
    """
    import numpy as np

    there = cells.count[0] > 0
    number = there.sum()
    spread = tau_task**2 * ((there.sum(axis=0) / number) ** 2).sum() + tau_cell**2 / number
    drawn: FloatArray = np.nanmean(alone, axis=(-2, -1)) + np.sqrt(spread) * _normal(rng, spread.shape)
    return drawn


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return rng.standard_normal(shape)


def _marginal(precision: FloatArray, tau_cell: FloatArray) -> FloatArray:
    """Precision of cell means around mu + u: 1 / (variance of the mean + tau_cell^2), 0 for an empty cell."""
    return precision / (1 + precision * tau_cell[:, None, None] ** 2)


def _draw_on_grid(log_density: FloatArray, grid: FloatArray, scale: float, rng: np.random.Generator) -> FloatArray:
    """One value a chain, given the log likelihood of shape (n_chains, GRID) and a HalfNormal(scale) prior."""
    import numpy as np

    log_density = log_density - grid**2 / (2 * scale**2) + np.log(grid)  # the cells are wider to the right
    chances = np.exp(log_density - log_density.max(axis=1, keepdims=True)).cumsum(axis=1)
    at = (rng.random((len(chances), 1)) * chances[:, -1:] > chances).sum(axis=1)
    ratio = grid[1] / grid[0]
    drawn: FloatArray = grid[at] * ratio ** (rng.random(len(at)) - 0.5)
    return drawn


def _draw_tau_task(
    rest: FloatArray, weight: FloatArray, scale: float, grid: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Given mu and tau_cell, u and w integrated out; `grid` is in units of the prior's scale."""
    import numpy as np

    grid = scale * grid
    total, pull = weight.sum(axis=1)[:, None, :], (weight * rest).sum(axis=1)[:, None, :]
    square = grid[:, None] ** 2
    inflated = 1 + square * total  # (n_chains, GRID, n_tasks)
    log_likelihood = 0.5 * (square * pull**2 / inflated - np.log(inflated)).sum(axis=2)
    return _draw_on_grid(log_likelihood, grid, scale, rng)


def _draw_tau_cell(
    rest: FloatArray,
    precision: FloatArray,
    tau_task: FloatArray,
    scale: float,
    grid: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Given mu and tau_task, u and w integrated out; `grid` is in units of the prior's scale."""
    import numpy as np

    grid = scale * grid
    shape = len(precision), len(grid), precision.shape[2]
    total, pull, around, logs = (np.zeros(shape) for _ in range(4))
    for model in range(precision.shape[1]):  # there are few; sums over an axis that short are slow
        alone, off = precision[:, model, None], rest[:, model, None]
        inflated = 1 + alone * grid[:, None] ** 2  # (n_chains, GRID, n_tasks)
        weight = alone / inflated
        total += weight
        weight *= off
        pull += weight
        weight *= off
        around += weight
        logs += np.log(inflated)
    square = tau_task[:, None, None] ** 2
    shared = 1 + square * total
    around -= square * pull**2 / shared
    log_likelihood = -0.5 * (logs + np.log(shared) + around).sum(axis=2)
    return _draw_on_grid(log_likelihood, grid, scale, rng)


def _draw_mu(
    mean: FloatArray, weight: FloatArray, tau_task: FloatArray, prior_precision: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Given the variances, u and w integrated out."""
    import numpy as np

    square = tau_task[:, None] ** 2
    shared = square / (1 + square * weight.sum(axis=1))  # (n_chains, n_tasks)
    models = mean.shape[1]
    precision = prior_precision + np.eye(models) * weight.sum(axis=2)[:, :, None]
    precision = precision - np.einsum("cij,chj,cj->cih", weight, weight, shared)
    pull = (weight * (mean - (shared * (weight * mean).sum(axis=1))[:, None, :])).sum(axis=2)
    root = np.linalg.cholesky(precision)
    center = np.linalg.solve(precision, pull[..., None])
    spread = np.linalg.solve(np.swapaxes(root, 1, 2), _normal(rng, (*pull.shape, 1)))
    drawn: FloatArray = (center + spread)[..., 0]
    return drawn
