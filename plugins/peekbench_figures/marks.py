"""Draws the content of one row in one column: an interval, a violin, or a density.

Rows run downwards, so `y` is the middle of the row and `half` is half of its height, both in inches. Density estimates
taper off at both ends and stay smooth for scores that are multiples of 1/n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from arviz_stats.base import array
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from peekbench.records import FloatArray, Interval, Sample
from peekbench_figures.style import BLUE, INK, RED

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
    """Return the values that an axis must contain: both ends of the density, or all values drawn as dots."""
    density = estimate_density(values, is_signed=is_signed)
    return values if density is None else (float(density[0][0]), float(density[0][-1]))


def _bandwidth(values: FloatArray) -> float:
    """Return the bandwidth of Silverman's rule (1986, equation 3.31), but at least `MIN_BANDWIDTH` steps of scores."""
    low, high = np.quantile(values, [0.25, 0.75])
    spread = min(float(values.std()), float(high - low) / 1.34) or float(values.std())
    step = float(np.diff(np.unique(values)).min())
    return max(0.9 * spread * math.pow(len(values), -0.2), MIN_BANDWIDTH * step)


FILL = (*to_rgb(BLUE), 0.4)


def draw_interval(axes: Axes, y: float, half: float, interval: Interval, factor: float) -> None:
    """Draw a line with a dot; an average is a diamond as wide as its interval, as in reports of meta-analyses."""
    low, estimate, high = interval.low * factor, interval.estimate * factor, interval.high * factor
    if interval.is_average:
        axes.fill([low, estimate, high, estimate], [y, y - half * 0.7, y, y + half * 0.7], fc=BLUE, lw=0, zorder=3)
        return
    axes.plot([low, high], [y, y], color=BLUE, lw=1.3, solid_capstyle="butt", zorder=2)
    if interval.raw is not None:
        axes.plot([interval.raw * factor], [y], "o", ms=3.6, mfc="none", mec=INK, mew=0.7, zorder=2.5)
    axes.plot([estimate], [y], "o", ms=3.6, color=BLUE, mew=0, zorder=3)


def draw_violin(axes: Axes, y: float, half: float, sample: Sample, factor: float) -> None:
    """Draw a violin, or dots if the values are few, with the mean and the middle half of the values."""
    values = np.array(sample.values) * factor
    if not len(values):
        return
    density = estimate_density(sample.values)
    if density is None:
        axes.plot(values, np.full(len(values), y), "o", ms=2.4, color=BLUE, mew=0, alpha=0.7, zorder=2)
    else:
        x, height = density[0] * factor, density[1]
        thickness = height * half * 0.92
        outline = np.concatenate([y - thickness, (y + thickness)[::-1]])
        axes.fill(np.concatenate([x, x[::-1]]), outline, fc=FILL, ec=BLUE, lw=0.6, zorder=2)
    low, high = np.quantile(values, [0.25, 0.75])
    axes.plot([low, high], [y, y], color=INK, lw=1.6, solid_capstyle="butt", zorder=3)
    axes.plot([values.mean()], [y], "o", ms=3.2, color=INK, mew=0, zorder=4)


def draw_density(
    axes: Axes, y: float, half: float, sample: Sample, factor: float, level: float, *, is_signed: bool
) -> None:
    """Draw a density with its mean, a central interval and the sample's mark.

    Parameters
    ----------
    axes, y, half, sample, factor
        As for the other marks.
    level
        Share of the values in the central interval.
    is_signed
        Whether values may be negative; otherwise the density ends at zero.
    """
    values = np.array(sample.values) * factor
    foot = y + half * 0.72
    if sample.mark is not None:
        axes.plot([sample.mark * factor] * 2, [y - half, y + half], color=RED, lw=1.4, zorder=3.5)
    if not len(values):
        return
    density = estimate_density(sample.values, is_signed=is_signed)
    if density is not None:
        x, height = density[0] * factor, density[1]
        top = foot - height * half * 1.6
        axes.fill_between(x, foot, top, fc=FILL, lw=0, zorder=2)
        axes.plot(x, top, color=BLUE, lw=0.8, zorder=2.2)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    axes.plot([low, high], [foot, foot], color=INK, lw=1.8, solid_capstyle="butt", zorder=3)
    axes.plot([values.mean()], [foot], "o", ms=3.6, color=INK, mew=0, zorder=4)
