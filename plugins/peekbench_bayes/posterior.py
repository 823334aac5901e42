"""Draws of the quantities of interest, their summaries, and diagnostics of the fit.

References
----------
Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), https://doi.org/10.1214/20-BA1221
Vehtari, Simpson, Gelman, Yao and Gabry (2024), https://arxiv.org/abs/1507.02646

Both are computed by arviz-stats.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from arviz_stats.base import array_stats

from peekbench import Column, Estimate
from peekbench.records import Cell, Decision, FloatArray, Unit
from peekbench.results import decide


@dataclass(frozen=True, slots=True)
class Check:
    """One diagnostic of one fit."""

    name: str
    value: float
    limit: str
    """Requirement in words, such as 'below 1.01'."""
    passed: bool
    remedy: str
    """Advice if the check fails."""


@dataclass(frozen=True, slots=True)
class Posterior:
    """Posterior draws of one fit; arrays have the shape (n_chains, n_draws, ...).

    Effects are treatment - control, in units of the score.
    """

    engine: str
    """Name of the engine in reports."""
    average: FloatArray
    """Mean effect over these models and tasks: (n_chains, n_draws)."""
    by_model: FloatArray
    """Mean effect of each model: (n_chains, n_draws, n_models)."""
    by_task: FloatArray
    """Shrunk effect of each task, averaged over models: (n_chains, n_draws, n_tasks)."""
    log_odds: FloatArray | None
    """Effect in log-odds: (n_chains, n_draws); None if scores are not accuracies."""
    other_tasks: FloatArray | None
    """Mean effect over the population of tasks that these tasks are a sample of: (n_chains, n_draws); None if the model
    does not estimate it."""
    spreads: Mapping[str, FloatArray]
    """Standard deviations by name, in units of the score or, for binomial models, in log-odds."""
    checks: tuple[Check, ...]
    """Diagnostics of the fit."""

    @property
    def failed(self) -> tuple[Check, ...]:
        """Checks that failed."""
        return tuple(check for check in self.checks if not check.passed)


DECISIONS: tuple[Decision, ...] = ("biased up", "biased down", "equivalent", "inconclusive")
"""Decisions that an interval can lead to."""


@dataclass(frozen=True, slots=True)
class Summary(Estimate):
    """Posterior mean, central interval, standard deviation (`standard_error`), and probability of a positive value."""

    positive: float = math.nan


def summarize(draws: FloatArray, level: float) -> Summary:
    """Summarize the draws of one quantity.

    Parameters
    ----------
    draws
        Draws, in an array of any shape.
    level
        Probability of the interval.

    Returns
    -------
    Summary
        Summary of all draws together.
    """
    low, high = np.quantile(draws, interval_ends(level)).tolist()
    return Summary(float(draws.mean()), low, high, float(draws.std()), level, float((draws > 0).mean()))


def interval_ends(level: float) -> tuple[float, float]:
    """Return the quantiles at the ends of a central interval.

    >>> interval_ends(0.5)
    (0.25, 0.75)
    """
    return (1 - level) / 2, (1 + level) / 2


def decision_columns() -> tuple[Column, ...]:
    """Return one column for each decision."""
    return tuple(Column(decision, "fraction") for decision in DECISIONS)


def decision_shares(intervals: Iterable[tuple[float, float]], region: float) -> tuple[Cell, ...]:
    """Return the share of intervals with each decision, in the order of `decision_columns`."""
    counts = Counter(decide(low, high, region) for low, high in intervals)
    total = counts.total()
    return tuple(counts[decision] / total for decision in DECISIONS)


def format_region(region: float, unit: Unit) -> str:
    """Return the half-width of a region as text: '0.5 points'."""
    return f"{region * 100:g} points" if unit == "difference" else f"{region:g}"


MAX_RHAT = 1.01
MIN_ESS = 400.0
MAX_K = 0.7
AXES = {"chain_axis": 0, "draw_axis": 1}
TAILS = (0.05, 0.95)  # quantiles of the tail effective sample size
TAIL = 0.005  # tail probability of the posterior predictive distribution on either side
MORE_DRAWS = "increase the option draws"


def check_chains(parameters: Mapping[str, FloatArray]) -> tuple[Check, ...]:
    """Check the worst R-hat and effective sample sizes of all parameters.

    Parameters
    ----------
    parameters
        Draws by name: (n_chains, n_draws, ...).

    Returns
    -------
    tuple of Check
        R-hat, bulk ESS and tail ESS, each named after the worst parameter.
    """
    rhat = {name: array_stats.rhat(draws, **AXES) for name, draws in parameters.items()}
    bulk = {name: array_stats.ess(draws, method="bulk", **AXES) for name, draws in parameters.items()}
    tail = {name: array_stats.ess(draws, method="tail", prob=TAILS, **AXES) for name, draws in parameters.items()}
    worst_rhat = max((float(values.max()), name) for name, values in rhat.items())
    worst_ess = {
        kind: min((float(values.min()), name) for name, values in sizes.items())
        for kind, sizes in (("bulk", bulk), ("tail", tail))
    }
    return (
        Check(f"R-hat, {worst_rhat[1]}", worst_rhat[0], f"below {MAX_RHAT}", worst_rhat[0] < MAX_RHAT, MORE_DRAWS),
        *(
            Check(f"{kind} ESS, {name}", value, f"at least {MIN_ESS:.0f}", value >= MIN_ESS, MORE_DRAWS)
            for kind, (value, name) in worst_ess.items()
        ),
    )


def check_dispersion(observed: FloatArray, replicated: FloatArray, models: tuple[str, ...], remedy: str) -> list[Check]:
    """Check by posterior prediction how much single differences vary within tasks.

    Parameters
    ----------
    observed
        Variance of single differences within tasks, by model: (n_models,).
    replicated
        Variance of single differences in replicated data sets: (n_replicates, n_models).
    models
        Names of the models.
    remedy
        Advice if a check fails.

    Returns
    -------
    list of Check
        One check per model: the share of replicates below the observed variance.
    """
    checks = []
    for model, value, replicates in zip(models, observed.tolist(), replicated.T, strict=True):
        share = float((replicates < value).mean() + (replicates == value).mean() / 2)
        name = f"dispersion of differences{f', {model}' if model else ''}"
        limit = f"between {TAIL} and {1 - TAIL}"
        checks.append(Check(name, share, limit, TAIL <= share <= 1 - TAIL, remedy))
    return checks


def check_weights(log_weights: FloatArray, remedy: str) -> Check:
    """Check an approximation by Pareto k of the importance weights of its draws.

    Parameters
    ----------
    log_weights
        Logarithms of the importance weights: (n_draws,).
    remedy
        Advice if the check fails.

    Returns
    -------
    Check
        Pareto k.
    """
    k = float(array_stats.psislw(-log_weights)[1])  # psislw takes the logarithms of 1 / weight
    return Check("Pareto k of importance weights", k, f"below {MAX_K}", k < MAX_K, remedy)
