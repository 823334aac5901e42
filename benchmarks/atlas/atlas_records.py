"""The numbers of the atlas: what docs/atlas.json contains, and what the page and its figures are written from.

Scores and effects are fractions, or bits per byte where a section says so. Intervals have the level 95%, adjusted for
all estimates of the same table.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

POINTS, BITS = "points", "bits per byte"


class Record(BaseModel):
    """A record that does not change."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Effect(Record):
    """A mean difference between two arms."""

    mean: float
    low: float | None = None
    high: float | None = None
    decision: str = ""
    """Decision of `summary` on this difference, or the outcome of a control."""
    other_tasks: str = ""
    """What `summary` says about a bias in other tasks like these."""

    @property
    def is_up(self) -> bool:
        """Whether the difference is significantly positive."""
        return self.low is not None and self.low > 0

    @property
    def is_down(self) -> bool:
        """Whether the difference is significantly negative."""
        return self.high is not None and self.high < 0


class Cell(Record):
    """One method on one task."""

    boost: Effect
    bias: Effect


class Method(Record):
    """One method on all tasks of a section."""

    name: str
    spec: str
    """Name of the file in specs/atlas that runs the method, without suffix."""
    control: str
    subsamples: int
    """Subsamples per task."""
    base: float
    extra: float
    test: float
    boost: Effect
    bias: Effect
    detectable: float | None
    """Smallest average bias that the run detects with a power of 80% at a level of 5%; None for controls."""
    tasks: dict[str, Cell]


class Section(Record):
    """Methods on the same tasks with the same sizes."""

    name: str
    unit: str
    num_train: int
    num_test: int
    num_tasks: int
    methods: list[Method]


class Line(Record):
    """Effects of one method by dose or by size, averaged over tasks."""

    method: str
    control: str
    x: list[float]
    effects: list[Effect]


class Series(Record):
    """Lines over doses, numbers of test texts or numbers of train texts."""

    name: str
    """Name of the spec."""
    num_train: int | None
    """None if the lines are over this number."""
    num_test: int | None
    subsamples: int
    lines: list[Line]


class Run(Record):
    """A finished run of a spec."""

    spec: str
    purpose: str
    trials: int
    subsamples: int


class Atlas(Record):
    """All numbers of the atlas."""

    runs: list[Run]
    missing: list[str]
    """Specs without a finished store."""
    sections: list[Section]
    series: list[Series]

    def section(self, name: str) -> Section | None:
        """Return a section by name; None if its specs have not been run."""
        return next((section for section in self.sections if section.name == name), None)

    def one_series(self, name: str) -> Series | None:
        """Return the lines of a spec; None if it has not been run."""
        return next((series for series in self.series if series.name == name), None)
