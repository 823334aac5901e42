"""The power of verdicts, the biases that designs detect, and the cheapest design that detects a given bias."""

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
from peekbench.records import FloatArray, Looks, ScoreUnits
from peekbench.results import check_region
from peekbench_stats import EXTENSION_SHARE, levels_at
from peekbench_summary.biased_rule import Region
from peekbench_summary.power import Power
from peekbench_summary.power.noise import Noise, Precision
from peekbench_summary.power.simulation import find_detectable, is_small, simulate_detection, simulate_equivalence

NUM_VARIANCES = 200  # quantiles of the estimated variance over which the power of equivalence is averaged
MAX_DEGREES = 10_000.0  # beyond which the power of Student's t test is that of the normal test


@dataclass(frozen=True, slots=True)
class Criterion:
    """What counts as detecting an effect, or its absence."""

    power: float
    """Probability with which the test must detect it."""
    alpha: float
    """Two-sided level at which the verdict is reached."""
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
    """Return the probability that two one-sided tests (TOST) find the mean inside the region if there is no bias.

    The interval of the mean then has the level 1 - 2 `alpha`. Given an estimated standard error s, the mean must be
    within region - t s; the probability is averaged over the distribution of s.

    Parameters
    ----------
    standard_error
        Standard error of the mean, in the unit of `region`.
    degrees
        Degrees of freedom of the estimated standard error.
    region
        Half-width of the region.
    alpha
        Level of each test.

    References
    ----------
    Phillips (1990), https://doi.org/10.1007/BF01063556

    Examples
    --------
    >>> round(equivalence_power(0.0017, 100, region=0.005, alpha=0.05), 2)
    0.80
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
    half_widths: FloatArray = t.isf(alpha, degrees) * np.sqrt(quantiles / degrees)
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


def detection_power(bias: float, precision: Precision, alpha: float) -> float:
    """Return the probability of the verdict 'biased' on a configuration with a bias, at a two-sided level."""
    if is_small(precision) and precision.error > 0 and bias:
        return simulate_detection(bias, precision, alpha)
    return compute_power(bias, precision.error, precision.degrees, alpha)


def detectable_bias(precision: Precision, criterion: Criterion) -> float | None:
    """Return the smallest bias whose verdict is 'biased' with the required power; None if a design detects none."""
    by_t_test = minimum_detectable(precision.error, precision.degrees, criterion)
    if not by_t_test or not is_small(precision):
        return by_t_test
    return find_detectable(precision, criterion.power, criterion.alpha, by_t_test)


def equivalence_probability(precision: Precision, criterion: Criterion) -> float:
    """Return the probability of the verdict 'equivalent' if there is no bias."""
    if is_small(precision) and precision.error > 0:
        return simulate_equivalence(criterion.region, precision, criterion.alpha)
    return _equivalence_by_t_test(precision, criterion)


def _equivalence_by_t_test(precision: Precision, criterion: Criterion) -> float:
    margin = criterion.region
    if not precision.failures_cancel:
        margin = Region(criterion.region).margin(precision.num_tasks * precision.subsamples)
    return equivalence_power(precision.error, precision.degrees, margin, criterion.alpha)


def plan_subsamples(
    noise: Noise, num_tasks: int, num_test: int | None, bias: float, criterion: Criterion
) -> Plan | None:
    """Return the design with the fewest subsamples per task whose verdict on a bias is 'biased' with enough power.

    Returns
    -------
    Plan or None
        None if not even `MAX_SUBSAMPLES` subsamples per task are enough.
    """

    def by_t_test(precision: Precision) -> bool:
        detected = minimum_detectable(precision.error, precision.degrees, criterion)
        return detected is not None and detected <= bias

    def by_rule(precision: Precision) -> bool:
        return detection_power(bias, precision, criterion.alpha) >= criterion.power

    return _plan(by_t_test, by_rule, noise, num_tasks, num_test)


def plan_equivalence(noise: Noise, num_tasks: int, num_test: int | None, criterion: Criterion) -> Plan | None:
    """Return the design with the fewest subsamples per task whose verdict is probably 'equivalent' without a bias.

    Returns
    -------
    Plan or None
        None if not even `MAX_SUBSAMPLES` subsamples per task are enough.
    """

    def by_t_test(precision: Precision) -> bool:
        return _equivalence_by_t_test(precision, criterion) >= criterion.power

    def by_rule(precision: Precision) -> bool:
        return equivalence_probability(precision, criterion) >= criterion.power

    return _plan(by_t_test, by_rule, noise, num_tasks, num_test)


def _plan(
    by_t_test: Callable[[Precision], bool],
    by_rule: Callable[[Precision], bool],
    noise: Noise,
    num_tasks: int,
    num_test: int | None,
) -> Plan | None:
    """Return the smallest design that suffices: never fewer subsamples than t tests need, which are fast to compute."""

    def precision(subsamples: int) -> Precision:
        return noise.precision(num_tasks, subsamples, num_test)

    enough = 2
    while not by_t_test(precision(enough)):
        enough *= 2
        if enough > MAX_SUBSAMPLES:
            return None
    too_few = enough // 2  # or 1, which was not tried
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if by_t_test(precision(middle)) else (middle, enough)
    while is_small(precision(enough)) and not by_rule(precision(enough)):
        enough += 1
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


def check_units(options: Power, units: ScoreUnits) -> None:
    """Refuse biases and regions of fractions that were written in points instead of as fractions."""
    for option, value in (("region", options.region), ("target_bias", options.target_bias), ("biases", options.biases)):
        for bias in value if isinstance(value, tuple) else (value,):
            check_region(bias, "power", units=units, option=option)


def name_level(options: Power) -> str:
    """Return the significance level in words: '5% two-sided'."""
    return f"{100 * options.alpha:.2g}% two-sided"


def at_first_look(options: Power, family: int) -> Power:
    """Return the options with the level of the first report of a run as `alpha`.

    Parameters
    ----------
    options
        Options with the error rate of the whole family as `alpha`.
    family
        Number of configurations that are judged together. In the worst case for one of them, it alone is detected:
        Benjamini and Hochberg then test it at this share of the error rate.
    """
    return options.model_copy(update={"alpha": float(levels_at(Looks(), options.alpha / family)[0])})


def explain_level(options: Power, family: int) -> str:
    """Return a sentence on the level of `at_first_look`, with a space before it."""
    of_family = f" of {family} that are judged together" if family > 1 else ""
    return (
        f" The level of {name_level(at_first_look(options, family))} is that of one configuration{of_family} at an "
        f"error rate of {options.alpha:.0%}, of which {EXTENSION_SHARE:.0%} are kept for extensions of the run."
    )


def criterion_of(options: Power) -> Criterion:
    """Make the criterion for detecting a bias, or its absence."""
    return Criterion(options.power, options.alpha, options.region)
