"""Group-sequential tests: the levels of repeated looks that keep the level of the whole design."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from peekbench.records import FloatArray

MIN_LEVEL = 1e-9
"""Smallest level of a look, so that its interval is finite. It adds at most this much to the error of each look."""
MAX_SCORE = 8.0  # standard errors beyond which densities are not integrated
NODES_PER_SD = 6  # nodes of the integration for each standard deviation of an increment
MIN_NODES, MAX_NODES = 64, 1000


def obrien_fleming_spending(fraction: float, alpha: float) -> float:
    r"""Return the error that a two-sided test may have spent at a share of its information.

    The spending function of Lan and DeMets that resembles the boundaries of O'Brien and Fleming, with half of `alpha`
    on each side: :math:`4 (1 - \Phi(z_{1 - \alpha / 4} / \sqrt{t}))`.

    Parameters
    ----------
    fraction
        Share t of the maximum information, above 0.
    alpha
        Two-sided level of the whole design.

    References
    ----------
    Lan and DeMets (1983), https://doi.org/10.1093/biomet/70.3.659

    Examples
    --------
    >>> round(obrien_fleming_spending(0.5, 0.05), 5)
    0.00305
    >>> obrien_fleming_spending(1.0, 0.05)
    0.05
    """
    if fraction >= 1:
        return alpha
    return float(4 * ndtr(ndtri(alpha / 4) / math.sqrt(fraction)))


def group_sequential_levels(fractions: Sequence[float], alpha: float) -> FloatArray:
    """Return the two-sided level to use at each look, so that all looks together keep the level `alpha`.

    The boundaries are found by recursive numerical integration: the density of the score statistic, for data that have
    crossed no boundary so far, is carried from look to look. Its increments are independent and normal.

    Parameters
    ----------
    fractions
        Share of the maximum information at each look, ascending, above 0 and at most 1. If the noise of subsamples does
        not change, it is the share of the maximum number of subsamples.
    alpha
        Two-sided level of the whole design.

    Returns
    -------
    array of shape (n_looks,)
        Levels, at least `MIN_LEVEL`. A level p stands for a boundary at the normal quantile of 1 - p / 2. With few
        degrees of freedom, use the quantile of Student's t at the same level.

    References
    ----------
    Armitage, McPherson and Rowe (1969), https://doi.org/10.2307/2343787; Jennison and Turnbull (1999), chapter 19

    Examples
    --------
    Five looks at equal distances:

    >>> group_sequential_levels([0.2, 0.4, 0.6, 0.8, 1.0], 0.05).round(4).tolist()
    [0.0, 0.0008, 0.0074, 0.022, 0.0423]
    """
    return np.array(_levels(tuple(fractions), alpha))


@lru_cache(maxsize=65536)
def _levels(fractions: tuple[float, ...], alpha: float) -> tuple[float, ...]:
    levels: list[float] = []
    spent = before = 0.0
    scores: FloatArray = np.zeros(1)  # nodes of the score statistic
    masses: FloatArray = np.ones(1)  # probability at each node
    for fraction in fractions:
        sd = math.sqrt(fraction - before)
        # What earlier looks did not spend is spent now: nothing is lost to `MIN_LEVEL` or to looks left out.
        target = max(obrien_fleming_spending(fraction, alpha) - spent, MIN_LEVEL)
        bound = _find_bound(scores, masses, sd, target)
        spent += target
        levels.append(float(2 * ndtr(-bound / math.sqrt(fraction))))
        scores, masses = _carry(scores, masses, sd, min(bound, MAX_SCORE * math.sqrt(fraction)))
        before = fraction
    return tuple(levels)


def _find_bound(scores: FloatArray, masses: FloatArray, sd: float, target: float) -> float:
    """Return the bound of the score that is crossed for the first time with probability `target`."""

    def excess(bound: float) -> float:
        crossing = ndtr((scores - bound) / sd) + ndtr((-scores - bound) / sd)
        return math.log(max(float(masses @ crossing), 1e-300) / target)

    upper = float(np.abs(scores).max()) + 2 * MAX_SCORE * sd
    return float(brentq(excess, 0.0, upper, xtol=1e-10)) if excess(0.0) > 0 else 0.0


@lru_cache(maxsize=64)
def _gauss_legendre(number: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights between -1 and 1."""
    nodes, weights = np.polynomial.legendre.leggauss(number)
    return nodes, weights


def _carry(scores: FloatArray, masses: FloatArray, sd: float, bound: float) -> tuple[FloatArray, FloatArray]:
    """Return nodes between the bounds and the probabilities there, after a normal increment."""
    needed = min(NODES_PER_SD * 2 * bound / sd, MAX_NODES)
    nodes, weights = (values * bound for values in _gauss_legendre(max(1, math.ceil(needed / MIN_NODES)) * MIN_NODES))
    distances = (nodes[:, None] - scores) / sd
    density = np.exp(-0.5 * distances**2) @ masses / (sd * math.sqrt(2 * math.pi))
    return nodes, density * weights
