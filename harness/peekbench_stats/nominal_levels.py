"""Levels of tests that keep their error rate when the same data are examined repeatedly."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

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
