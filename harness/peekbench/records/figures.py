"""Figures as data. Renderer plugins draw them; the core draws forest plots as text only.

Values with the unit 'difference' or 'fraction' are fractions and are drawn as percentage points or percentages. Axis
labels are complete: 'bias, accuracy points'.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from peekbench.records.verdicts import Unit

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class Axis:
    """Label, unit and scale of an axis.

    Examples
    --------
    >>> Axis("bias, accuracy points", region=0.01).unit
    'difference'
    """

    label: str
    """Quantity and its unit in words."""
    unit: Unit = "difference"
    """'difference' is drawn in signed percentage points, 'fraction' in percent, 'change' with a sign, other units
    unchanged."""
    is_log: bool = False
    """Whether the axis has a logarithmic scale."""
    region: float = 0.0
    """Half-width of the region of practical equivalence to shade around zero, in the unit of the values."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A labeled estimate with its interval in a forest plot.

    Examples
    --------
    >>> Interval("tickets", 0.012, low=-0.004, high=0.028).is_average
    False
    """

    label: str
    """Text beside the line."""
    estimate: float
    """Position of the mark."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    is_average: bool = False
    """Whether it summarizes the other intervals of its group."""
    raw: float | None = None
    """The unpooled estimate, if `estimate` is shrunk towards the others."""


@dataclass(frozen=True, slots=True)
class Forest:
    """A forest plot: estimates with intervals, one per line, on one axis.

    Examples
    --------
    >>> forest = Forest("Bias by task", (("lsa", (Interval("tickets", 0.012, -0.004, 0.028),)),))
    >>> forest.axis.label
    'accuracy points'
    """

    title: str
    """Heading of the figure."""
    groups: tuple[tuple[str, tuple[Interval, ...]], ...]
    """(heading, intervals) of each method."""
    note: str = ""
    """One paragraph that readers need to interpret the figure."""
    unit: Unit = "difference"
    """'difference' if the estimates are differences of fractions, drawn in percentage points; otherwise 'change'."""
    label: str = ""
    """Axis label with its unit; 'accuracy points' or 'score' by default."""
    region: float = 0.0
    """Half-width of the region of practical equivalence, as in `Axis`."""
    kind: Literal["forest"] = "forest"
    """Type of the figure in `report.json`."""

    @property
    def axis(self) -> Axis:
        """Axis of the estimates."""
        default = {"difference": "accuracy points"}.get(self.unit, "score")
        return Axis(self.label or default, self.unit, region=self.region)


@dataclass(frozen=True, slots=True)
class Sample:
    """Values whose distribution is drawn: paired differences, posterior draws, or quantiles of these."""

    label: str
    """Text beside the distribution."""
    values: tuple[float, ...]
    """Values, in any order."""
    mark: float | None = None
    """A value for comparison, such as the true value of a simulation or the observed value."""


@dataclass(frozen=True, slots=True)
class Violins:
    """A grid of distributions: a row for each task, a column for each configuration.

    Examples
    --------
    >>> violins = Violins("Bias", Axis("bias, accuracy points"), (("lsa", (Sample("tickets", (0.01, 0.03)),)),))
    >>> violins.kind
    'violins'
    """

    title: str
    """Heading of the figure."""
    axis: Axis
    """Axis of the values, shared by all columns."""
    columns: tuple[tuple[str, tuple[Sample, ...]], ...]
    """(heading, samples) of each column. The rows are the labels of all columns, in order of first occurrence."""
    note: str = ""
    """One paragraph that readers need to interpret the figure."""
    kind: Literal["violins"] = "violins"
    """Type of the figure in `report.json`."""


@dataclass(frozen=True, slots=True)
class Densities:
    """Densities one below the other on one axis, each with its mean and a central interval."""

    title: str
    """Heading of the figure."""
    axis: Axis
    """Axis of the values."""
    groups: tuple[tuple[str, tuple[Sample, ...]], ...]
    """(heading, samples) of each group."""
    level: float
    """Probability of the central interval."""
    note: str = ""
    """One paragraph that readers need to interpret the figure."""
    mark: str = ""
    """Meaning of the samples' marks, such as 'observed'."""
    kind: Literal["densities"] = "densities"
    """Type of the figure in `report.json`."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A line through points of ascending x, optionally with a band around it.

    Examples
    --------
    >>> Curve("lsa", x=(50.0, 200.0), y=(0.61, 0.68)).low
    ()
    """

    label: str
    """Text in the legend."""
    x: tuple[float, ...]
    """Horizontal positions of the points."""
    y: tuple[float, ...]
    """Vertical positions of the points."""
    low: tuple[float, ...] = ()
    """Lower edge of the band."""
    high: tuple[float, ...] = ()
    """Upper edge of the band."""
    is_scatter: bool = field(default=False, kw_only=True)
    """Whether to draw the points without a line between them."""


@dataclass(frozen=True, slots=True)
class Curves:
    """Lines in one or several panels that share their axes.

    Examples
    --------
    >>> panel = ("tickets", (Curve("lsa", (50.0, 200.0), (0.61, 0.68)),))
    >>> Curves("Learning curve", Axis("num_train", "count"), Axis("accuracy", "fraction"), (panel,)).title
    'Learning curve'
    """

    title: str
    """Heading of the figure."""
    x: Axis
    """Horizontal axis."""
    y: Axis
    """Vertical axis."""
    panels: tuple[tuple[str, tuple[Curve, ...]], ...]
    """(heading, curves) of each panel."""
    note: str = ""
    """One paragraph that readers need to interpret the figure."""
    is_diagonal_drawn: bool = False
    """Whether to draw the line y = x, which the curves should approach."""
    kind: Literal["curves"] = "curves"
    """Type of the figure in `report.json`."""


Figure: TypeAlias = Forest | Violins | Densities | Curves
"""Any figure record.

Examples
--------
>>> def describe(figure: Figure) -> str:
...     return f"{figure.kind}: {figure.title}"
>>> describe(Forest("Bias by task", ()))
'forest: Bias by task'
"""
