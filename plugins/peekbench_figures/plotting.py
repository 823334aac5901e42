"""Draws figure records on axes of a user's own picture, in one panel, with the user's own fonts and settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, assert_never

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, ScalarFormatter

from peekbench.records import Axis, Curves, Densities, Figure, Forest, Violins
from peekbench_figures.curves import LINE
from peekbench_figures.marks import draw_density, draw_interval, draw_violin
from peekbench_figures.scale import axis_name, factor
from peekbench_figures.style import INK, REGION, line_style

ROW_HEIGHT = 0.3  # inches, of a new picture
HALF = 0.4  # of the distance between two rows
T = TypeVar("T")


def plot(figure: Figure, ax: Axes | None = None) -> Axes:
    """Draw a figure on axes; see `peekbench.plugins.protocols.Plot`."""
    match figure:
        case Forest():
            scale = factor(figure.axis)
            return _plot_rows(
                ax, figure.axis, figure.groups, lambda axes, y, interval: draw_interval(axes, y, HALF, interval, scale)
            )
        case Violins():
            scale = factor(figure.axis)
            return _plot_rows(
                ax, figure.axis, figure.columns, lambda axes, y, sample: draw_violin(axes, y, HALF, sample, scale)
            )
        case Densities():
            scale, level, is_signed = factor(figure.axis), figure.level, figure.axis.unit != "spread"
            return _plot_rows(
                ax,
                figure.axis,
                figure.groups,
                lambda axes, y, sample: draw_density(axes, y, HALF, sample, scale, level, is_signed=is_signed),
            )
        case Curves():
            return _plot_curves(ax, figure)
        case _:
            assert_never(figure)


def _plot_rows(
    ax: Axes | None, axis: Axis, groups: Sequence[tuple[str, Sequence[T]]], draw: Callable[[Axes, float, T], None]
) -> Axes:
    """Draw one row for each item, from top to bottom, with the heading of its group in its label."""
    rows = [(heading, item) for heading, items in groups for item in items]
    if ax is None:
        _, ax = plt.subplots(figsize=(7.2, 1 + ROW_HEIGHT * len(rows)), layout="constrained")
    for row, (_, item) in enumerate(rows):
        draw(ax, row, item)
    is_single = len(groups) == 1
    labels = [str(getattr(item, "label", "")) for _, item in rows]
    ax.set_yticks(
        range(len(rows)),
        [label if is_single else f"{heading}: {label}" for (heading, _), label in zip(rows, labels, strict=True)],
    )
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlabel(axis_name(axis))
    if axis.is_log:
        ax.set_xscale("log")
    else:
        ax.axvline(0, color=INK, lw=0.7, alpha=0.6, zorder=0.7)
    if axis.region:
        half = axis.region * factor(axis)
        ax.axvspan(-half, half, color=INK, alpha=REGION, lw=0, zorder=0.5)
    return ax


def _plot_curves(ax: Axes | None, figure: Curves) -> Axes:
    """Draw the curves of all panels on the same axes, each with its own style."""
    if ax is None:
        _, ax = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    curves = [(heading, curve) for heading, panel in figure.panels for curve in panel]
    of_x, of_y = factor(figure.x), factor(figure.y)
    for number, (heading, curve) in enumerate(curves):
        style = line_style(number)
        label = f"{heading}: {curve.label}" if heading and len(figure.panels) > 1 else curve.label
        x, y = [value * of_x for value in curve.x], [value * of_y for value in curve.y]
        ax.plot(
            x,
            y,
            color=style.color,
            ls="none" if curve.is_scatter else style.dash,
            marker=style.marker,
            label=label,
            markevery=1 if curve.is_scatter else max(1, len(x) // 10),
            **LINE,
        )
        if curve.low:
            low, high = ([value * of_y for value in ends] for ends in (curve.low, curve.high))
            ax.fill_between(x, low, high, color=style.color, alpha=0.18, lw=0)
    if figure.is_diagonal_drawn:
        ax.axline((0, 0), slope=1, color=INK, alpha=0.5, lw=0.8)
    if figure.x.is_log:
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter(ScalarFormatter())
    if figure.y.is_log:
        ax.set_yscale("log")
    if figure.y.region:
        half = figure.y.region * of_y
        ax.axhspan(-half, half, color=INK, alpha=REGION, lw=0, zorder=0.5)
    ax.set(xlabel=axis_name(figure.x), ylabel=axis_name(figure.y))
    if len(curves) > 1:
        ax.legend(frameon=False, fontsize="small")
    return ax
