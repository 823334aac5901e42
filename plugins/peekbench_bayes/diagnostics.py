"""Is a posterior to be trusted? R-hat, effective sample sizes, Pareto k, and a check of dispersion.

Sources: Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), https://doi.org/10.1214/20-BA1221; Vehtari, Simpson,
Gelman, Yao and Gabry (2024), https://arxiv.org/abs/1507.02646; Zhang and Stephens (2009),
https://doi.org/10.1198/tech.2009.08017.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from peekbench_bayes.posterior import Check

if TYPE_CHECKING:
    from peekbench import FloatArray

MAX_RHAT = 1.01
MIN_ESS = 400.0
MAX_K = 0.7
TAIL = 0.005  # of the posterior predictive distribution, on either side
MORE_DRAWS = "raise the option draws"


def check_chains(parameters: Mapping[str, FloatArray]) -> tuple[Check, ...]:
    """The worst R-hat and effective sample sizes among parameters of shape (n_chains, n_draws, ...)."""
    rows = [
        (name, draws.reshape(*draws.shape[:2], -1)[:, :, column])
        for name, draws in parameters.items()
        for column in range(math.prod(draws.shape[2:]))
    ]
    worst_rhat = max((rhat(draws), name) for name, draws in rows)
    worst_bulk = min((ess_bulk(draws), name) for name, draws in rows)
    worst_tail = min((ess_tail(draws), name) for name, draws in rows)
    return (
        Check(f"R-hat, {worst_rhat[1]}", worst_rhat[0], f"below {MAX_RHAT}", worst_rhat[0] < MAX_RHAT, MORE_DRAWS),
        *(
            Check(f"{kind} ESS, {name}", value, f"at least {MIN_ESS:.0f}", value >= MIN_ESS, MORE_DRAWS)
            for kind, (value, name) in (("bulk", worst_bulk), ("tail", worst_tail))
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
    k = pareto_k(log_weights)
    return Check("Pareto k of importance weights", k, f"below {MAX_K}", k < MAX_K, remedy)


def rhat(draws: FloatArray) -> float:
    """Rank-normalised split R-hat, the larger of that of the draws and that of their distances from the median."""
    import numpy as np

    halves = _split(draws)
    folded = np.abs(halves - np.median(halves))
    return max(_plain_rhat(_normal_scores(halves)), _plain_rhat(_normal_scores(folded)))


def ess_bulk(draws: FloatArray) -> float:
    """Effective sample size of rank-normalised split chains."""
    return _ess(_normal_scores(_split(draws)))


def ess_tail(draws: FloatArray) -> float:
    """The smaller effective sample size of the 5% and 95% quantiles."""
    import numpy as np

    halves = _split(draws)
    return min(_ess((halves <= np.quantile(draws, q)).astype(float)) for q in (0.05, 0.95))


def _split(draws: FloatArray) -> FloatArray:
    import numpy as np

    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _normal_scores(draws: FloatArray) -> FloatArray:
    from scipy.special import ndtri
    from scipy.stats import rankdata

    scores: FloatArray = ndtri((rankdata(draws).reshape(draws.shape) - 0.375) / (draws.size + 0.25))
    return scores


def _plain_rhat(draws: FloatArray) -> float:
    within = draws.var(axis=1, ddof=1).mean()
    between = draws.mean(axis=1).var(ddof=1)
    length = draws.shape[1]
    return math.sqrt((length - 1) / length + between / within) if within > 0 else 1.0


def _ess(draws: FloatArray) -> float:
    """Geyer's initial monotone sequence over the chains' autocorrelations."""
    import numpy as np
    from scipy.fft import irfft, next_fast_len, rfft

    length = draws.shape[1]
    centered = draws - draws.mean(axis=1, keepdims=True)
    size = next_fast_len(2 * length)
    covariance = irfft(np.abs(rfft(centered, size, axis=1)) ** 2, size, axis=1)[:, :length].mean(axis=0) / length
    within = covariance[0] * length / (length - 1)
    total = within * (length - 1) / length + draws.mean(axis=1).var(ddof=1)
    if total <= 0:
        return float(draws.size)
    correlation = 1 - (within - covariance * length / (length - 1)) / total
    correlation[0] = 1
    pairs = correlation[: length // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    pairs = np.minimum.accumulate(pairs[: negative[0]] if len(negative) else pairs)
    time = max(2 * float(pairs.sum()) - 1, 1 / math.log10(draws.size))
    return float(draws.size / time)


def pareto_k(log_weights: FloatArray) -> float:
    """Shape of the generalised Pareto distribution fitted to the largest importance weights."""
    import numpy as np

    size = len(log_weights)
    number = int(min(size / 5, 3 * math.sqrt(size)))
    ordered = np.sort(log_weights)
    weights = np.exp(ordered - ordered[-1])
    tail = weights[-number:] - weights[-number - 1]
    return _generalised_pareto_shape(tail) if tail[-1] > 0 else 0.0


def _generalised_pareto_shape(tail: FloatArray) -> float:
    """Zhang and Stephens' (2009) estimate, with the weakly informative prior of Vehtari et al. (2024)."""
    import numpy as np

    size = len(tail)
    grid = np.arange(1, 31 + int(math.sqrt(size)))
    quartile = max(tail[int(size / 4 + 0.5) - 1], np.finfo(float).tiny)
    theta = 1 / tail[-1] + (1 - np.sqrt(grid[-1] / (grid - 0.5))) / (3 * quartile)
    shape = np.log1p(-theta[:, None] * tail).mean(axis=1)
    profile = size * (np.log(-theta / shape) - shape - 1)
    weights = np.exp(profile - profile.max())
    best = float((theta * weights).sum() / weights.sum())
    k = float(np.log1p(-best * tail).mean())
    return (k * size + 5) / (size + 10)
