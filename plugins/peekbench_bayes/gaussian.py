"""The model `calibrated`: a hierarchical Gaussian model of the paired differences, sampled by blocked Gibbs.

For model i, task j and subsample k, with d = score of treatment - score of control:

    d_ijk     ~ Normal(theta_ij, sigma_ij)
    sigma_ij^2 ~ ScaledInvChi^2(df, s_i^2)    s_i^2 ~ Gamma(1, rate 1 / residual_sd^2)
    theta_ij  = mu_i + u_j + w_ij             w_ij is absent with one model
    u_j, w_ij ~ Normal(0, tau_task), Normal(0, tau_cell)           with probability exchangeable_share,
                Normal(0, sqrt(tau^2 + own_sd^2)) with each tau    otherwise
    mu_i      = m + delta_i    m ~ Normal(0, mean_sd)    delta_i ~ Normal(0, model_sd)
    tau_task, tau_cell ~ HalfNormal

Effects of tasks are a mixture (EXNEX, Neuenschwander et al. 2016, https://doi.org/10.1002/pst.1730): a task either
resembles the others, or has an effect of its own. A single contaminated task is then hardly shrunk toward the others,
and does not make the others look different from each other.

Averages do not depend on the mixture. The average over the observed tasks uses effects that are not shrunk (infinite
tau, the same residual variances). It therefore makes no assumption on how tasks resemble each other. Intervals of
averages of shrunk effects are too wide if the tasks do not differ (docs/statistics.md has the figures). The mean over
other tasks follows from one normal distribution for all tasks (`population`), given the same residual variances.

All arrays have a leading axis for chains; replicated data sets can be chains as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from peekbench.records import BoolArray, FloatArray
from peekbench_bayes.options import DifferencePriors
from peekbench_bayes.task_effects import (
    CellMeans,
    draw_on_grid,
    draw_own,
    draw_scales,
    draw_theta,
    start_scales,
)

VARIANCE_GRID = np.geomspace(1e-6, 100.0, 50)
"""Values of the variances' scale in units of its prior's mean."""
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
    unshrunk: FloatArray
    """Effects without shrinkage, for averages over exactly these models and tasks: (n_chains, n_models, n_tasks)."""
    variance: FloatArray
    """Variance of single differences: (n_chains, n_models, n_tasks)."""
    is_own: BoolArray
    """Whether a task has an effect of its own: (n_chains, n_tasks)."""


@dataclass(frozen=True, slots=True)
class Population:
    """One draw of every chain: the normal distribution of the effects of all tasks."""

    mu: FloatArray
    """Mean effect of each model: (n_chains, n_models)."""
    tau_task: FloatArray
    """Standard deviation between tasks: (n_chains,)."""
    tau_cell: FloatArray
    """Standard deviation between models within a task: (n_chains,)."""
    mean: FloatArray
    """Mean effect over the population of tasks that these tasks are a sample of, given the models: (n_chains,)."""


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
    df = priors.residual_df
    variance: FloatArray = (cells.squares + df * priors.residual_sd**2 / 4) / (cells.count + df) + TINY
    scales = start_scales(chains, models, priors)
    is_own = np.zeros((chains, tasks), bool)
    for _ in range(steps):
        means = CellMeans(cells.mean, cells.count / variance)
        scales = draw_scales(means, scales, is_own, priors, rng)
        is_own = draw_own(means, scales, priors, rng)
        theta = draw_theta(means, scales, is_own, priors, rng)
        variance = _draw_variance(cells, theta, priors, rng)
        yield State(theta, _draw_unshrunk(cells, variance, rng), variance, is_own)


def _draw_variance(cells: Cells, theta: FloatArray, priors: DifferencePriors, rng: np.random.Generator) -> FloatArray:
    """Draw the variances of single differences, after their scale with the variances integrated out.

    Drawn in turn, variances and their scale would be strongly correlated where subsamples are few.
    """
    df = priors.residual_df
    squares = (cells.squares + cells.count * (cells.mean - theta) ** 2)[:, :, None, :]
    degrees = (cells.count + df)[:, :, None, :]
    grid = priors.residual_sd**2 * VARIANCE_GRID
    evidence = -degrees / 2 * np.log(df * grid[:, None] + squares)  # (n_chains, n_models, n_grid, n_tasks)
    tasks = cells.count.shape[2]
    log_density = evidence.sum(axis=3) + tasks * df / 2 * np.log(grid) - VARIANCE_GRID
    scale = draw_on_grid(log_density, grid, rng)[..., None]
    variance: FloatArray = (df * scale + squares[:, :, 0]) / 2 / rng.standard_gamma(degrees[:, :, 0] / 2) + TINY
    return variance


def _draw_unshrunk(cells: Cells, variance: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw the effect of each cell from its own subsamples; NaN for cells without subsamples."""
    is_present = cells.count > 0
    error = np.sqrt(variance / np.maximum(cells.count, 1))
    return np.where(is_present, cells.mean + error * rng.standard_normal(error.shape), np.nan)


def sample_population(
    cells: Cells, states: Iterable[State], priors: DifferencePriors, rng: np.random.Generator
) -> Iterator[Population]:
    """Sample the normal distribution of the effects of all tasks, given the variances of single differences.

    Given the standard deviations, the mean over other tasks is normal around the average of these tasks, with equal
    weight for every task. `mu` gives stable tasks more weight, and differs if effects are correlated with noise.

    Parameters
    ----------
    cells
        Sufficient statistics of the differences.
    states
        Draws from `sample`.
    priors
        Priors of the model.
    rng
        Random generator.

    Yields
    ------
    Population
        One draw of every chain for each of the states.
    """
    is_present = cells.count[0] > 0
    num_cells = is_present.sum()
    task_share = ((is_present.sum(axis=0) / num_cells) ** 2).sum()
    chains, models, tasks = cells.count.shape
    nobody = np.zeros((chains, tasks), bool)
    scales = start_scales(chains, models, priors)
    for state in states:
        scales = draw_scales(CellMeans(cells.mean, cells.count / state.variance), scales, nobody, priors, rng)
        spread = np.sqrt(scales.tau_task**2 * task_share + scales.tau_cell**2 / num_cells)
        mean = np.nanmean(state.unshrunk, axis=(1, 2)) + spread * rng.standard_normal(spread.shape)
        yield Population(scales.mu, scales.tau_task, scales.tau_cell, mean)
