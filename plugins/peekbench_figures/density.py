"""The outline of a distribution: a kernel density that tapers off, smooth where values are multiples of 1/n too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peekbench.records import FloatArray

FEWEST = 10  # values of which a density is drawn; fewer are dots
REACH = 3.0  # bandwidths beyond the outermost values that are looked at
NEGLIGIBLE = 0.03  # of the highest density: ends that are lower are not drawn
LEAST_STEPS = 0.6  # bandwidth, in steps between scores: Gaussian kernels that wide add up to less than 1% of ripples
FINE = 4  # points computed for one drawn
FEWEST_POINTS, MOST_POINTS = 40, 160


def density(values: Sequence[float], *, is_signed: bool = True) -> tuple[FloatArray, FloatArray] | None:
    """Places and a Gaussian kernel density scaled to 1 at its highest; None where values are too few, or all alike.

    Parameters
    ----------
    is_signed
        Whether values may be negative; else a density that reaches zero ends there and is reflected.
    """
    import numpy as np
    from arviz_stats.base import array

    found = np.asarray(values, dtype=float)
    if len(found) < FEWEST or math.isclose(found.min(), found.max(), abs_tol=1e-11):
        return None
    width = _bandwidth(found)
    low, high = found.min() - REACH * width, found.max() + REACH * width
    if not is_signed:
        low = max(0.0, low)
    points = min(max(math.ceil(2 * (high - low) / width), FEWEST_POINTS), MOST_POINTS)
    kde: Any = array.array_stats.kde  # which has no types
    x, height, _ = kde(
        found,
        grid_len=FINE * points + 1,
        bw=width,
        custom_lims=(low, high),
        bound_correction=not is_signed and low == 0,
    )
    x, height = x[::FINE], height[::FINE] / height.max()
    drawn = np.flatnonzero(height >= NEGLIGIBLE)
    kept = slice(max(drawn[0] - 1, 0), drawn[-1] + 2)
    return x[kept], height[kept]


def ends(values: Sequence[float], *, is_signed: bool = True) -> Sequence[float]:
    """What an axis must hold of a density: its first and last place, or all values where they are drawn as dots."""
    shape = density(values, is_signed=is_signed)
    return values if shape is None else (float(shape[0][0]), float(shape[0][-1]))


def _bandwidth(values: FloatArray) -> float:
    """Silverman's rule (1986, equation 3.31), and no less than scores that are multiples of 1/n need."""
    import numpy as np

    low, high = np.quantile(values, [0.25, 0.75])
    spread = min(float(values.std()), float(high - low) / 1.34) or float(values.std())
    step = float(np.diff(np.unique(values)).min())
    return max(0.9 * spread * math.pow(len(values), -0.2), LEAST_STEPS * step)
