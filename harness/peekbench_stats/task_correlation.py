"""Correlation of tasks over subsamples, which tasks have if they share their draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import f, rankdata, zscore

from peekbench.records import FloatArray

MIN_SPREAD = 1e-9  # tasks whose values differ by less are constant except for rounding


@dataclass(frozen=True, slots=True)
class TaskCorrelation:
    """Mean correlation of pairs of tasks over the subsamples that they have in common."""

    mean: float
    low: float
    high: float
    p_value: float
    """One-sided p-value of no positive correlation."""
    num_tasks: int
    """Tasks that vary and have subsamples in common with others."""
    num_subsamples: float
    """Subsamples that two tasks have in common, on average."""


def correlate_tasks(
    tasks: Sequence[Sequence[float]], subsamples: Sequence[Sequence[int]], level: float = 0.95
) -> TaskCorrelation | None:
    """Estimate the mean correlation of tasks over subsamples.

    With values of J tasks that are standardized over K subsamples, the mean correlation is (B - 1) / (J - 1), where B
    is J times the variance of the averages of subsamples over tasks. The interval is that of the intraclass correlation
    of K subjects by J raters, by the F distribution of B over the remaining variance. The test is the same for normal
    scores of ranks, so that rare failures do not look like a correlation.

    Parameters
    ----------
    tasks
        Values of each task.
    subsamples
        Numbers of their subsamples.
    level
        Coverage of the interval, which holds for normal values.

    Returns
    -------
    TaskCorrelation or None
        None without two tasks that vary and have at least three subsamples in common.

    References
    ----------
    Shrout and Fleiss (1979), https://doi.org/10.1037/0033-2909.86.2.420: ICC(3, 1)

    Examples
    --------
    >>> found = correlate_tasks([[0.0, 0.1, 0.2, 0.1], [0.1, 0.2, 0.3, 0.1]], [[0, 1, 2, 3]] * 2)
    >>> round(found.mean, 2), found.num_tasks, found.num_subsamples
    (0.85, 2, 4.0)
    """
    numbers = sorted({number for row in subsamples for number in row})
    position = {number: place for place, number in enumerate(numbers)}
    varying = [
        (np.array(values), [position[number] for number in row])
        for values, row in zip(tasks, subsamples, strict=True)
        if np.ptp(values) > MIN_SPREAD
    ]
    known = np.zeros((len(varying), len(numbers)))
    standardized, normal_scores = known.copy(), known.copy()
    for task, (values, places) in enumerate(varying):
        known[task, places] = 1
        standardized[task, places] = zscore(values, ddof=1)
        normal_scores[task, places] = zscore(ndtri(rankdata(values) / (len(values) + 1)), ddof=1)
    first, second = np.triu_indices(len(varying), 1)
    common = (known @ known.T)[first, second]  # (n_pairs,)
    is_paired = common > 2
    if not is_paired.any():
        return None
    num_tasks, num_subsamples = len(varying), float(common[is_paired].mean())
    degrees = num_subsamples - 1, (num_subsamples - 1) * (num_tasks - 1)

    def correlate(scores: FloatArray) -> tuple[float, float]:
        """Return the mean correlation, and the ratio of the variance between subsamples to the remaining one."""
        mean = float(((scores @ scores.T)[first, second][is_paired] / (common[is_paired] - 1)).mean())
        between = min(max(1 + (num_tasks - 1) * mean, 0.0), num_tasks)
        remaining = (num_tasks - between) / (num_tasks - 1)
        return mean, between / remaining if remaining > 0 else math.inf

    (mean, ratio), (_, ratio_of_ranks) = correlate(standardized), correlate(normal_scores)
    low, high = (
        1.0 if math.isinf(ratio) else float((ratio / quantile - 1) / (ratio / quantile + num_tasks - 1))
        for quantile in (f.ppf(share, *degrees) for share in ((1 + level) / 2, (1 - level) / 2))
    )
    return TaskCorrelation(mean, low, high, float(f.sf(ratio_of_ranks, *degrees)), num_tasks, num_subsamples)
