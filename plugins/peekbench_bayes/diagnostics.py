"""Is a posterior to be trusted? R-hat, effective sample sizes, Pareto k, and a check of dispersion.

Sources: Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), https://doi.org/10.1214/20-BA1221; Vehtari, Simpson,
Gelman, Yao and Gabry (2024), https://arxiv.org/abs/1507.02646; both as arviz-stats has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from peekbench_bayes.posterior import Check

if TYPE_CHECKING:
    from peekbench.records import FloatArray

MAX_RHAT = 1.01
MIN_ESS = 400.0
MAX_K = 0.7
AXES = {"chain_axis": 0, "draw_axis": 1}
TAILS = (0.05, 0.95)  # quantiles whose effective sample sizes are those of the tails
TAIL = 0.005  # of the posterior predictive distribution, on either side
MORE_DRAWS = "raise the option draws"


def check_chains(parameters: Mapping[str, FloatArray]) -> tuple[Check, ...]:
    """The worst R-hat and effective sample sizes among parameters of shape (n_chains, n_draws, ...)."""
    from arviz_stats.base import array_stats

    rhat = {name: array_stats.rhat(draws, **AXES) for name, draws in parameters.items()}
    bulk = {name: array_stats.ess(draws, method="bulk", **AXES) for name, draws in parameters.items()}
    tail = {name: array_stats.ess(draws, method="tail", prob=TAILS, **AXES) for name, draws in parameters.items()}
    worst_rhat = max((float(values.max()), name) for name, values in rhat.items())
    worst_ess = {
        kind: min((float(values.min()), name) for name, values in found.items())
        for kind, found in (("bulk", bulk), ("tail", tail))
    }
    return (
        Check(f"R-hat, {worst_rhat[1]}", worst_rhat[0], f"below {MAX_RHAT}", worst_rhat[0] < MAX_RHAT, MORE_DRAWS),
        *(
            Check(f"{kind} ESS, {name}", value, f"at least {MIN_ESS:.0f}", value >= MIN_ESS, MORE_DRAWS)
            for kind, (value, name) in worst_ess.items()
        ),
    )


def check_dispersion(observed: FloatArray, replicated: FloatArray, models: tuple[str, ...], remedy: str) -> list[Check]:
    """Posterior predictive check of how much single differences vary within tasks.

    Parameters
    ----------
    observed
        Variance of single differences within tasks, by model: (n_models,).
    replicated
        The same of replicated data sets, (n_replicates, n_models).
    """
    checks = []
    for model, value, others in zip(models, observed.tolist(), replicated.T, strict=True):
        share = float((others < value).mean() + (others == value).mean() / 2)
        name = f"dispersion of differences{f', {model}' if model else ''}"
        limit = f"replicates below it, between {TAIL} and {1 - TAIL}"
        checks.append(Check(name, share, limit, TAIL <= share <= 1 - TAIL, remedy))
    return checks


def check_weights(log_weights: FloatArray, remedy: str) -> Check:
    """Pareto k of importance weights, (n_draws,), of an approximation's draws."""
    from arviz_stats.base import array_stats

    k = float(array_stats.psislw(-log_weights)[1])  # it wants the logarithms of 1 / weight
    return Check("Pareto k of importance weights", k, f"below {MAX_K}", k < MAX_K, remedy)
