"""Inference that stays valid however often the data are looked at: confidence sequences, and an exact e-process."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp, ndtr

from peekbench.records import FloatArray
from peekbench_stats.alpha_spending import MIN_LEVEL

RATE_SCORE = 2.8
"""Standard deviation of the mixture of the e-process, in standard errors at its target."""
MAX_NORMAL, NUM_RATES = 4.0, 81  # standard normal deviates that represent the mixture
MAX_LOG = 700.0  # largest logarithm of an e-value, so that it is finite


def confidence_sequence_level(fraction: float, alpha: float) -> float:
    r"""Return the level at which an interval is valid at every number of subsamples at once.

    The boundary of Robbins' normal mixture, in standard errors, is
    :math:`\sqrt{(1 + 1/v) (\log(1 + v) - 2 \log\alpha)}` with :math:`v = \kappa t`. For
    :math:`\kappa = \log(1 - 2 \log\alpha) - 2 \log\alpha`, it is narrowest at the target, t = 1. With an estimated
    standard error, the coverage is asymptotic.

    Parameters
    ----------
    fraction
        Information t, such as a number of subsamples, as a multiple of the target; it may exceed 1. The target must be
        chosen before the data are seen.
    alpha
        Two-sided level of the whole sequence.

    Returns
    -------
    float
        Two-sided level of the interval, at least `MIN_LEVEL`. With few degrees of freedom, use the quantile of
        Student's t at this level.

    References
    ----------
    Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), theorem 2.2 and appendix B.2,
    https://doi.org/10.1214/24-AOS2408

    Examples
    --------
    >>> round(confidence_sequence_level(1.0, 0.05), 4)
    0.0024
    """
    if alpha >= 1:
        return 1.0
    tuning = -2 * math.log(alpha) + math.log1p(-2 * math.log(alpha))
    ratio = tuning * fraction
    boundary = math.sqrt((1 + 1 / ratio) * (math.log1p(ratio) - 2 * math.log(alpha)))
    return max(float(2 * ndtr(-boundary)), MIN_LEVEL)


def sign_symmetry_e_values(differences: Sequence[Sequence[float]], target: int) -> FloatArray:
    r"""Return the evidence against symmetric differences after each subsample, valid at every look.

    If extra and test are exchangeable within each subsample, the sign of each difference d is arbitrary given its size.
    For any rate :math:`\lambda` that is chosen independently of the signs, the product of
    :math:`\exp(\lambda d) / \cosh(\lambda d)` is then a martingale with mean 1, and so is an average over rates. This
    holds exactly, for any distribution and any number of subsamples. By Ville's inequality, the largest value so far
    exceeds 1 / alpha with a probability of at most alpha, whenever one looks and stops.

    Rates are averaged over a normal density around 0, whose standard deviation is that of the normal mixture of
    `confidence_sequence_level`: `RATE_SCORE` / (root mean square of the differences x square root of their number at
    the target). The root mean square is that of the first subsample with a difference, so that later looks do not
    change it.

    Parameters
    ----------
    differences
        Paired differences in the order drawn: one sequence for each subsample, with the differences of all tasks.
    target
        Number of subsamples for which the rates are chosen. It must be chosen before the data are seen.

    Returns
    -------
    array of shape (n_subsamples,)
        E-values. 1 / max(e-values so far), at most 1, is a p-value that is valid at any time.

    References
    ----------
    de la Pena (1999), https://doi.org/10.1214/aop/1022677271; Ramdas, Ruf, Larsson and Koolen (2020),
    https://arxiv.org/abs/2009.03167

    Examples
    --------
    >>> sign_symmetry_e_values([[0.1, 0.2]] * 10, target=10).round(1)[[0, 4, 9]].tolist()
    [1.2, 36.0, 8582.9]
    """
    blocks = [np.asarray(block, dtype="float64") for block in differences]
    scale = next((float(np.sqrt(np.mean(block**2))) for block in blocks if block.any()), 1.0)
    normal = np.linspace(-MAX_NORMAL, MAX_NORMAL, NUM_RATES)
    log_weights = -0.5 * normal**2
    log_weights -= logsumexp(log_weights)
    rates = normal * RATE_SCORE / (scale * math.sqrt(target * max(1, len(blocks[0]))))
    steps = [_log_factors(rates, block) for block in blocks]
    logs = logsumexp(np.cumsum(steps, axis=0) + log_weights, axis=1)
    values: FloatArray = np.exp(np.minimum(logs, MAX_LOG))
    return values


def _log_factors(rates: FloatArray, block: FloatArray) -> FloatArray:
    """Return the logarithm of the product over a block of exp(rate d) / cosh(rate d), shape (n_rates,)."""
    exponents = rates[:, None] * block
    sizes = np.abs(exponents)
    # log cosh x = |x| + log(1 + exp(-2 |x|)) - log 2, without overflow
    factors: FloatArray = (exponents - sizes - np.log1p(np.exp(-2 * sizes)) + math.log(2)).sum(axis=1)
    return factors
