"""How many further subsamples would probably settle what is inconclusive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peekbench.records import FloatArray

ASSURANCE = 0.8
"""Chance that a verdict is reached with so many more."""
MOST = 100_000  # subsamples of a task; no number beyond is worth saying
STEPS = 400  # numbers tried, evenly spaced on a log scale


def further_subsamples(tasks: Sequence[Sequence[float]], level: float, region: float) -> int | None:
    """Fewest further subsamples of each task after which a verdict is reached with a chance of `ASSURANCE`.

    A flat prior on the mean bias makes the mean after x further subsamples of each task near normal around the mean of
    today, its variance what the squared standard error falls by; each task keeps its standard deviation. A verdict is
    reached where the interval of then is inside the region, or excludes zero. (Predictive power: Spiegelhalter,
    Freedman and Blackburn 1986, https://doi.org/10.1016/0197-2456(86)90003-6)

    Returns
    -------
    int or None
        None where there is no interval today, or where more than `MOST` would be needed.
    """
    import numpy as np
    from scipy.stats import t

    if any(len(task) < 2 for task in tasks):
        return None
    sizes = np.array([len(task) for task in tasks], dtype="float64")
    mean = math.fsum(math.fsum(task) / len(task) for task in tasks) / len(tasks)
    variances = np.array([np.var(task, ddof=1) for task in tasks])
    more = np.unique(np.geomspace(1, MOST, STEPS).round())
    grown = sizes + more[:, None]  # (numbers tried, tasks)
    squared_now = (variances / sizes).sum() / len(tasks) ** 2
    squared = (variances / grown).sum(axis=1) / len(tasks) ** 2
    if squared_now == 0:
        return None
    degrees_now = _degrees(variances / sizes, sizes)
    half = t.ppf((1 + level) / 2, _degrees(variances / grown, grown)) * np.sqrt(squared)
    spread = np.sqrt(squared_now - squared)

    def chance_within(bound: Any) -> FloatArray:
        chance: FloatArray = np.diff(t.cdf(np.stack([-bound - mean, bound - mean]) / spread, degrees_now), axis=0)[0]
        return chance

    settled = 1 - chance_within(half) + chance_within(np.clip(region - half, 0, half))
    enough = np.flatnonzero(settled >= ASSURANCE)
    return int(more[enough[0]]) if len(enough) else None


def _degrees(squared_errors: FloatArray, sizes: FloatArray) -> FloatArray:
    """Welch and Satterthwaite's degrees of freedom, over the last axis."""
    degrees: FloatArray = squared_errors.sum(axis=-1) ** 2 / (squared_errors**2 / (sizes - 1)).sum(axis=-1)
    return degrees
