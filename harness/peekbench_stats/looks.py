"""Levels of looks at a growing run: group-sequential designs, confidence sequences, and the nominal level of a look."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import TypeAlias

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from peekbench.records import FloatArray, Looks

MIN_LEVEL = 1e-9
"""Smallest level of a look, so that its interval is finite. It adds at most this much to the error of each look."""
MAX_SCORE = 8.0  # standard errors beyond which densities are not integrated
NODES_PER_SD = 6  # nodes of the integration for each standard deviation of an increment
MIN_NODES, MAX_NODES = 64, 1000
NODES_OF_FIRST = 32  # of the score of a first look


def obrien_fleming_spending(fraction: float, alpha: float) -> float:
    r"""Return the error that a two-sided test may have spent at a share of its information.

    The spending function of Lan and DeMets that resembles the boundaries of O'Brien and Fleming, with half of `alpha`
    on each side: :math:`4 (1 - \Phi(z_{1 - \alpha / 4} / \sqrt{t}))`.

    Parameters
    ----------
    fraction
        Share t of the maximum information, above 0.
    alpha
        Two-sided level of the whole design.

    References
    ----------
    Lan and DeMets (1983), https://doi.org/10.1093/biomet/70.3.659

    Examples
    --------
    >>> round(obrien_fleming_spending(0.5, 0.05), 5)
    0.00305
    >>> obrien_fleming_spending(1.0, 0.05)
    0.05
    """
    if fraction >= 1:
        return alpha
    return float(4 * ndtr(ndtri(alpha / 4) / math.sqrt(fraction)))


def group_sequential_levels(fractions: Sequence[float], alpha: float) -> FloatArray:
    """Return the two-sided level to use at each look, so that all looks together keep the level `alpha`.

    The boundaries are found by recursive numerical integration: the density of the score statistic, for data that have
    crossed no boundary so far, is carried from look to look. Its increments are independent and normal.

    Parameters
    ----------
    fractions
        Share of the maximum information at each look, ascending, above 0 and at most 1. If the noise of subsamples does
        not change, it is the share of the maximum number of subsamples.
    alpha
        Two-sided level of the whole design.

    Returns
    -------
    array of shape (n_looks,)
        Levels, at least `MIN_LEVEL`. A level p stands for a boundary at the normal quantile of 1 - p / 2. With few
        degrees of freedom, use the quantile of Student's t at the same level.

    References
    ----------
    Armitage, McPherson and Rowe (1969), https://doi.org/10.2307/2343787; Jennison and Turnbull (1999), chapter 19

    Examples
    --------
    Five looks at equal distances:

    >>> group_sequential_levels([0.2, 0.4, 0.6, 0.8, 1.0], 0.05).round(4).tolist()
    [0.0, 0.0008, 0.0074, 0.022, 0.0423]
    """
    return np.array(_levels(tuple(fractions), alpha))


@lru_cache(maxsize=65536)
def _levels(fractions: tuple[float, ...], alpha: float) -> tuple[float, ...]:
    levels: list[float] = []
    spent = before = 0.0
    scores: FloatArray = np.zeros(1)  # nodes of the score statistic
    masses: FloatArray = np.ones(1)  # probability at each node
    for fraction in fractions:
        sd = math.sqrt(fraction - before)
        # What earlier looks did not spend is spent now: nothing is lost to `MIN_LEVEL` or to looks left out.
        target = max(obrien_fleming_spending(fraction, alpha) - spent, MIN_LEVEL)
        bound = _find_bound(scores, masses, sd, target)
        spent += target
        levels.append(float(2 * ndtr(-bound / math.sqrt(fraction))))
        scores, masses = _carry(scores, masses, sd, min(bound, MAX_SCORE * math.sqrt(fraction)))
        before = fraction
    return tuple(levels)


def _find_bound(scores: FloatArray, masses: FloatArray, sd: float, target: float) -> float:
    """Return the bound of the score that is crossed for the first time with probability `target`."""

    def excess(bound: float) -> float:
        crossing = ndtr((scores - bound) / sd) + ndtr((-scores - bound) / sd)
        return math.log(max(float(masses @ crossing), 1e-300) / target)

    upper = float(np.abs(scores).max()) + 2 * MAX_SCORE * sd
    return float(brentq(excess, 0.0, upper, xtol=1e-10)) if excess(0.0) > 0 else 0.0


@lru_cache(maxsize=64)
def _gauss_legendre(number: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights between -1 and 1."""
    nodes, weights = np.polynomial.legendre.leggauss(number)
    return nodes, weights


def _carry(scores: FloatArray, masses: FloatArray, sd: float, bound: float) -> tuple[FloatArray, FloatArray]:
    """Return nodes between the bounds and the probabilities there, after a normal increment."""
    needed = min(NODES_PER_SD * 2 * bound / sd, MAX_NODES)
    nodes, weights = (values * bound for values in _gauss_legendre(max(1, math.ceil(needed / MIN_NODES)) * MIN_NODES))
    distances = (nodes[:, None] - scores) / sd
    density = np.exp(-0.5 * distances**2) @ masses / (sd * math.sqrt(2 * math.pi))
    return nodes, density * weights


