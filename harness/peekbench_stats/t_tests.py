"""Student's t test of paired differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from scipy.stats import ttest_1samp

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
