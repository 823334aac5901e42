"""Tests that need no model, to be set beside a verdict: of each task, and two over task means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peekbench import Verdict
    from peekbench.records import FloatArray

MOST_EXACT = 40  # tasks of which all sign patterns are gone through, half of the tasks at a time
RANDOM_SIGNS = 100_000
AT_ONCE = 1000
ROUNDING = 1e-9


def paired_t(means: Sequence[float]) -> float | None:
    """Two-sided p of Student's t over task means; None where they do not differ."""
    from scipy.stats import ttest_1samp

    if len(means) < 2 or max(means) - min(means) < ROUNDING:
        return None
    return float(ttest_1samp(means, 0).pvalue)


def biased_tasks(tasks: Sequence[Sequence[float]], level: float) -> tuple[int, int]:
    """Tasks biased up and down: by Student's t of each, at a false discovery rate of 1 - level over the tasks.

    The adjustment is that of Benjamini and Hochberg (1995), https://doi.org/10.1111/j.2517-6161.1995.tb02031.x. Every
    task has two subsamples at least.
    """
    from scipy.stats import false_discovery_control, ttest_1samp

    means = [math.fsum(task) / len(task) for task in tasks]
    p = [  # without spread the t test has no answer
        float(ttest_1samp(task, 0).pvalue) if max(task) - min(task) > ROUNDING else float(abs(mean) < ROUNDING)
        for task, mean in zip(tasks, means, strict=True)
    ]
    adjusted = false_discovery_control(p).tolist()
    clear = [mean for mean, value in zip(means, adjusted, strict=True) if value <= 1 - level]
    up = sum(mean > 0 for mean in clear)
    return up, len(clear) - up


def sign_flips(means: Sequence[float]) -> float | None:
    """Two-sided p of a test that flips the signs of task means at random; None where all are zero.

    Exact for up to `MOST_EXACT` tasks: the sums of all sign patterns of one half of the tasks are sorted, and for each
    sum of the other half it is counted how many of them reach what was observed. Else `RANDOM_SIGNS` patterns.
    """
    import numpy as np

    values = np.array(means)
    if not values.any():
        return None
    reached = abs(values.sum()) - ROUNDING * np.abs(values).max()
    if len(values) <= MOST_EXACT:
        half = len(values) // 2
        first, second = np.sort(_all_sums(values[:half])), _all_sums(values[half:])
        above = (len(first) - np.searchsorted(first, reached - second, side="left")).mean() / len(first)
        return float(min(1, 2 * above))
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(RANDOM_SIGNS // AT_ONCE):
        signs = 2 * rng.integers(0, 2, size=(AT_ONCE, len(values))) - 1
        hits += int((np.abs(signs @ values) >= reached).sum())
    return (hits + 1) / (RANDOM_SIGNS + 1)


def _all_sums(values: FloatArray) -> FloatArray:
    """Sums under all 2**n sign patterns."""
    import numpy as np

    sums: FloatArray = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def compare(verdict: Verdict, differs: Sequence[bool]) -> str:
    """In a few words, whether other tasks would show a bias too.

    Parameters
    ----------
    differs
        Whether each test that can tell the mean of the tasks from zero does: both, or of few tasks the t test alone.
    """
    excludes = verdict.low is not None and verdict.high is not None and (verdict.low > 0 or verdict.high < 0)
    if any(one != differs[0] for one in differs):
        return "the tests differ"
    others = any(differs)
    if excludes:
        return ("yes" if len(differs) > 1 else "yes, by the t test") if others else "not surely"
    return "only over tasks" if others else "none is seen"
