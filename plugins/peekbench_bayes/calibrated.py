"""The preset `calibrated`: a hierarchical Gaussian model of the paired differences, sampled by blocked Gibbs.

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
averages of shrunk effects are too wide if the tasks do not differ. The mean over other tasks follows from one normal
distribution for all tasks (`population`), given the same residual variances.

The standard deviations tau, the means, and which tasks have effects of their own are drawn with the effects u and w
integrated out. The draws are therefore nearly independent, and a few hundred suffice.

All arrays have a leading axis for chains; replicated data sets can be chains as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from scipy.special import logit

from peekbench.records import BoolArray, FloatArray
from peekbench_bayes.arrays import PairedArms
from peekbench_bayes.options import DifferencePriors, Hierarchical
from peekbench_bayes.posterior import Check, Posterior, check_chains, check_dispersion

GRID = np.geomspace(1e-3, 4.0, 40)
"""Values of tau in units of the prior's scale; neighbors differ by a quarter, and a draw is spread over its cell."""


@dataclass(frozen=True, slots=True)
class CellMeans:
    """Mean differences and their precisions, given the variances of single differences."""

    mean: FloatArray
    """(n_chains, n_models, n_tasks)."""
    precision: FloatArray
    """The same shape; 0 for cells without subsamples."""


@dataclass(frozen=True, slots=True)
class Scales:
    """Parameters of the distribution of the effects."""

    mu: FloatArray
    """Mean effect of each model: (n_chains, n_models)."""
    tau_task: FloatArray
    """Standard deviation between tasks: (n_chains,)."""
    tau_cell: FloatArray
    """Standard deviation between models within a task: (n_chains,); 0 with one model."""

    def variances(self, is_own: BoolArray, priors: DifferencePriors) -> tuple[FloatArray, FloatArray]:
        """Return the variances of u and w, (n_chains, n_tasks); they are larger for effects of their own."""
        excess = is_own * priors.own_sd**2
        has_several_models = self.mu.shape[1] > 1
        return self.tau_task[:, None] ** 2 + excess, self.tau_cell[:, None] ** 2 + has_several_models * excess


def start_scales(chains: int, models: int, priors: DifferencePriors) -> Scales:
    """Return the values with which chains start."""
    tau_cell = np.full(chains, priors.cell_sd / 10 if models > 1 else 0.0)
    return Scales(np.zeros((chains, models)), np.full(chains, priors.task_sd / 10), tau_cell)


def draw_scales(
    means: CellMeans, scales: Scales, is_own: BoolArray, priors: DifferencePriors, rng: np.random.Generator
) -> Scales:
    """Draw the parameters of the distribution of the effects, given which tasks have effects of their own."""
    models = means.mean.shape[1]
    residual = means.mean - scales.mu[..., None]
    excess = (is_own * priors.own_sd**2)[:, None, :]
    cell_variance = scales.variances(is_own, priors)[1]
    tau_task = _draw_tau_task(residual, _marginal_precision(means, cell_variance), excess, priors.task_sd, rng)
    scales = Scales(scales.mu, tau_task, scales.tau_cell)
    if models > 1:
        task_variance = scales.variances(is_own, priors)[0][:, None, :]
        on_grid = (priors.cell_sd * GRID)[:, None] ** 2 + excess
        log_likelihood = _log_likelihood(residual, means.precision, task_variance, on_grid).sum(axis=2)
        scales = Scales(scales.mu, tau_task, _draw_tau(log_likelihood, priors.cell_sd, rng))
    task_variance, cell_variance = scales.variances(is_own, priors)
    mu = _draw_mu(means, _marginal_precision(means, cell_variance), task_variance, priors, rng)
    return Scales(mu, tau_task, scales.tau_cell)


def draw_own(means: CellMeans, scales: Scales, priors: DifferencePriors, rng: np.random.Generator) -> BoolArray:
    """Draw which tasks have effects of their own: (n_chains, n_tasks)."""
    nobody = np.zeros((len(means.mean), means.mean.shape[2]), bool)
    variances = (scales.variances(is_own, priors) for is_own in (nobody, ~nobody))
    task, cell = (np.stack(both, axis=1) for both in zip(*variances, strict=True))
    by_kind = _log_likelihood(means.mean - scales.mu[..., None], means.precision, task, cell)
    log_odds = by_kind[:, 1] - by_kind[:, 0] - logit(priors.exchangeable_share)
    drawn: BoolArray = rng.logistic(size=log_odds.shape) < log_odds
    return drawn


