"""The model `calibrated`: a hierarchical Gaussian model of the paired differences, sampled by blocked Gibbs.

For model i, task j and subsample k, with d = score of treatment - score of control:

    d_ijk     ~ Normal(theta_ij, sigma_ij)
    theta_ij  = mu_i + u_j + w_ij      u_j ~ Normal(0, tau_task)   w_ij ~ Normal(0, tau_cell), absent with one model
    sigma_ij^2 ~ ScaledInvChi^2(df, s_i^2)    s_i^2 ~ Gamma(1, rate 1 / residual_sd^2)
    mu_i      = m + delta_i            m ~ Normal(0, mean_sd)      delta_i ~ Normal(0, model_sd)
    tau_task, tau_cell ~ HalfNormal

The average over the observed tasks uses effects that are not shrunk (infinite tau, the same residual variances). It
therefore makes no assumption on how tasks resemble each other. Intervals of averages of shrunk effects are too wide if
the tasks do not differ (docs/statistics.md has the figures).

All conditionals are conjugate except those of the two standard deviations tau, which are drawn on a fine grid with the
effects u and w integrated out. The draws are therefore nearly independent, and a few hundred suffice. All arrays have a
leading axis for chains; replicated data sets can be chains as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from peekbench.records import FloatArray
from peekbench_bayes.options import DifferencePriors

GRID = np.geomspace(1e-3, 4.0, 40)
"""Values of tau in units of the prior's scale; neighbors differ by a quarter, and a draw is spread over its cell."""
TINY = 1e-8  # added to variances, so that identical differences do not lead to a variance of 0


@dataclass(frozen=True, slots=True)
class Cells:
    """Sufficient statistics of each model and task: arrays of shape (n_chains, n_models, n_tasks)."""

    count: FloatArray
    """Number of subsamples."""
    mean: FloatArray
    """Mean difference; 0 for cells without subsamples."""
    squares: FloatArray
    """Sum of squared deviations from the cell's mean."""


@dataclass(frozen=True, slots=True)
class State:
    """One draw of every chain."""

    theta: FloatArray
    """Shrunk effects: (n_chains, n_models, n_tasks)."""
    mu: FloatArray
    """Mean effect of each model: (n_chains, n_models)."""
    unshrunk: FloatArray
    """Effects without shrinkage, for averages over exactly these models and tasks: (n_chains, n_models, n_tasks)."""
    variance: FloatArray
    """Variance of single differences: (n_chains, n_models, n_tasks)."""
    tau_task: FloatArray
    """Standard deviation between tasks: (n_chains,)."""
    tau_cell: FloatArray
    """Standard deviation between models within a task: (n_chains,)."""


def summarize_cells(differences: FloatArray) -> Cells:
    """Return the sufficient statistics of differences.

    Parameters
    ----------
    differences
        Paired differences: (n_chains, n_models, n_tasks, n_subsamples); NaN for missing subsamples.

    Returns
    -------
    Cells
        Statistics of shape (n_chains, n_models, n_tasks).
    """
    is_present = np.isfinite(differences)
    count = is_present.sum(axis=-1).astype(float)
    values = np.where(is_present, differences, 0.0)
    mean = values.sum(axis=-1) / np.maximum(count, 1)
    squares = (np.where(is_present, values - mean[..., None], 0.0) ** 2).sum(axis=-1)
    return Cells(count, mean, squares)


def sample(cells: Cells, priors: DifferencePriors, steps: int, rng: np.random.Generator) -> Iterator[State]:
    """Sample the posterior.

    Parameters
    ----------
    cells
        Sufficient statistics of the differences.
    priors
        Priors of the model.
    steps
        Number of draws per chain.
    rng
        Random generator.

    Yields
    ------
    State
        One draw of every chain. The first draws are warm-up: discard them.
    """
    chains, models, tasks = cells.count.shape
    count, mean = cells.count, cells.mean
    df = priors.residual_df
    mu: FloatArray = np.zeros((chains, models))
    tau_cell = np.full(chains, priors.cell_sd / 10 if models > 1 else 0.0)
    variance = (cells.squares + df * priors.residual_sd**2 / 4) / (count + df) + TINY
    between = np.full((models, models), priors.mean_sd**2) + np.eye(models) * (priors.model_sd**2 if models > 1 else 0)
    prior_precision = np.linalg.inv(between)
    for _ in range(steps):
        precision = count / variance  # of a cell's mean
        residual = mean - mu[..., None]
        tau_task = _draw_tau_task(residual, _marginal_precision(precision, tau_cell), priors.task_sd, rng)
        if models > 1:
            tau_cell = _draw_tau_cell(residual, precision, tau_task, priors.cell_sd, rng)
        weight = _marginal_precision(precision, tau_cell)
        mu = _draw_mu(mean, weight, tau_task, prior_precision, rng)
        residual = mean - mu[..., None]
        # Draw u given mu, with w integrated out; then w given both.
        task_precision = weight.sum(axis=1) + 1 / tau_task[:, None] ** 2
        u = (weight * residual).sum(axis=1) / task_precision + _normal(rng, (chains, tasks)) / np.sqrt(task_precision)
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
        yield State(theta, mu, _draw_unshrunk(cells, variance, rng), variance, tau_task, tau_cell)


