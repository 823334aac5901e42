"""The preset `calibrated`: paired differences to a posterior with its checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from peekbench.records import FloatArray
from peekbench_bayes.arrays import PairedArms
from peekbench_bayes.gaussian import Cells, Population, State, sample, sample_population, summarize_cells
from peekbench_bayes.options import Hierarchical
from peekbench_bayes.posterior import Check, Posterior, check_chains, check_dispersion

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
    mu, tau_task, tau_cell, other_tasks = (_stack(populations, each.name) for each in fields(Population))
    has_several_models = len(arms.models) > 1
    spreads = {"between tasks": tau_task}
    if has_several_models:
        spreads["between models within a task"] = tau_cell
    for number, model in enumerate(arms.models):
        name = f"single differences, {model}" if has_several_models else "single differences"
        spreads[name] = np.sqrt(variance[:, :, number].mean(axis=2))
    parameters = {"mu": mu, "theta": theta, "sigma": np.sqrt(variance)}
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
        parameters=parameters,
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
