"""The number of additional subsamples that would probably settle an inconclusive verdict."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import t

from peekbench.records import FloatArray
from peekbench_stats import welch_satterthwaite
from peekbench_summary.estimates import mean_over_tasks

ASSURANCE = 0.8
"""Probability with which the additional subsamples must lead to a verdict."""
MAX_ADDITIONAL = 100_000
"""Largest number of additional subsamples per task that is considered."""
NUM_CANDIDATES = 400  # numbers tried, evenly spaced on a log scale


def additional_subsamples(tasks: Sequence[Sequence[float]], level: float, region: float) -> int | None:
    """Return the fewest additional subsamples per task that lead to a verdict with probability `ASSURANCE`.

    With a flat prior on the mean bias, the mean after x additional subsamples of each task is nearly normal around
    today's mean; its variance is the decrease of the squared standard error; each task keeps its standard deviation. A
    verdict is reached if the later interval lies inside the region or excludes zero.

    Parameters
    ----------
    tasks
        Bias of each subsample, one sequence per task.
    level
        Nominal coverage of the interval.
    region
        Half-width of the region of practical equivalence.

    Returns
    -------
    int or None
        None if there is no interval today, or if more than `MAX_ADDITIONAL` subsamples would be needed.

    References
    ----------
    Predictive power: Spiegelhalter, Freedman and Blackburn (1986), https://doi.org/10.1016/0197-2456(86)90003-6
    """
    if any(len(task) < 2 for task in tasks):
        return None
    sizes = np.array([len(task) for task in tasks], dtype="float64")
    mean = mean_over_tasks(tasks)
    variances = np.array([np.var(task, ddof=1) for task in tasks])
    candidates = np.unique(np.geomspace(1, MAX_ADDITIONAL, NUM_CANDIDATES).round())
    later_sizes = sizes + candidates[:, None]  # (n_candidates, n_tasks)
    squared_error = (variances / sizes).sum() / len(tasks) ** 2
    later_squared_error = (variances / later_sizes).sum(axis=1) / len(tasks) ** 2
    if squared_error == 0:
        return None
    degrees = welch_satterthwaite(variances / sizes, sizes - 1)
    later_degrees = welch_satterthwaite(variances / later_sizes, later_sizes - 1)
    half_width = t.ppf((1 + level) / 2, later_degrees) * np.sqrt(later_squared_error)
    spread = np.sqrt(squared_error - later_squared_error)

    def probability_within(bound: FloatArray) -> FloatArray:
        """Return the probability that the later mean lies between -bound and bound."""
        limits = np.stack([-bound - mean, bound - mean]) / spread
        probability: FloatArray = np.diff(t.cdf(limits, degrees), axis=0)[0]
        return probability

    settled = 1 - probability_within(half_width) + probability_within(np.clip(region - half_width, 0, half_width))
    enough = np.flatnonzero(settled >= ASSURANCE)
    return int(candidates[enough[0]]) if len(enough) else None
