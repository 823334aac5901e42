"""What analyses want drawn, as data: the core draws none of it but forests in characters, a painter plugin the rest.

Values of 'difference' and 'fraction' are fractions, drawn in percentage points and percent. An axis is labeled in
full: 'bias, accuracy points'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from peekbench.records.units import Unit

if TYPE_CHECKING:
    from peekbench.records.data import FloatArray


@dataclass(frozen=True, slots=True)
class Axis:
    label: str
    """What is measured, and its unit in words."""
    unit: Unit = "difference"
    """'difference' is drawn in signed percentage points, 'fraction' in percent, 'change' with its sign, others
    as they are."""
    is_log: bool = False
    region: float = 0.0
    """Half-width of a region of practical equivalence to shade around zero, in the unit of the values."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A labeled estimate in a forest plot."""

    label: str
    estimate: float
    low: float
    high: float
    is_average: bool = False
    """Whether it sums up the others of its group."""
    raw: float | None = None
    """The estimate on its own, where `estimate` was drawn towards others."""


@dataclass(frozen=True, slots=True)
class Forest:
    """Estimates with intervals, one below the other on one axis."""

    title: str
    groups: tuple[tuple[str, tuple[Interval, ...]], ...]
    """(heading, intervals), one group a method."""
    note: str = ""
    unit: Unit = "difference"
    """Of the estimates: 'difference' for those of fractions, drawn in percentage points; 'change' for others."""
    label: str = ""
    """Of the axis, unit included; by default 'accuracy points' or 'score'."""
    region: float = 0.0
    """As that of an `Axis`."""
    kind: Literal["forest"] = "forest"

    @property
    def axis(self) -> Axis:
        default = "accuracy points" if self.unit == "difference" else "score"
        return Axis(self.label or default, self.unit, region=self.region)


@dataclass(frozen=True, slots=True)
class Sample:
    """Values whose distribution is drawn: single differences, draws of a posterior, or as many quantiles of them."""

    label: str
    values: tuple[float, ...]
    mark: float | None = None
    """A value to compare them with: the truth of a simulation, or what was observed."""


@dataclass(frozen=True, slots=True)
class Violins:
    """Distributions side by side: a row a task, a column a configuration."""

    title: str
    axis: Axis
    columns: tuple[tuple[str, tuple[Sample, ...]], ...]
    """(heading, samples); the rows are the labels of all columns, in the order in which they first occur."""
    note: str = ""
    kind: Literal["violins"] = "violins"


@dataclass(frozen=True, slots=True)
class Densities:
    """Distributions one below the other on one axis, each with its mean and a central interval."""

    title: str
    axis: Axis
    groups: tuple[tuple[str, tuple[Sample, ...]], ...]
    """(heading, samples)"""
    level: float
    """Share of a distribution that its bar holds."""
    note: str = ""
    mark: str = ""
    """What the marks of samples are: 'observed'."""
    kind: Literal["densities"] = "densities"


@dataclass(frozen=True, slots=True)
class Curve:
    """A line through points of ascending x, with a band around it where there is one."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Curves:
    """Lines in one or several panels that share their axes."""

    title: str
    x: Axis
    y: Axis
    panels: tuple[tuple[str, tuple[Curve, ...]], ...]
    """(heading, curves)"""
    note: str = ""
    is_diagonal_drawn: bool = False
    """Whether to draw y = x, to which the curves should come close."""
    is_centered: bool = False
    """Whether each panel's y axis, of the same length in all, is around its own values: how wide bands are matters more
    than where they are."""
    kind: Literal["curves"] = "curves"


Figure: TypeAlias = Forest | Violins | Densities | Curves

MAX_VALUES = 200


def downsample(values: Sequence[float] | FloatArray, most: int = MAX_VALUES) -> tuple[float, ...]:
    """At most so many values with the distribution of all: those at evenly spaced ranks, five significant digits."""
    import numpy as np

    ordered = np.sort(np.asarray(values, dtype=float).ravel())
    ordered = ordered[np.isfinite(ordered)]
    if len(ordered) > most:
        ordered = np.quantile(ordered, (np.arange(most) + 0.5) / most)
    return tuple(float(f"{value:.5g}") for value in ordered.tolist())
