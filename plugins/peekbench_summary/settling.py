"""The number of additional subsamples that would probably settle an inconclusive verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr
from scipy.stats import chi2, t

from peekbench.records import Advice, FloatArray, Settling
from peekbench_stats import welch_satterthwaite
from peekbench_summary.biased_rule import Bias
from peekbench_summary.estimates import mean_over_tasks, task_means

ASSURANCE = 0.8
"""Probability with which the additional subsamples must lead to a verdict."""
MAX_ADDITIONAL = 100_000
"""Largest number of additional subsamples per task that is considered."""
NUM_CANDIDATES = 150  # numbers tried, evenly spaced on a log scale
CANDIDATES: FloatArray = np.unique(np.geomspace(1, MAX_ADDITIONAL, NUM_CANDIDATES).round())
NUM_VARIANCES = 16  # quantiles that represent what the data leave open about the noise


def settle(bias: Bias, alpha: float) -> Settling | None:
    r"""Return the fewest additional subsamples per task that probably lead to a verdict.

    The verdict must be probable in three cases: for biases as probable as the data so far make them (with a flat
    prior); if there is no bias; and if the bias is at the edge of the region, on the side observed. In the last two, it
    must also be the right one. Without a region, only the first case counts.

    The later mean is a weighted average of today's task means and of new ones around the bias. The data leave the noise
    open: the variances of all tasks are multiplied by :math:`\nu / \chi^2_\nu`, with the Welch-Satterthwaite degrees of
    freedom :math:`\nu` of the average, and the probability is averaged over this factor.

    Parameters
    ----------
    bias
        The measured bias.
    alpha
        Error rate of the interval that decides.

    Returns
    -------
    Settling or None
        None if there is no interval today, or no noise. If no trial has a difference, the number requires that no
        further trial has any, and has no probability.

    References
    ----------
    Predictive and conditional power: Spiegelhalter et al. (1986), https://doi.org/10.1016/0197-2456(86)90003-6, and
    Lachin (2005), https://doi.org/10.1002/sim.2151
    """
    region = bias.region.half_width
    if bias.num_sides == 1:
        return Settling(_settle_zero(bias, alpha), MAX_ADDITIONAL)
    if any(len(task) < 2 for task in bias.units):
        return None
    later = _Later.of(bias, alpha)
    if later is None:
        return None
    mean = mean_over_tasks(bias.units)
    units = bias.num_units + later.candidates * len(bias.units)
    margins, hidden = (
        np.array([function(number) for number in units.tolist()])[:, None]
        for function in (bias.region.margin, bias.region.unseen_bias)
    )
    within = np.clip(margins - later.half_widths_within, 0, None)
    beyond = np.maximum(later.half_widths + hidden, within)

    spreads = later.predictive_spreads
    cases: list[FloatArray] = [1 - _inside(beyond, mean, spreads) + _inside(within, mean, spreads)]
    if region:
        edge = later.means(math.copysign(region, mean)) * math.copysign(1.0, mean)
        cases += [_inside(within, later.means(0.0), later.spreads), ndtr((edge - beyond) / later.spreads)]
    is_possible = np.array([bias.can_reject(number, alpha) for number in units.tolist()])
    return Settling(_first(later.candidates, _least_probable(cases) * is_possible), MAX_ADDITIONAL)


def _settle_zero(bias: Bias, alpha: float) -> Advice | None:
    """Return the subsamples that bound the share of trials with a difference by the region, if none of them has any."""
    for number in CANDIDATES.tolist():
        units = bias.num_units + number * len(bias.units)
        level = bias.levels.later(units / bias.num_units)(alpha)
        if units * math.log1p(-bias.region.half_width) <= math.log(level):
            return Advice(_round_up(number), None)
    return None


def _least_probable(cases: Sequence[FloatArray]) -> FloatArray:
    """Return the probability of the least probable case for each candidate, shape (n_candidates,)."""
    probabilities: FloatArray = np.min([case.mean(axis=1) for case in cases], axis=0)
    return probabilities


def _inside(limit: FloatArray, mean: FloatArray | float, spread: FloatArray) -> FloatArray:
    """Return the probability that a normal variable lies between -limit and limit."""
    probability: FloatArray = ndtr((limit - mean) / spread) - ndtr((-limit - mean) / spread)
    return probability


@dataclass(frozen=True, slots=True)
class _Later:
    """The average bias after additional subsamples; arrays have the shape (n_candidates, n_variances) or broadcast."""

    candidates: FloatArray
    known: FloatArray
    """Part of the later mean that today's data determine."""
    weight: FloatArray
    """Weight of the assumed bias in the later mean."""
    spreads: FloatArray
    """Standard deviation of the later mean, given today's data and the assumed bias."""
    predictive_spreads: FloatArray
    """Standard deviation of the later mean around today's, given today's data alone."""
    half_widths: FloatArray
    """Half-width of the later interval, which must exclude zero."""
    half_widths_within: FloatArray
    """Half-width of the later interval of two one-sided tests, which must be inside the region."""

    def means(self, bias: float) -> FloatArray:
        """Return the expected later mean if this is the bias."""
        return self.known + self.weight * bias

    @classmethod
    def of(cls, bias: Bias, alpha: float) -> _Later | None:
        """Combine today's data with each candidate; None without noise."""
        tasks = bias.units
        sizes = np.array([len(task) for task in tasks], dtype="float64")
        variances = np.array([np.var(task, ddof=1) for task in tasks])
        if not variances.any():
            return None
        degrees = float(welch_satterthwaite(variances / sizes, sizes - 1))
        factors = degrees / _chi_squared_quantiles(round(degrees, 1))  # (n_variances,)
        candidates = CANDIDATES
        added = candidates[:, None]
        later_sizes = sizes + added  # (n_candidates, n_tasks)
        squared_errors = variances / later_sizes
        later_degrees = welch_satterthwaite(squared_errors, later_sizes - 1)
        errors = np.sqrt(squared_errors.sum(axis=1)) / len(tasks)
        ratios = later_sizes.sum(axis=1) / sizes.sum()
        levels = np.array([bias.levels.later(ratio)(alpha) for ratio in ratios.tolist()])
        # The later estimate of the variance pools today's with that of the new subsamples.
        new = (candidates / (candidates + sizes.mean() - 1))[:, None]
        pooled = np.sqrt(1 - new + new * factors)
        spreads = np.sqrt((added * variances / later_sizes**2).sum(axis=1)) / len(tasks)
        predictive = np.sqrt((added * variances / (later_sizes * sizes)).sum(axis=1)) / len(tasks)
        return cls(
            candidates,
            known=(sizes * task_means(tasks) / later_sizes).mean(axis=1)[:, None],
            weight=(added / later_sizes).mean(axis=1)[:, None],
            spreads=spreads[:, None] * np.sqrt(factors),
            predictive_spreads=predictive[:, None] * np.sqrt(factors),
            half_widths=(t.isf(levels / 2, later_degrees) * errors)[:, None] * pooled,
            half_widths_within=(t.isf(levels, later_degrees) * errors)[:, None] * pooled,
        )


@lru_cache(maxsize=1000)
def _chi_squared_quantiles(degrees: float) -> FloatArray:
    quantiles: FloatArray = chi2.ppf((np.arange(NUM_VARIANCES) + 0.5) / NUM_VARIANCES, degrees)
    return quantiles


def _first(candidates: FloatArray, probabilities: FloatArray) -> Advice | None:
    """Return the first candidate, rounded up to two digits, whose probability is large enough."""
    enough = np.flatnonzero(probabilities >= ASSURANCE)
    if not len(enough):
        return None
    rounded = _round_up(float(candidates[enough[0]]))
    return Advice(rounded, float(np.interp(rounded, candidates, probabilities)))


def _round_up(number: float) -> int:
    """Round up to two digits."""
    unit: int = 10 ** max(0, len(str(int(number))) - 2)
    return math.ceil(number / unit) * unit