def confidence_sequence_level(fraction: float, alpha: float) -> float:
    r"""Return the level at which an interval is valid at every number of subsamples at once.

    The boundary of Robbins' normal mixture, in standard errors, is
    :math:`\sqrt{(1 + 1/v) (\log(1 + v) - 2 \log\alpha)}` with :math:`v = \kappa t`. For
    :math:`\kappa = \log(1 - 2 \log\alpha) - 2 \log\alpha`, it is narrowest at the target, t = 1. With an estimated
    standard error, the coverage is asymptotic.

    Parameters
    ----------
    fraction
        Information t, such as a number of subsamples, as a multiple of the target; it may exceed 1. The target must be
        chosen before the data are seen.
    alpha
        Two-sided level of the whole sequence.

    Returns
    -------
    float
        Two-sided level of the interval, at least `MIN_LEVEL`. With few degrees of freedom, use the quantile of
        Student's t at this level.

    References
    ----------
    Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), theorem 2.2 and appendix B.2,
    https://doi.org/10.1214/24-AOS2408

    Examples
    --------
    >>> round(confidence_sequence_level(1.0, 0.05), 4)
    0.0024
    """
    if alpha >= 1:
        return 1.0
    tuning = -2 * math.log(alpha) + math.log1p(-2 * math.log(alpha))
    ratio = tuning * fraction
    boundary = math.sqrt((1 + 1 / ratio) * (math.log1p(ratio) - 2 * math.log(alpha)))
    return max(float(2 * ndtr(-boundary)), MIN_LEVEL)


EXTENSION_SHARE = 0.2
"""Share of the error rate that a design of a fixed or maximum size keeps for extensions that it does not plan."""
FIRST_EXTENSION_SHARE = 0.6
"""Share of this that the first extension spends; all later ones share the rest."""
LATER_TARGET = 16
"""Trials, relative to the first look, at which the confidence sequence of later extensions is narrowest."""


def level_at(looks: Looks, num_trials: int = 0, earlier: Sequence[int] = ()) -> NominalAlpha:
    """Return the function from the error rate of a design with all of its looks to the level of the present look.

    The first report of a run or a table has the level of a fixed design or of its planned looks, at an error rate of
    1 - `EXTENSION_SHARE` times the whole. If it is then extended, whatever the reason, the first extension has a
    level that is valid for any number of additional trials, see `first_extension_level`, and all later ones have a
    confidence sequence. By Bonferroni's inequality, all verdicts together keep the error rate. A design whose looks are
    an open-ended confidence sequence needs no such share.

    Parameters
    ----------
    looks
        Looks at the run.
    num_trials
        Trials of the configuration now; needed for `earlier`.
    earlier
        Trials of the configuration at earlier looks that no design planned, ascending.

    Examples
    --------
    >>> round(level_at(Looks())(0.05), 4)
    0.04

    The first extension and a later one:

    >>> round(level_at(Looks(), num_trials=80, earlier=[20])(0.05), 5)
    0.00508
    >>> round(level_at(Looks(), num_trials=400, earlier=[20, 80])(0.05), 5)
    0.00012
    """
    planned, extensions = _split_extensions(looks, num_trials, earlier)
    if extensions:
        return _level_of_extension(planned, extensions)
    return cache(lambda alpha: float(levels_at(looks, alpha)[-1]))


def level_after(looks: Looks, ratio: float, num_trials: int, earlier: Sequence[int] = ()) -> NominalAlpha:
    """Return the level of the next look if the number of trials is multiplied and no design plans this look.

    Parameters
    ----------
    looks, num_trials, earlier
        As for `level_at`.
    ratio
        Trials at the next look, as a multiple of those now.
    """
    if looks.method == "confidence_sequence" and not earlier:
        return partial(confidence_sequence_level, ratio * looks.fractions[-1])
    planned, extensions = _split_extensions(looks, num_trials, earlier)
    now = extensions[-1] if extensions else max((1.0, *planned.fractions))
    return _level_of_extension(planned, (*extensions, ratio * now))


def _split_extensions(looks: Looks, num_trials: int, earlier: Sequence[int]) -> tuple[Looks, tuple[float, ...]]:
    """Return the looks that a design planned, and the trials at later looks as multiples of those planned."""
    if earlier:
        return looks, tuple(number / earlier[0] for number in (*earlier[1:], num_trials))
    if looks.method != "group_sequential":
        return looks, ()
    planned = tuple(fraction for fraction in looks.fractions if fraction <= 1)
    return replace(looks, fractions=planned), tuple(fraction for fraction in looks.fractions if fraction > 1)


