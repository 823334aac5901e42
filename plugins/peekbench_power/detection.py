"""The power of a t test, and the smallest effect that it detects."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from scipy.optimize import brentq
from scipy.stats import nct, norm, t

MAX_DEGREES = 10_000.0  # beyond which the power of Student's t test is that of the normal test


@dataclass(frozen=True, slots=True)
class Criterion:
    """What counts as detecting an effect."""

    power: float
    """Probability with which the test must detect it."""
    alpha: float
    """Significance level of the two-sided test."""


def compute_power(effect: float, standard_error: float, degrees: float, alpha: float) -> float:
    """Return the probability that a two-sided t test distinguishes an effect from zero.

    Parameters
    ----------
    effect
        True effect; its sign does not matter.
    standard_error
        Standard error of the estimate of the effect, in the same unit.
    degrees
        Degrees of freedom of the standard error.
    alpha
        Significance level of the test.
    """
    if standard_error == 0:
        return 1.0
    return _power(abs(effect) / standard_error, min(degrees, MAX_DEGREES), alpha)


def minimum_detectable(standard_error: float, degrees: float, criterion: Criterion) -> float | None:
    """Return the smallest effect that a t test detects with the required power; None without degrees of freedom."""
    if degrees <= 0 or math.isnan(standard_error):
        return None
    rounded_degrees = float(f"{min(degrees, MAX_DEGREES):.4g}")  # so that similar designs share one cached solution
    return standard_error * _noncentrality(rounded_degrees, criterion.power, criterion.alpha)


def _power(noncentrality: float, degrees: float, alpha: float) -> float:
    """Return the power from the noncentral t distribution, without the far tail, which is negligible.

    If scipy returns NaN, use the normal approximation of Johnson, Kotz and Balakrishnan (1995, chapter 31): T > c about
    as often as a normal variable exceeds (c - noncentrality) / sqrt(1 + c^2 / (2 degrees)).
    """
    critical = float(t.ppf(1 - alpha / 2, degrees))
    exact = float(nct.sf(critical, degrees, noncentrality))
    if not math.isnan(exact):
        return exact
    return float(norm.sf((critical - noncentrality) / math.sqrt(1 + critical**2 / (2 * degrees))))


@lru_cache(maxsize=10_000)
def _noncentrality(degrees: float, power: float, alpha: float) -> float:
    """Return the ratio of effect to standard error at which the test has the required power."""
    upper = 4.0
    while _power(upper, degrees, alpha) < power:
        upper *= 2
    return float(brentq(lambda ratio: _power(ratio, degrees, alpha) - power, 0, upper, xtol=1e-6))
