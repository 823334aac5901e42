"""Diagnostics of posteriors: R-hat, effective sample sizes, Pareto k, and a check of dispersion.

References
----------
Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), https://doi.org/10.1214/20-BA1221
Vehtari, Simpson, Gelman, Yao and Gabry (2024), https://arxiv.org/abs/1507.02646

Both are computed by arviz-stats.
"""

from __future__ import annotations

from collections.abc import Mapping

from arviz_stats.base import array_stats

from peekbench.records import FloatArray
from peekbench_bayes.posterior import Check

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
