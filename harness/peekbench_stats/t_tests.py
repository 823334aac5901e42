"""The t test, and degrees of freedom of sums of variances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np
from scipy.stats import ttest_1samp

from peekbench.records import FloatArray


@overload
def welch_satterthwaite(
    squared_errors: Sequence[float], degrees: Sequence[float], *, exact_sum: bool = ...
) -> float: ...


@overload
def welch_satterthwaite(squared_errors: FloatArray, degrees: FloatArray, *, exact_sum: bool = ...) -> FloatArray: ...


def welch_satterthwaite(squared_errors: Any, degrees: Any, *, exact_sum: bool = False) -> Any:
    r"""Return the degrees of freedom of a sum of independent estimates (Welch-Satterthwaite equation).

    With squared standard errors :math:`v_i` of the estimates and their degrees of freedom :math:`d_i`, the result is
    :math:`(\sum_i v_i)^2 / \sum_i (v_i^2 / d_i)`. It is the same for the sum of the estimates and for their mean.

    Parameters
    ----------
    squared_errors
        Squared standard error of each estimate, shape (..., n_estimates).
    degrees
        Degrees of freedom of each estimate, of the same shape.
    exact_sum
        If True, add with `math.fsum`, whose result does not depend on the order of the estimates; one dimension only.

    Returns
    -------
    float or array of shape (...)
        Infinity if all squared errors are zero.

    References
    ----------
    Satterthwaite (1946), https://doi.org/10.2307/3002019

    Examples
    --------
    Two estimates that are equally certain have twice the degrees of freedom of one:

    >>> welch_satterthwaite([0.5, 0.5], [9, 9])
    18.0
    >>> welch_satterthwaite([0.5, 0.0], [9, 9])
    9.0
    """
    if exact_sum:
        total = math.fsum(squared_errors)
        parts = math.fsum(squared**2 / degree for squared, degree in zip(squared_errors, degrees, strict=True))
        return total**2 / parts if parts > 0 else math.inf
    errors = np.asarray(squared_errors, dtype="float64")
    numerator = errors.sum(axis=-1) ** 2
    denominator = (errors**2 / np.asarray(degrees)).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        result = np.where(denominator > 0, numerator / denominator, np.inf)
    return float(result) if result.ndim == 0 else result


MIN_RANGE = 1e-9  # values that differ by less are equal except for rounding


def t_test(values: Sequence[float], *, alternative: Literal["two-sided", "greater"] = "two-sided") -> float | None:
    """Test whether the mean of paired differences is zero.

    Applied to the mean differences of tasks, this is the paired t test over tasks.

    Parameters
    ----------
    values
        Paired differences, such as test minus extra, shape (n_values,).
    alternative
        'greater' tests against the alternative of a positive mean.

    Returns
    -------
    float or None
        p-value; None for fewer than two values, or if all values are equal.

    Examples
    --------
    >>> round(t_test([0.1, 0.3, 0.2, 0.1]), 4)
    0.0354
    >>> t_test([0.1, 0.1]) is None
    True
    """
    if len(values) < 2 or max(values) - min(values) < MIN_RANGE:
        return None
    return float(ttest_1samp(values, 0, alternative=alternative).pvalue)