def draw_theta(
    means: CellMeans, scales: Scales, is_own: BoolArray, priors: DifferencePriors, rng: np.random.Generator
) -> FloatArray:
    """Draw the shrunk effects: (n_chains, n_models, n_tasks)."""
    task_variance, cell_variance = scales.variances(is_own, priors)
    weight = _marginal_precision(means, cell_variance)
    # Draw u given mu, with w integrated out; then w given both.
    task_precision = weight.sum(axis=1) + 1 / task_variance
    pull = (weight * (means.mean - scales.mu[..., None])).sum(axis=1)
    u = pull / task_precision + rng.standard_normal(pull.shape) / np.sqrt(task_precision)
    theta: FloatArray = scales.mu[..., None] + u[:, None, :]
    if scales.mu.shape[1] > 1:
        cell_precision = means.precision + 1 / cell_variance[:, None, :]
        w = means.precision * (means.mean - theta) / cell_precision
        theta = theta + w + rng.standard_normal(theta.shape) / np.sqrt(cell_precision)
    return theta


def _marginal_precision(means: CellMeans, cell_variance: FloatArray) -> FloatArray:
    """Return the precision of cell means around mu + u: 1 / (variance of the mean + cell_variance); 0 for empty cells.

    `cell_variance` has the shape (n_chains, n_tasks).
    """
    return means.precision / (1 + means.precision * cell_variance[:, None, :])


