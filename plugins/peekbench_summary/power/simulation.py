"""How often the rule for verdicts detects a bias, or its absence, in designs with few trials: by simulation.

With few trials, verdicts are more cautious than a t test: sign flips and Hall's correction must also reject a bias of
zero, and the degrees of freedom are estimated.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from peekbench.records import FloatArray
from peekbench_summary.biased_rule import Bias, Evidence, Levels, Region, conclude
from peekbench_summary.power.noise import Precision

NUM_LARGE = 50
"""Trials from which on the power of the rule and that of a t test are nearly equal, so designs are not simulated."""
NUM_RUNS = 400
RATIOS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 11.0, 15.0, 20.0, 30.0, 50.0, 100.0)
"""Ratios of the bias to its standard error that are simulated. Normal scores of the power are nearly linear in it."""
MIN_SHARE, MAX_SHARE = 0.001, 0.999  # so that normal scores are finite


class _Design(NamedTuple):
    """What shares of runs depend on, besides the bias and the level."""

    num_tasks: int
    subsamples: int
    evenness: float
    failures_cancel: bool


def is_small(precision: Precision) -> bool:
    """Return whether a design is simulated."""
    return precision.num_tasks * precision.subsamples < NUM_LARGE


def simulate_detection(bias: float, precision: Precision, level: float) -> float:
    """Return the share of runs of a design that are 'biased', without a region.

    Parameters
    ----------
    bias
        True mean bias over the tasks.
    precision
        How precisely the design measures it.
    level
        Level at which the verdict is reached.

    Examples
    --------
    >>> precision = Precision(num_tasks=1, subsamples=10, evenness=1.0, error=0.01, degrees=9)
    >>> 0.7 < simulate_detection(0.033, precision, 0.04) < 0.77  # a t test has a power of 0.8
    True
    """
    ratio = min(abs(bias) / precision.error, RATIOS[-1])
    after = max(1, bisect_left(RATIOS, ratio))
    low, high = (_score_of_power(ratio, _design(precision), level) for ratio in RATIOS[after - 1 : after + 1])
    return float(ndtr(np.interp(ratio, RATIOS[after - 1 : after + 1], (low, high))))


def simulate_equivalence(region: float, precision: Precision, level: float) -> float:
    """Return the share of runs without a bias that are 'equivalent'; parameters as for `simulate_detection`."""
    return _share("equivalent", 0.0, region / precision.error, _design(precision), level)


def find_detectable(precision: Precision, power: float, level: float, start: float) -> float | None:
    """Return the smallest bias that a design detects with a probability; None if it detects none.

    Parameters
    ----------
    precision, level
        As for `simulate_detection`.
    power
        The probability.
    start
        Bias that a t test detects with this probability.
    """
    wanted, design = float(ndtri(power)), _design(precision)
    before = max(1, bisect_left(RATIOS, start / precision.error)) - 1
    low = _score_of_power(RATIOS[before], design, level)
    for ratio in RATIOS[before + 1 :]:
        high = _score_of_power(ratio, design, level)
        if high >= wanted:
            return float(np.interp(wanted, (low, high), (RATIOS[before], ratio))) * precision.error
        before, low = before + 1, high
    return None


def _design(precision: Precision) -> _Design:
    subsamples = max(2, round(precision.subsamples))
    return _Design(precision.num_tasks, subsamples, round(precision.evenness, 2), precision.failures_cancel)


def _score_of_power(ratio: float, design: _Design, level: float) -> float:
    """Return the normal score of the power, between finite limits."""
    share = _share("biased", ratio, 0.0, design, level)
    return float(ndtri(min(max(share, MIN_SHARE), MAX_SHARE)))


@lru_cache(maxsize=1000)
def _share(decision: str, ratio: float, region: float, design: _Design, level: float) -> float:
    """Return the share of simulated runs with a decision; bias and region are in standard errors of the mean."""
    num_tasks, subsamples, evenness, failures_cancel = design
    if 2.0 ** (1 - num_tasks * subsamples) > level:
        return 0.0
    judged = Region(region)
    if failures_cancel:
        judged = Region(region, failure_loss=0.0)
    hits = 0
    for tasks in (_draw(num_tasks, subsamples, evenness) + ratio).tolist():
        (evidence,) = Evidence.of_family([Bias(tasks, judged, is_skewed=not failures_cancel)], level)
        hits += conclude(evidence, Levels(level, level)).decision.startswith(decision)
    return hits / NUM_RUNS


@lru_cache(maxsize=8)
def _draw(num_tasks: int, subsamples: int, evenness: float) -> FloatArray:
    """Return normal differences whose mean has a standard error of 1, shape (NUM_RUNS, n_tasks, n_subsamples).

    The means of the runs are the quantiles of their distribution, which halves the variance of shares of runs.
    """
    random = np.random.default_rng(0)
    shares = variance_shares(num_tasks, evenness)
    spreads = np.sqrt(shares * subsamples) * num_tasks
    noise = random.normal(size=(NUM_RUNS, num_tasks, subsamples)) * spreads[:, None]
    quantiles = ndtri((random.permutation(NUM_RUNS) + 0.5) / NUM_RUNS)
    shifts = (quantiles - noise.mean(axis=(1, 2)))[:, None] * num_tasks * shares  # as if the mean had been this one
    drawn: FloatArray = noise + shifts[:, :, None]
    return drawn


def variance_shares(num_tasks: int, evenness: float) -> FloatArray:
    """Return the share of each task in the variance, with the given evenness: one task is noisier than the others."""
    if num_tasks == 1:
        return np.ones(1)
    inverse = min(max(evenness, 1 / num_tasks), 1.0) * num_tasks  # of the sum of squared shares
    largest = (1 + math.sqrt((num_tasks - 1) * (num_tasks / inverse - 1))) / num_tasks
    shares = np.full(num_tasks, (1 - largest) / (num_tasks - 1))
    shares[-1] = largest
    return shares
