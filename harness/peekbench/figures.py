"""Figure records, which analyses return and renderer plugins draw."""

from peekbench.records.figures import (
    Axis,
    Curve,
    Curves,
    Densities,
    Figure,
    Forest,
    Interval,
    Sample,
    Violins,
    downsample,
)

__all__ = [
    "Axis",
    "Curve",
    "Curves",
    "Densities",
    "Figure",
    "Forest",
    "Interval",
    "Sample",
    "Violins",
    "downsample",
]
