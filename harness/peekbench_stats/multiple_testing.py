"""Adjustment of p-values, levels and intervals for the number of tests.

For p-values adjusted after Benjamini and Hochberg, use `scipy.stats.false_discovery_control`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import false_discovery_control

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


def selection_level(p_values: Sequence[float] | FloatArray, alpha: float) -> float:
    """Return the level at which the procedure of Benjamini and Hochberg tests each hypothesis of a family.

    It is max(1, R) alpha / m for R rejections of m hypotheses: the procedure rejects the hypotheses with p-values of at
    most this level. An interval of coverage one minus this level therefore agrees with the test of its hypothesis, and
    among the intervals of rejected hypotheses, the expected share that does not contain the true value is at most
    `alpha` (false coverage rate).

    Parameters
    ----------
    p_values
        One p-value per hypothesis, shape (m,).
    alpha
        False discovery rate.

    Returns
    -------
    float
        `alpha` for a single hypothesis.

    References
    ----------
    Benjamini and Hochberg (1995), https://doi.org/10.1111/j.2517-6161.1995.tb02031.x; Benjamini and Yekutieli (2005),
    https://doi.org/10.1198/016214504000001907

    Examples
    --------
    >>> round(selection_level([0.001, 0.02, 0.03, 0.6], 0.05), 4)
    0.0375
    """
    ordered = np.sort(np.asarray(p_values, dtype="float64"))
    levels = np.arange(1, len(ordered) + 1) * (alpha / len(ordered))
    passing = np.flatnonzero(ordered <= levels)
    return float(levels[passing[-1] if len(passing) else 0])


def hierarchical_rejections(groups: Sequence[Sequence[float] | FloatArray], alpha: float) -> list[list[bool]]:
    """Test the hypotheses of several groups, but only within groups that contain an effect.

    A group is examined if its Simes p-value, which tests that none of its hypotheses is false, is rejected among those
    of all groups by the procedure of Benjamini and Hochberg. Within each of these groups, the same procedure tests the
    hypotheses. If all hypotheses are true, the probability of any rejection is at most `alpha`.

    Parameters
    ----------
    groups
        p-values, one nonempty sequence per group, such as the tasks of a method.
    alpha
        False discovery rate of both steps.

    Returns
    -------
    list of list of bool
        Whether each hypothesis is rejected.

    References
    ----------
    Yekutieli (2008), https://doi.org/10.1198/016214507000001373; Simes (1986), https://doi.org/10.1093/biomet/73.3.751

    Examples
    --------
    The second group contains too little evidence among two groups:

    >>> hierarchical_rejections([[0.001, 0.02, 0.7], [0.03, 0.8, 0.9]], 0.05)
    [[True, True, False], [False, False, False]]
    """
    adjusted = [false_discovery_control(group) for group in groups]
    simes = np.array([group.min() for group in adjusted])
    is_examined = simes <= selection_level(simes, alpha)
    return [
        [bool(p <= alpha) for p in group] if examined else [False] * len(group)
        for group, examined in zip(adjusted, is_examined, strict=True)
    ]
