"""The preset `calibrated`: from paired differences to a posterior with its checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peekbench_bayes.arrays import Arms
from peekbench_bayes.diagnostics import check_chains, check_dispersion
from peekbench_bayes.gaussian import Cells, State, over_such_tasks, sample, summarize_cells
from peekbench_bayes.posterior import Check, Posterior

if TYPE_CHECKING:
    import numpy as np

    from peekbench.records import FloatArray
    from peekbench_bayes import Hierarchical

ENGINE = "Gibbs"
WARM_UP = 100
EDGE = 0.01  # accuracies are kept this far from 0 and 1 where log-odds are taken
REMEDY = "do not trust this model here; ask summary, whose intervals rest on the tasks' own standard errors"


def fit_differences(arms: Arms, options: Hierarchical) -> Posterior:
    """Draw from the posterior of the hierarchical model of differences."""
    import numpy as np

    rng = np.random.default_rng(options.seed)
    cells = summarize_cells(np.repeat(arms.difference[None], options.chains, axis=0))
    states = list(sample(cells, options.difference_priors, WARM_UP + options.draws, rng))[WARM_UP:]
    theta, mu, alone = (_stack(states, name) for name in ("theta", "mu", "alone"))
    variance, tau_task, tau_cell = (_stack(states, name) for name in ("variance", "tau_task", "tau_cell"))
    several = len(arms.models) > 1
    spreads = {"between tasks": tau_task, **({"between models within a task": tau_cell} if several else {})}
    for number, model in enumerate(arms.models):
        name = f"single differences, {model}" if several else "single differences"
        spreads[name] = np.sqrt(variance[:, :, number].mean(axis=2))
    parameters = {"mu": mu, "theta": theta, "sigma": np.sqrt(variance)}
    average = np.nanmean(alone, axis=(2, 3))
    checked = {"average effect": average, "mean of a model": mu, "effect in a task": theta, **spreads}
    return Posterior(
        engine=ENGINE,
        average=average,
        by_model=np.nanmean(alone, axis=3),
        by_task=theta.mean(axis=2),
        log_odds=None if arms.num_test is None else np.nanmean(alone * _slope(arms), axis=(2, 3)),
        such_tasks=over_such_tasks(cells, alone, tau_task, tau_cell, np.random.default_rng([options.seed, 2])),
        spreads=spreads,
        checks=(*check_chains(checked), *_check_dispersion(arms, cells, variance, rng)),
        parameters=parameters,
    )


def _stack(states: list[State], name: str) -> FloatArray:
    """One quantity of all states as (n_chains, n_draws, ...)."""
    import numpy as np

    return np.stack([getattr(state, name) for state in states], axis=1)


def _slope(arms: Arms) -> FloatArray:
    """Log-odds for each unit of accuracy between the arms of a cell (the delta method): (n_models, n_tasks)."""
    import numpy as np

    there = np.isfinite(arms.difference)
    total = np.where(there, arms.control + arms.treatment, 0.0).sum(axis=2)
    middle = np.clip(total / 2 / np.maximum(there.sum(axis=2), 1), EDGE, 1 - EDGE)
    slope: FloatArray = 1 / (middle * (1 - middle))
    return slope


def _check_dispersion(arms: Arms, cells: Cells, variance: FloatArray, rng: np.random.Generator) -> list[Check]:
    """Where no task has two subsamples there is nothing to check."""
    import numpy as np

    degrees = np.maximum(cells.count[0] - 1, 0)  # (n_models, n_tasks)
    models = [number for number in range(len(arms.models)) if degrees[number].sum() > 0]
    number = degrees[models].sum(axis=1)
    drawn = variance.reshape(-1, *degrees.shape)[:, models]
    replicated = (drawn * 2 * rng.standard_gamma(degrees[models] / 2, size=drawn.shape)).sum(axis=2) / number
    observed = cells.squares[0, models].sum(axis=1) / number
    return check_dispersion(observed, replicated, tuple(arms.models[number] for number in models), REMEDY)