def _draw_unshrunk(cells: Cells, variance: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw the effect of each cell from its own subsamples; NaN for cells without subsamples."""
    is_present = cells.count > 0
    error = np.sqrt(variance / np.maximum(cells.count, 1))
    return np.where(is_present, cells.mean + error * _normal(rng, error.shape), np.nan)


def draw_population_mean(
    cells: Cells, unshrunk: FloatArray, tau_task: FloatArray, tau_cell: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Draw the mean effect over the population of tasks that these tasks are a sample of, given the models.

    Given the standard deviations, it is normal around the average of these tasks, with equal weight for every task.
    `State.mu` gives stable tasks more weight, and differs if effects are correlated with noise.

    Parameters
    ----------
    cells
        Sufficient statistics of the differences.
    unshrunk
        Effects as in `State`, with any axes between the first and the last two: (n_chains, ..., n_models, n_tasks).
    tau_task, tau_cell
        Standard deviations as in `State`: (n_chains, ...).
    rng
        Random generator.

    Returns
    -------
    array
        Draws of shape (n_chains, ...).
    """
    is_present = cells.count[0] > 0
    num_cells = is_present.sum()
    spread = tau_task**2 * ((is_present.sum(axis=0) / num_cells) ** 2).sum() + tau_cell**2 / num_cells
    drawn: FloatArray = np.nanmean(unshrunk, axis=(-2, -1)) + np.sqrt(spread) * _normal(rng, spread.shape)
    return drawn


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return rng.standard_normal(shape)


def _marginal_precision(precision: FloatArray, tau_cell: FloatArray) -> FloatArray:
    """Return the precision of cell means around mu + u: 1 / (variance of the mean + tau_cell^2); 0 for empty cells."""
    return precision / (1 + precision * tau_cell[:, None, None] ** 2)


def _draw_on_grid(log_likelihood: FloatArray, scale: float, rng: np.random.Generator) -> FloatArray:
    """Draw one standard deviation per chain, given its log likelihood on the grid and a HalfNormal(scale) prior.

    Parameters
    ----------
    log_likelihood
        Log likelihood at each value of `scale * GRID`: (n_chains, n_grid).
    scale
        Scale of the prior.
    rng
        Random generator.

    Returns
    -------
    array
        Draws of shape (n_chains,).
    """
    grid = scale * GRID
    log_density = log_likelihood - grid**2 / (2 * scale**2) + np.log(grid)  # grid cells are wider to the right
    cumulative = np.exp(log_density - log_density.max(axis=1, keepdims=True)).cumsum(axis=1)
    position = (rng.random((len(cumulative), 1)) * cumulative[:, -1:] > cumulative).sum(axis=1)
    ratio = grid[1] / grid[0]
    drawn: FloatArray = grid[position] * ratio ** (rng.random(len(position)) - 0.5)
    return drawn


def _draw_tau_task(residual: FloatArray, weight: FloatArray, scale: float, rng: np.random.Generator) -> FloatArray:
    """Draw tau_task given mu and tau_cell, with u and w integrated out."""
    total, pull = weight.sum(axis=1)[:, None, :], (weight * residual).sum(axis=1)[:, None, :]
    square = (scale * GRID)[:, None] ** 2
    inflation = 1 + square * total  # (n_chains, n_grid, n_tasks)
    log_likelihood = 0.5 * (square * pull**2 / inflation - np.log(inflation)).sum(axis=2)
    return _draw_on_grid(log_likelihood, scale, rng)


def _draw_tau_cell(
    residual: FloatArray, precision: FloatArray, tau_task: FloatArray, scale: float, rng: np.random.Generator
) -> FloatArray:
    """Draw tau_cell given mu and tau_task, with u and w integrated out."""
    grid = scale * GRID
    shape = len(precision), len(grid), precision.shape[2]
    total, pull, squares, logs = (np.zeros(shape) for _ in range(4))
    for model in range(precision.shape[1]):  # numpy is slow at sums over an axis as short as that of models
        model_precision, model_residual = precision[:, model, None], residual[:, model, None]
        inflation = 1 + model_precision * grid[:, None] ** 2  # (n_chains, n_grid, n_tasks)
        weight = model_precision / inflation
        total += weight
        weight *= model_residual
        pull += weight
        weight *= model_residual
        squares += weight
        logs += np.log(inflation)
    square = tau_task[:, None, None] ** 2
    task_inflation = 1 + square * total
    squares -= square * pull**2 / task_inflation
    log_likelihood = -0.5 * (logs + np.log(task_inflation) + squares).sum(axis=2)
    return _draw_on_grid(log_likelihood, scale, rng)


def _draw_mu(
    mean: FloatArray, weight: FloatArray, tau_task: FloatArray, prior_precision: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Draw mu given the variances, with u and w integrated out."""
    square = tau_task[:, None] ** 2
    shared = square / (1 + square * weight.sum(axis=1))  # (n_chains, n_tasks)
    models = mean.shape[1]
    precision = prior_precision + np.eye(models) * weight.sum(axis=2)[:, :, None]
    precision = precision - np.einsum("cij,chj,cj->cih", weight, weight, shared)
    pull = (weight * (mean - (shared * (weight * mean).sum(axis=1))[:, None, :])).sum(axis=2)
    root = np.linalg.cholesky(precision)
    center = np.linalg.solve(precision, pull[..., None])
    noise = np.linalg.solve(np.swapaxes(root, 1, 2), _normal(rng, (*pull.shape, 1)))
    drawn: FloatArray = (center + noise)[..., 0]
    return drawn
