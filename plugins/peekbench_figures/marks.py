"""What stands in one row of one column: an interval, a violin, a density."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from peekbench_figures.style import BLUE, INK, RED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from peekbench import FloatArray, Interval, Sample

FEWEST = 5  # values of which a density is drawn; fewer are dots
TAIL = 0.15  # of the range of values, by which a density goes on at both ends
POINTS = 201  # of a density, every fourth of which is drawn


def draw_interval(axes: Axes, y: float, half: float, one: Interval, scale: float) -> None:
    low, estimate, high = one.low * scale, one.estimate * scale, one.high * scale
    axes.plot([low, high], [y, y], color=BLUE, lw=2.2 if one.is_average else 1.3, solid_capstyle="butt", zorder=2)
    if one.raw is not None:
        axes.plot([one.raw * scale], [y], "o", ms=3.6, mfc="none", mec=INK, mew=0.7, zorder=2.5)
    axes.plot(
        [estimate], [y], "D" if one.is_average else "o", ms=5 if one.is_average else 3.6, color=BLUE, mew=0, zorder=3
    )


def draw_violin(axes: Axes, y: float, half: float, sample: Sample, scale: float) -> None:
    import numpy as np

    values = np.array(sample.values) * scale
    if not len(values):
        return
    shape = _density(values)
    if shape is None:
        axes.plot(values, np.full(len(values), y), "o", ms=2.4, color=BLUE, mew=0, alpha=0.7, zorder=2)
    else:
        x, height = shape
        tall = height * half * 0.92
        outline = np.concatenate([y - tall, (y + tall)[::-1]])
        axes.fill(np.concatenate([x, x[::-1]]), outline, fc=(*_rgb(BLUE), 0.4), ec=BLUE, lw=0.6, zorder=2)
    low, high = np.quantile(values, [0.25, 0.75])
    axes.plot([low, high], [y, y], color=INK, lw=1.6, solid_capstyle="butt", zorder=3)
    axes.plot([values.mean()], [y], "o", ms=3.2, color=INK, mew=0, zorder=4)


def draw_density(
    axes: Axes, y: float, half: float, sample: Sample, scale: float, level: float, *, is_signed: bool
) -> None:
    """Standing on its row; what cannot be negative ends where its values do."""
    import numpy as np

    values = np.array(sample.values) * scale
    foot = y + half * 0.72
    if sample.mark is not None:
        axes.plot([sample.mark * scale] * 2, [y - half, y + half], color=RED, lw=1.4, zorder=3.5)
    if not len(values):
        return
    shape = _density(values, extend=is_signed, extend_fct=TAIL, bound_correction=not is_signed)
    if shape is not None:
        x, height = shape
        top = foot - height * half * 1.6
        axes.fill_between(x, foot, top, fc=(*_rgb(BLUE), 0.4), lw=0, zorder=2)
        axes.plot(x, top, color=BLUE, lw=0.8, zorder=2.2)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    axes.plot([low, high], [foot, foot], color=INK, lw=1.8, solid_capstyle="butt", zorder=3)
    axes.plot([values.mean()], [foot], "o", ms=3.6, color=INK, mew=0, zorder=4)


def density_ends(sample: Sample, *, is_signed: bool) -> tuple[float, ...]:
    """First and last place of a density; none where there are no values."""
    if not sample.values:
        return ()
    low, high = min(sample.values), max(sample.values)
    tail = TAIL * (high - low) if is_signed else 0.0
    return low - tail, high + tail


def _density(values: FloatArray, **how: Any) -> tuple[FloatArray, FloatArray] | None:
    """Places and a kernel density scaled to 1 at its highest; None where the values are too few, or all alike."""
    from arviz_stats.base import array

    if len(values) < FEWEST or math.isclose(values.min(), values.max(), abs_tol=1e-9):
        return None
    kde: Any = array.array_stats.kde  # which has no types
    x, height, _ = kde(values, grid_len=POINTS, bw="scott", **how)
    return x[::4], height[::4] / height.max()


def _rgb(colour: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    return to_rgb(colour)
