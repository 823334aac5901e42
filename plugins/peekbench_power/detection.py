"""The power of a t test, and the smallest effect that it detects."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

MOST_DEGREES = 10_000.0  # beyond which Student's t is normal for all that concerns power


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of a test."""

    power: float
    size: float
    """Of the two-sided test."""


def power(effect: float, error: float, degrees: float, size: float) -> float:
    """Chance that a two-sided t test tells an effect from zero whose estimate has this standard error."""
    if error == 0:
        return 1.0
    return _power(abs(effect) / error, min(degrees, MOST_DEGREES), size)


def minimum_detectable(error: float, degrees: float, wanted: Wanted) -> float | None:
    """The smallest effect that is detected with the wanted power; None where there are no degrees of freedom."""
    if degrees <= 0 or math.isnan(error):
        return None
    return error * _noncentrality(float(f"{min(degrees, MOST_DEGREES):.4g}"), wanted.power, wanted.size)


def _power(noncentrality: float, degrees: float, size: float) -> float:
    """From the noncentral t distribution; the far tail is left out, which matters for no effect worth detecting.

    Where scipy has no value, the normal approximation of Johnson, Kotz and Balakrishnan (1995, chapter 31) stands in:
    T > c about as often as a normal variable exceeds (c - noncentrality) / sqrt(1 + c^2 / (2 degrees)).
    """
    from scipy.stats import nct, norm, t

    critical = float(t.ppf(1 - size / 2, degrees))
    exact = float(nct.sf(critical, degrees, noncentrality))
    if not math.isnan(exact):
        return exact
    return float(norm.sf((critical - noncentrality) / math.sqrt(1 + critical**2 / (2 * degrees))))


@lru_cache(maxsize=10_000)
def _noncentrality(degrees: float, wanted: float, size: float) -> float:
    """Effect over standard error at which the power is as wanted."""
    from scipy.optimize import brentq

    most = 4.0
    while _power(most, degrees, size) < wanted:
        most *= 2
    return float(brentq(lambda ratio: _power(ratio, degrees, size) - wanted, 0, most, xtol=1e-6))
