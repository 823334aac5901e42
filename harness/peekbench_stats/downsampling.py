"""Fewer values with the same distribution, for figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peekbench.records import FloatArray

MAX_VALUES = 200


def downsample(values: Sequence[float] | FloatArray, max_values: int = MAX_VALUES) -> tuple[float, ...]:
    """Reduce values to a smaller number with the same distribution.

    Parameters
    ----------
    values
        Numbers in an array of any shape; values that are not finite are dropped.
    max_values
        Maximum number of values to return.

    Returns
    -------
    tuple of float
        Values at evenly spaced ranks in ascending order, rounded to five significant digits.

    Examples
    --------
    >>> downsample([0.3, 0.1, 0.2])
    (0.1, 0.2, 0.3)
    >>> downsample(range(1000), max_values=4)
    (124.88, 374.62, 624.38, 874.12)
    """
    ordered = np.sort(np.asarray(values, dtype=float).ravel())
    ordered = ordered[np.isfinite(ordered)]
    if len(ordered) > max_values:
        ordered = np.quantile(ordered, (np.arange(max_values) + 0.5) / max_values)
    return tuple(float(f"{value:.5g}") for value in ordered.tolist())