def _level_of_extension(planned: Looks, extensions: Sequence[float]) -> NominalAlpha:
    """Return the level of the last extension."""
    if len(extensions) > 1:
        share = EXTENSION_SHARE * (1 - FIRST_EXTENSION_SHARE)
        return cache(lambda alpha: confidence_sequence_level(extensions[-1] / LATER_TARGET, share * alpha))
    spent = EXTENSION_SHARE * FIRST_EXTENSION_SHARE
    return cache(lambda alpha: first_extension_level(float(levels_at(planned, alpha)[-1]), spent * alpha))


@lru_cache(maxsize=4096)
def first_extension_level(first_level: float, alpha: float) -> float:
    r"""Return the level of a second look whose number of trials may depend on the first look in any way.

    Without an effect, the score of the first look, z, is standard normal. If it does not exceed its bound, the run is
    extended to r times the trials, and the score of all trials exceeds a bound c in either direction with probability
    :math:`\Phi(-(c \sqrt r - z) / \sqrt{r - 1}) + \Phi(-(c \sqrt r + z) / \sqrt{r - 1})`. The level belongs to the c
    for which this probability is `alpha` if r is the worst possible one for every z.

    Parameters
    ----------
    first_level
        Two-sided level of the first look.
    alpha
        Largest probability that the second look rejects and the first one does not.

    Returns
    -------
    float
        Two-sided level, at most `alpha`. With few degrees of freedom, use the quantile of Student's t at this level.

    References
    ----------
    Proschan and Hunsberger (1995), https://doi.org/10.2307/2533262, derive the worst case of a one-sided test.

    Examples
    --------
    >>> round(first_extension_level(0.04, 0.006), 5)
    0.00508
    """
    if alpha >= 1:
        return 1.0
    first = min(float(-ndtri(first_level / 2)), MAX_SCORE)
    nodes, weights = _gauss_legendre(NODES_OF_FIRST)
    scores = first * (nodes + 1) / 2
    masses = first * weights * np.exp(-0.5 * scores**2) / math.sqrt(2 * math.pi)  # of both signs
    ratios = 1 + np.geomspace(0.01, 1e5, 100)[:, None]  # of trials; the worst one is between neighboring ones

    def excess(bound: float) -> float:
        limits = bound * np.sqrt(ratios)
        crossing = ndtr((scores - limits) / np.sqrt(ratios - 1)) + ndtr((-scores - limits) / np.sqrt(ratios - 1))
        return math.log(max(float(masses @ crossing.max(axis=0)), 1e-300) / alpha)

    bound = max(first, float(-ndtri(alpha / 2)))
    if excess(bound) > 0:
        bound = float(brentq(excess, bound, bound + MAX_SCORE, xtol=1e-6))
    return max(float(2 * ndtr(-bound)), MIN_LEVEL)


def levels_at(looks: Looks, alpha: float) -> FloatArray:
    """Return the two-sided level of every look, so that all together, and all extensions, keep the level `alpha`.

    Parameters
    ----------
    looks
        Planned looks; a single one without a plan.
    alpha
        Error rate of the whole design.

    Returns
    -------
    array of shape (n_looks,)
    """
    if alpha >= 1:
        return np.ones(max(1, len(looks.fractions)))
    if looks.method == "confidence_sequence":
        return np.array([confidence_sequence_level(fraction, alpha) for fraction in looks.fractions])
    planned = (1 - EXTENSION_SHARE) * alpha
    return group_sequential_levels(looks.fractions, planned) if looks.method else np.array([planned])


MIN_ALPHA, MAX_ALPHA = 1e-12, 0.999
PRECISION = 1.0001

NominalAlpha: TypeAlias = Callable[[float], float]
"""A function of the error rate of a whole procedure. It returns the two-sided level to test at now, so that the
procedure, with all of its looks at the data, keeps that error rate. It is nondecreasing."""


def fixed_design(alpha: float) -> float:
    """Return the level of a single test of a fixed number of subsamples, which is the error rate itself.

    Parameters
    ----------
    alpha
        Error rate of the whole procedure.

    Examples
    --------
    >>> fixed_design(0.05)
    0.05
    """
    return alpha


def procedure_p_value(p_value: float, nominal_alpha: NominalAlpha) -> float:
    """Return the smallest error rate of a procedure at which a test rejects now.

    Parameters
    ----------
    p_value
        p-value of the test, as if the results were examined once.
    nominal_alpha
        Function from the error rate of the procedure to the level of this test.

    Returns
    -------
    float
        The smallest alpha with `p_value` <= `nominal_alpha(alpha)`, found by bisection to four digits and rounded up;
        1 if there is none. It equals `p_value` for a fixed design.

    Examples
    --------
    >>> procedure_p_value(0.03, fixed_design)
    0.03
    >>> round(procedure_p_value(0.01, lambda alpha: alpha / 2), 4)
    0.02
    """
    if nominal_alpha is fixed_design or p_value >= 1:
        return p_value
    if p_value > nominal_alpha(MAX_ALPHA):
        return 1.0
    low, high = MIN_ALPHA, MAX_ALPHA
    while high > PRECISION * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if p_value <= nominal_alpha(middle) else (middle, high)
    return high
