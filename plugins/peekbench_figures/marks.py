"""What stands in one row of one column: an interval, a violin, a density."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peekbench_figures.density import density
from peekbench_figures.style import BLUE, INK, RED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from peekbench.figures import Interval, Sample


def draw_interval(axes: Axes, y: float, half: float, one: Interval, scale: float) -> None:
    """A line with a dot; of an average a diamond as wide as the interval, as in reports of meta-analyses."""
    low, estimate, high = one.low * scale, one.estimate * scale, one.high * scale
    if one.is_average:
        axes.fill([low, estimate, high, estimate], [y, y - half * 0.7, y, y + half * 0.7], fc=BLUE, lw=0, zorder=3)
        return
    axes.plot([low, high], [y, y], color=BLUE, lw=1.3, solid_capstyle="butt", zorder=2)
    if one.raw is not None:
        axes.plot([one.raw * scale], [y], "o", ms=3.6, mfc="none", mec=INK, mew=0.7, zorder=2.5)
    axes.plot([estimate], [y], "o", ms=3.6, color=BLUE, mew=0, zorder=3)


def draw_violin(axes: Axes, y: float, half: float, sample: Sample, scale: float) -> None:
    import numpy as np

    values = np.array(sample.values) * scale
    if not len(values):
        return
    shape = density(sample.values)
    if shape is None:
        axes.plot(values, np.full(len(values), y), "o", ms=2.4, color=BLUE, mew=0, alpha=0.7, zorder=2)
    else:
        x, height = shape[0] * scale, shape[1]
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
    shape = density(sample.values, is_signed=is_signed)
    if shape is not None:
        x, height = shape[0] * scale, shape[1]
        top = foot - height * half * 1.6
        axes.fill_between(x, foot, top, fc=(*_rgb(BLUE), 0.4), lw=0, zorder=2)
        axes.plot(x, top, color=BLUE, lw=0.8, zorder=2.2)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    axes.plot([low, high], [foot, foot], color=INK, lw=1.8, solid_capstyle="butt", zorder=3)
    axes.plot([values.mean()], [foot], "o", ms=3.6, color=INK, mew=0, zorder=4)


def _rgb(color: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    return to_rgb(color)
