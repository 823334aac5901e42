"""Inference that stays valid however often the data are looked at: confidence sequences."""

from __future__ import annotations

import math

from scipy.special import ndtr

from peekbench_stats.alpha_spending import MIN_LEVEL


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
