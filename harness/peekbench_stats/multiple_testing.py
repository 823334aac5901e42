"""Adjustment of p-values for the number of tests.

For the adjustment of Benjamini and Hochberg, use `scipy.stats.false_discovery_control`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peekbench.records import FloatArray


def holm(p_values: Sequence[float] | FloatArray) -> FloatArray:
    """Adjust p-values so that they control the family-wise error rate (Holm's step-down procedure).

    Parameters
    ----------
    p_values
        One p-value per test, shape (n_tests,).

    Returns
    -------
    array of shape (n_tests,)
        Adjusted p-values, in the order given. If all tests with an adjusted p-value of at most `level` are rejected,
        the probability that any of these rejections is wrong is at most `level`.

    References
    ----------
    Holm (1979), https://www.jstor.org/stable/4615733

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, dtype="float64")
    order = np.argsort(values, kind="stable")
    multiplied = (len(values) - np.arange(len(values))) * values[order]
    adjusted: FloatArray = np.empty_like(values)
    adjusted[order] = np.maximum.accumulate(np.minimum(multiplied, 1.0))
    return adjusted