def draw_on_grid(log_density: FloatArray, grid: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw numbers of shape (...) from log densities (..., n_grid), up to constants, on a geometric grid (n_grid,).

    A draw is spread over the cell of its value.
    """
    log_mass = log_density + np.log(grid)  # cells are wider to the right
    cumulative = np.exp(log_mass - log_mass.max(axis=-1, keepdims=True)).cumsum(axis=-1)
    total = cumulative[..., -1:]
    position = (rng.random(total.shape) * total > cumulative).sum(axis=-1)
    drawn: FloatArray = grid[position] * (grid[1] / grid[0]) ** (rng.random(position.shape) - 0.5)
    return drawn


def _draw_tau(log_likelihood: FloatArray, scale: float, rng: np.random.Generator) -> FloatArray:
    """Draw one tau per chain, given its log likelihood at each value of `scale * GRID`: (n_chains, n_grid)."""
    return draw_on_grid(log_likelihood - GRID**2 / 2, scale * GRID, rng)


def _draw_tau_task(
    residual: FloatArray, weight: FloatArray, excess: FloatArray, scale: float, rng: np.random.Generator
) -> FloatArray:
    """Draw tau_task given mu and tau_cell, with u and w integrated out."""
    total, pull = weight.sum(axis=1)[:, None, :], (weight * residual).sum(axis=1)[:, None, :]
    variance = (scale * GRID)[:, None] ** 2 + excess
    inflation = 1 + variance * total  # (n_chains, n_grid, n_tasks)
    log_likelihood = 0.5 * (variance * pull**2 / inflation - np.log(inflation)).sum(axis=2)
    return _draw_tau(log_likelihood, scale, rng)


def _log_likelihood(
    residual: FloatArray, precision: FloatArray, task_variance: FloatArray, cell_variance: FloatArray
) -> FloatArray:
    """Return the log likelihood of each task with u and w integrated out, except for a constant.

    `residual` are mean differences minus mu: (n_chains, n_models, n_tasks). Variances broadcast to the result:
    (n_chains, n_values, n_tasks).
    """
    shape = np.broadcast_shapes(task_variance.shape, cell_variance.shape)
    total, pull, squares, logs = (np.zeros(shape) for _ in range(4))
    for model in range(precision.shape[1]):  # numpy is slow at sums over an axis as short as that of models
        model_precision, model_residual = precision[:, model, None], residual[:, model, None]
        inflation = 1 + model_precision * cell_variance
        weight = model_precision / inflation
        total += weight
        weight *= model_residual
        pull += weight
        weight *= model_residual
        squares += weight
        logs += np.log(inflation)
    inflation = 1 + task_variance * total
    squares -= task_variance * pull**2 / inflation
    log_likelihood: FloatArray = -0.5 * (logs + np.log(inflation) + squares)
    return log_likelihood


def _draw_mu(
    means: CellMeans,
    weight: FloatArray,
    task_variance: FloatArray,
    priors: DifferencePriors,
    rng: np.random.Generator,
) -> FloatArray:
    """Draw mu given the variances, with u and w integrated out."""
    mean = means.mean
    models = mean.shape[1]
    between = np.full((models, models), priors.mean_sd**2) + np.eye(models) * (priors.model_sd**2 if models > 1 else 0)
    shared = task_variance / (1 + task_variance * weight.sum(axis=1))  # (n_chains, n_tasks)
    precision = np.linalg.inv(between) + np.eye(models) * weight.sum(axis=2)[:, :, None]
    precision = precision - np.einsum("cij,chj,cj->cih", weight, weight, shared)
    pull = (weight * (mean - (shared * (weight * mean).sum(axis=1))[:, None, :])).sum(axis=2)
    root = np.linalg.cholesky(precision)
    center = np.linalg.solve(precision, pull[..., None])
    noise = np.linalg.solve(np.swapaxes(root, 1, 2), rng.standard_normal((*pull.shape, 1)))
    drawn: FloatArray = (center + noise)[..., 0]
    return drawn


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
    """Return the sufficient statistics of differences (n_chains, n_models, n_tasks, n_subsamples), NaN if missing."""
    is_present = np.isfinite(differences)
    count = is_present.sum(axis=-1).astype(float)
    values = np.where(is_present, differences, 0.0)
    mean = values.sum(axis=-1) / np.maximum(count, 1)
    squares = (np.where(is_present, values - mean[..., None], 0.0) ** 2).sum(axis=-1)
    return Cells(count, mean, squares)


def sample(cells: Cells, priors: DifferencePriors, steps: int, rng: np.random.Generator) -> Iterator[State]:
    """Yield one draw of every chain for each step. The first draws are warm-up: discard them."""
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


ENGINE = "Gibbs"
WARM_UP = 100
MIN_TASKS = 4
"""Fewest tasks from which the mean over other tasks is estimated. With fewer, the priors would determine its width."""
EDGE = 0.01  # minimum distance of accuracies from 0 and 1 when log-odds are computed
REMEDY = "do not rely on this model here; use the analysis summary, which uses the tasks' own standard errors"


def fit_differences(arms: PairedArms, options: Hierarchical) -> Posterior:
    """Draw from the posterior of the hierarchical model of differences.

    Parameters
    ----------
    arms
        Scores of the two arms.
    options
        Priors, number of draws and seed.

    Returns
    -------
    Posterior
        Draws of shape (chains, draws, ...).
    """
    rng = np.random.default_rng(options.seed)
    cells = summarize_cells(np.repeat(arms.difference[None], options.chains, axis=0))
    states = list(sample(cells, options.difference_priors, WARM_UP + options.draws, rng))[WARM_UP:]
    populations = list(sample_population(cells, states, options.difference_priors, rng))
    theta, unshrunk, variance = (_stack(states, name) for name in ("theta", "unshrunk", "variance"))
    mu, tau_task, tau_cell, other_tasks = (_stack(populations, field.name) for field in fields(Population))
    has_several_models = len(arms.models) > 1
    spreads = {"between tasks": tau_task}
    if has_several_models:
        spreads["between models within a task"] = tau_cell
    for number, model in enumerate(arms.models):
        name = f"single differences, {model}" if has_several_models else "single differences"
        spreads[name] = np.sqrt(variance[:, :, number].mean(axis=2))
    average = np.nanmean(unshrunk, axis=(2, 3))
    checked = {"average effect": average, "mean of a model": mu, "effect in a task": theta, **spreads}
    return Posterior(
        engine=ENGINE,
        average=average,
        by_model=np.nanmean(unshrunk, axis=3),
        by_task=theta.mean(axis=2),
        log_odds=None if not arms.is_accuracy else np.nanmean(unshrunk * _log_odds_slope(arms), axis=(2, 3)),
        other_tasks=other_tasks if len(arms.tasks) >= MIN_TASKS else None,
        spreads=spreads,
        checks=(*check_chains(checked), *_check_dispersion(arms, cells, variance, rng)),
    )


def _stack(states: Sequence[State] | Sequence[Population], name: str) -> FloatArray:
    """Return one quantity of all states: (n_chains, n_draws, ...)."""
    return np.stack([getattr(state, name) for state in states], axis=1)


def _log_odds_slope(arms: PairedArms) -> FloatArray:
    """Return the log-odds per unit of accuracy between a cell's arms, by the delta method: (n_models, n_tasks)."""
    is_present = np.isfinite(arms.difference)
    total = np.where(is_present, arms.control + arms.treatment, 0.0).sum(axis=2)
    middle = np.clip(total / 2 / np.maximum(is_present.sum(axis=2), 1), EDGE, 1 - EDGE)
    slope: FloatArray = 1 / (middle * (1 - middle))
    return slope


def _check_dispersion(arms: PairedArms, cells: Cells, variance: FloatArray, rng: np.random.Generator) -> list[Check]:
    """Check the variance of single differences; models without a task of two subsamples have no check."""
    degrees = np.maximum(cells.count[0] - 1, 0)  # (n_models, n_tasks)
    models = [number for number in range(len(arms.models)) if degrees[number].sum() > 0]
    total_degrees = degrees[models].sum(axis=1)
    drawn = variance.reshape(-1, *degrees.shape)[:, models]
    replicated = (drawn * 2 * rng.standard_gamma(degrees[models] / 2, size=drawn.shape)).sum(axis=2) / total_degrees
    observed = cells.squares[0, models].sum(axis=1) / total_degrees
    return check_dispersion(observed, replicated, tuple(arms.models[number] for number in models), REMEDY)
