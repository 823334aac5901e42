"""Levels of tests that keep their error rate when the same data are examined repeatedly."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

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
