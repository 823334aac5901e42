"""Kernel density estimates that taper off at both ends and stay smooth for scores that are multiples of 1/n."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from arviz_stats.base import array

from peekbench.records import FloatArray

MIN_VALUES = 10  # for a density; fewer values are drawn as dots
REACH = 3.0  # bandwidths beyond the outermost values at which the density is evaluated
MIN_HEIGHT = 0.03  # share of the highest density below which ends are not drawn
MIN_BANDWIDTH = 0.6  # in steps between scores: Gaussian kernels of this width add up to ripples of less than 1%
POINTS_PER_DRAWN_POINT = 4  # at which the density is evaluated
MIN_POINTS, MAX_POINTS = 40, 160


def estimate_density(values: Sequence[float], *, is_signed: bool = True) -> tuple[FloatArray, FloatArray] | None:
    """Estimate a density with Gaussian kernels.

    Parameters
    ----------
    values
        Sample, of any length.
    is_signed
        Whether values may be negative. A density of values that cannot be negative is reflected at zero.

    Returns
    -------
    tuple[FloatArray, FloatArray] | None
        Positions and heights, (n_points,) each, with a highest point of 1; None if the values are too few or all equal.
    """
    sample = np.asarray(values, dtype=float)
    if len(sample) < MIN_VALUES or math.isclose(sample.min(), sample.max(), abs_tol=1e-11):
        return None
    bandwidth = _bandwidth(sample)
    low, high = sample.min() - REACH * bandwidth, sample.max() + REACH * bandwidth
    if not is_signed:
        low = max(0.0, low)
    num_points = min(max(math.ceil(2 * (high - low) / bandwidth), MIN_POINTS), MAX_POINTS)
    kde: Any = array.array_stats.kde  # untyped
    x, height, _ = kde(
        sample,
        grid_len=POINTS_PER_DRAWN_POINT * num_points + 1,
        bw=bandwidth,
        custom_lims=(low, high),
        bound_correction=not is_signed and low == 0,
    )
    x, height = x[::POINTS_PER_DRAWN_POINT], height[::POINTS_PER_DRAWN_POINT] / height.max()
    drawn = np.flatnonzero(height >= MIN_HEIGHT)
    kept = slice(max(drawn[0] - 1, 0), drawn[-1] + 2)
    return x[kept], height[kept]


def density_extent(values: Sequence[float], *, is_signed: bool = True) -> Sequence[float]:
    """Return what an axis must contain: both ends of the density, or all values if they are drawn as dots."""
    density = estimate_density(values, is_signed=is_signed)
    return values if density is None else (float(density[0][0]), float(density[0][-1]))


def _bandwidth(values: FloatArray) -> float:
    """Return the bandwidth of Silverman's rule (1986, equation 3.31), but at least `MIN_BANDWIDTH` steps of scores."""
    low, high = np.quantile(values, [0.25, 0.75])
    spread = min(float(values.std()), float(high - low) / 1.34) or float(values.std())
    step = float(np.diff(np.unique(values)).min())
    return max(0.9 * spread * math.pow(len(values), -0.2), MIN_BANDWIDTH * step)
