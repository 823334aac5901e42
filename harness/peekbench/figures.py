"""Figure records, for analyses that return figures and renderers that draw them."""

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
