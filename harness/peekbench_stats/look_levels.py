"""The level of the present look, from the record of all looks at a run."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from peekbench.records import FloatArray, Looks
from peekbench_stats.alpha_spending import group_sequential_levels
from peekbench_stats.confidence_sequences import confidence_sequence_level
from peekbench_stats.nominal_levels import NominalAlpha, fixed_design


def level_at(looks: Looks) -> NominalAlpha:
    """Return the function from the error rate of a planned design with looks to the level of the present look.

    Parameters
    ----------
    looks
        Planned looks. Looks that no design planned do not count, see `valid_level`.

    Examples
    --------
    >>> looks = Looks("group_sequential", fractions=(0.5, 1.0))
    >>> round(level_at(looks)(0.05), 4)
    0.049
    >>> level_at(Looks())(0.05)
    0.05
    """
    return cache(partial(_last_level, looks)) if looks.method else fixed_design


def _last_level(looks: Looks, alpha: float) -> float:
    return float(levels_at(looks, alpha)[-1])


def levels_at(looks: Looks, alpha: float) -> FloatArray:
    """Return the two-sided level of every look of a planned design, so that all together keep the level `alpha`.

    Parameters
    ----------
    looks
        Planned looks.
    alpha
        Error rate of the whole design.

    Returns
    -------
    array of shape (n_looks,)
    """
    if alpha >= 1:
        return np.ones(len(looks.fractions))
    if looks.method == "group_sequential":
        return group_sequential_levels(looks.fractions, alpha)
    return np.array([confidence_sequence_level(fraction, alpha) for fraction in looks.fractions])


def valid_level(num_trials: int, first: int) -> NominalAlpha:
    """Return the function from an error rate to the level of an interval that holds at every look at once.

    Parameters
    ----------
    num_trials
        Trials now.
    first
        Trials at the first look, for which the confidence sequence is narrowest.
    """
    return partial(confidence_sequence_level, num_trials / first)
