"""What an analysis returns: tables, figures and verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from peekbench.records.figures import Figure
from peekbench.records.trials import Control
from peekbench.records.units import Unit

if TYPE_CHECKING:
    from collections.abc import Callable


Topic: TypeAlias = Literal["results", "methods", "data"]

Cell: TypeAlias = str | int | float | bool | None

Decision: TypeAlias = Literal["biased up", "biased down", "equivalent", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    unit: Unit = "text"


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    """What a reader must know to read it right; one paragraph."""
    topic: Topic = "results"
    """Which part of a report it belongs to."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an analysis concludes about one method."""

    method: str
    """As the report names it: the method's label, with its model where it has one."""
    effect: str
    """'bias' or 'boost', or what else was judged."""
    decision: Decision
    sentence: str
    """The conclusion in plain words, interval included."""
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    """Coverage that [low, high] is meant to have."""
    region: float | None = None
    """Half-width of the region of practical equivalence around 0 that the decision was made with."""
    basis: str = ""
    """What it rests on, in a few words: '5 tasks, 250 trials'."""
    unit: Unit = "difference"
    """Of estimate, low, high and region: 'difference' for those of fractions, 'change' for others."""
    control: Control = ""
    """Whether it is on a method whose bias is known beforehand, so that it judges the run, not the method."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """What an analyzer returns: no file, no printing, the report does that."""

    name: str
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    warnings: tuple[str, ...] = ()
    """What weakens the conclusions: holes in the design, failed diagnostics."""
    attachments: Mapping[str, Callable[[Path], None]] = field(default_factory=dict, repr=False, compare=False)
    """Files to stand next to the report: name to what writes it to a path. Called only when a report is written."""
