"""The level of the present look, from the record of all looks at a run."""

from __future__ import annotations

from functools import cache, partial

from peekbench.records import Looks
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
    match looks.method:
        case "group_sequential":
            return cache(partial(_level_of_last, looks.fractions))
        case "confidence_sequence":
            return partial(confidence_sequence_level, looks.fractions[-1])
        case _:
            return fixed_design


def _level_of_last(fractions: tuple[float, ...], alpha: float) -> float:
    return float(group_sequential_levels(fractions, alpha)[-1]) if alpha < 1 else 1.0


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
