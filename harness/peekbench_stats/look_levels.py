"""The level of the present look, from the record of all looks at a run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

import numpy as np

from peekbench.records import FloatArray, Looks
from peekbench_stats.alpha_spending import group_sequential_levels
from peekbench_stats.confidence_sequences import confidence_sequence_level
from peekbench_stats.nominal_levels import NominalAlpha, fixed_design

EXTENSION_SHARE = 0.2
"""Share of the error rate that a design of a fixed or maximum size keeps for extensions that it does not plan."""
EXTENSION_TARGET = 4
"""Trials, as a multiple of those at the first look, at which the confidence sequence of extensions is narrowest."""


def level_at(looks: Looks, num_trials: int = 0, earlier: Sequence[int] = ()) -> NominalAlpha:
    """Return the function from the error rate of a design with all of its looks to the level of the present look.

    The first report of a run has the level of a fixed design or of its planned looks, at an error rate of
    1 - `EXTENSION_SHARE` times the whole. If the run is then extended, whatever the reason and however often, a
    confidence sequence has the remaining error rate. By Bonferroni's inequality, all verdicts together keep the error
    rate. A design whose looks are an open-ended confidence sequence needs no such share, and neither does a table whose
    looks are unknown.

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
    >>> round(level_at(Looks(are_known=True))(0.05), 4), level_at(Looks())(0.05)
    (0.04, 0.05)
    >>> round(level_at(Looks(are_known=True), num_trials=80, earlier=[20])(0.05), 5)
    0.00035
    """
    if not looks.are_known:
        return fixed_design
    if earlier:
        return _level_of_extension(num_trials / earlier[0])
    if looks.method == "group_sequential" and looks.fractions[-1] > 1:
        return _level_of_extension(looks.fractions[-1])
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
    if not looks.are_known:
        return fixed_design
    if looks.method == "confidence_sequence" and not earlier:
        return partial(confidence_sequence_level, ratio * looks.fractions[-1])
    start = num_trials / earlier[0] if earlier else max(1.0, *looks.fractions) if looks.fractions else 1.0
    return _level_of_extension(ratio * start)


def _level_of_extension(ratio: float) -> NominalAlpha:
    return cache(lambda alpha: confidence_sequence_level(ratio / EXTENSION_TARGET, EXTENSION_SHARE * alpha))


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
