"""Draws the content of one row in one column: an interval, a violin, or a density.

Rows run downwards, so `y` is the middle of the row and `half` is half of its height, both in inches.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from peekbench.records import Interval, Sample
from peekbench_figures.density import estimate_density
from peekbench_figures.style import BLUE, INK, RED

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
