"""The power of a t test, the effects that designs detect, and the cheapest design that detects a given bias."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import chi2, nct, norm, t

from peekbench import Column
from peekbench.records import FloatArray
from peekbench.results import check_region
from peekbench_summary.power import Power
from peekbench_summary.power.noise import Noise

NUM_VARIANCES = 200  # quantiles of the estimated variance over which the power of equivalence is averaged
MAX_DEGREES = 10_000.0  # beyond which the power of Student's t test is that of the normal test


@dataclass(frozen=True, slots=True)
class Criterion:
    """What counts as detecting an effect, or its absence."""

    power: float
    """Probability with which the test must detect it."""
    alpha: float
    """Significance level of the two-sided test."""
    region: float = 0.005
    """Half-width of the region of practical equivalence."""


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


def equivalence_power(standard_error: float, degrees: float, region: float, alpha: float) -> float:
    """Return the probability that the interval lies inside the region of practical equivalence if there is no bias.

    The interval of the mean has the level 1 - `alpha`, so this is two one-sided tests (TOST) at `alpha` / 2. Given an
    estimated standard error s, the mean must be within region - t s; the probability is averaged over the distribution
    of s.

    Parameters
    ----------
    standard_error
        Standard error of the mean, in the unit of `region`.
    degrees
        Degrees of freedom of the estimated standard error.
    region
        Half-width of the region.
    alpha
        1 - level of the interval.

    References
    ----------
    Phillips (1990), https://doi.org/10.1007/BF01063556

    Examples
    --------
    >>> round(equivalence_power(0.0015, 100, region=0.005, alpha=0.05), 2)
    0.82
    """
    if standard_error == 0:
        return 1.0
    if not degrees > 0:
        return 0.0
    half_widths = standard_error * _estimated_half_widths(float(f"{min(degrees, MAX_DEGREES):.4g}"), alpha)
    within = np.clip(region - half_widths, 0, None) / standard_error
    return float((2 * ndtr(within) - 1).mean())


@lru_cache(maxsize=10_000)
def _estimated_half_widths(degrees: float, alpha: float) -> FloatArray:
    """Return equally probable half-widths of a t interval, in true standard errors."""
    quantiles = chi2.ppf((np.arange(NUM_VARIANCES) + 0.5) / NUM_VARIANCES, degrees)
    half_widths: FloatArray = t.ppf(1 - alpha / 2, degrees) * np.sqrt(quantiles / degrees)
    return half_widths


def pilot_inflation(degrees: float, confidence: float) -> float:
    """Return the factor by which to multiply the variance of a pilot run when planning.

    A design planned with the estimated variance has less than the nominal power half of the time, and much less if the
    pilot is small. The upper confidence limit of the variance gives at least the nominal power with this probability.

    Parameters
    ----------
    degrees
        Degrees of freedom of the estimated variance.
    confidence
        Probability with which the variance must not exceed the limit.

    References
    ----------
    Browne (1995), https://doi.org/10.1002/sim.4780141709

    Examples
    --------
    >>> round(pilot_inflation(10, 0.8), 2), round(pilot_inflation(1000, 0.8), 2)
    (1.62, 1.04)
    """
    return max(1.0, degrees / float(chi2.ppf(1 - confidence, degrees)))


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


MAX_SUBSAMPLES = 1_000_000


@dataclass(frozen=True, slots=True)
class Plan:
    """The smallest design of one test size that detects a given bias."""

    num_test: int | None
    subsamples: int
    trials: int
    seconds: float | None


def detectable_bias(
    noise: Noise, num_tasks: int, subsamples: int, num_test: int | None, criterion: Criterion
) -> float | None:
    """Return the minimum detectable bias of a design, as a mean over these tasks."""
    return minimum_detectable(*noise.error_for_these_tasks(num_tasks, subsamples, num_test), criterion)


def plan_subsamples(
    noise: Noise, num_tasks: int, num_test: int | None, bias: float, criterion: Criterion
) -> Plan | None:
    """Return the design with the fewest subsamples per task that detects a bias.

    Returns
    -------
    Plan or None
        None if not even `MAX_SUBSAMPLES` subsamples per task are enough.
    """

    def detects(subsamples: int) -> bool:
        detected = detectable_bias(noise, num_tasks, subsamples, num_test, criterion)
        return detected is not None and detected <= bias

    return _plan(detects, noise, num_tasks, num_test)


def equivalence_probability(
    noise: Noise, num_tasks: int, subsamples: int, num_test: int | None, criterion: Criterion
) -> float:
    """Return the probability that the verdict of a design is 'equivalent' if there is no bias."""
    error, degrees = noise.error_for_these_tasks(num_tasks, subsamples, num_test)
    return equivalence_power(error, degrees, criterion.region, criterion.alpha)


def plan_equivalence(noise: Noise, num_tasks: int, num_test: int | None, criterion: Criterion) -> Plan | None:
    """Return the design with the fewest subsamples per task whose verdict is probably 'equivalent' without a bias.

    Returns
    -------
    Plan or None
        None if not even `MAX_SUBSAMPLES` subsamples per task are enough.
    """

    def settles(subsamples: int) -> bool:
        return equivalence_probability(noise, num_tasks, subsamples, num_test, criterion) >= criterion.power

    return _plan(settles, noise, num_tasks, num_test)


def _plan(suffices: Callable[[int], bool], noise: Noise, num_tasks: int, num_test: int | None) -> Plan | None:
    enough = 2
    while not suffices(enough):
        enough *= 2
        if enough > MAX_SUBSAMPLES:
            return None
    too_few = enough // 2  # or 1, which was not tried
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if suffices(middle) else (middle, enough)
    seconds = noise.trial_seconds(num_test)
    trials = num_tasks * enough
    return Plan(num_test, enough, trials, None if seconds is None else trials * seconds)


def find_cheapest(plans: Sequence[Plan]) -> Plan | None:
    """Return the plan with the lowest time, or the fewest trials if a time is unknown; if equal, the smaller test size.

    None if there are no plans.
    """
    is_timed = all(plan.seconds is not None for plan in plans)

    def cost(plan: Plan) -> tuple[float, int]:
        return (plan.seconds if is_timed and plan.seconds is not None else plan.trials, plan.num_test or 0)

    return min(plans, key=cost, default=None)


TIME_COLUMNS = (Column("subsamples", "count"), Column("trials", "count"), Column("time", "seconds"))


def format_bias(bias: float, is_accuracy: bool) -> str:
    """Write a bias that a user has chosen: '0.5 points' for accuracies."""
    return f"{bias * 100:g} points" if is_accuracy else f"{bias:g}"


def check_units(options: Power, is_accuracy: bool) -> None:
    """Refuse biases and regions of accuracies that were written in points instead of as fractions."""
    for option, value in (("region", options.region), ("target_bias", options.target_bias), ("biases", options.biases)):
        for bias in value if isinstance(value, tuple) else (value,):
            check_region(bias, "power", is_accuracy=is_accuracy, option=option)


def name_level(options: Power) -> str:
    """Return the significance level in words: '5% two-sided'."""
    return f"{100 * options.alpha:.2g}% two-sided"


def criterion_of(options: Power) -> Criterion:
    """Return what counts as detecting a bias, or its absence."""
    return Criterion(options.power, options.alpha, options.region)
