"""What an analysis returns: tables, figures and verdicts, and facts that tables state in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from peekbench.records.figures import Figure
from peekbench.records.units import Unit
from peekbench.records.verdicts import Estimate, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable


Topic: TypeAlias = Literal["results", "methods", "data"]
"""Part of a report to which a table or a figure belongs.

Examples
--------
>>> from typing import get_args
>>> get_args(Topic)
('results', 'methods', 'data')
"""

Cell: TypeAlias = str | int | float | bool | None
"""Value in a row of a table. None is shown as a dash.

Examples
--------
>>> row: tuple[Cell, ...] = ("news", 0.71, 200, True, None)
>>> Table("Scores", tuple(map(Column, "abcde")), (row,)).rows[0][1]
0.71
"""


@dataclass(frozen=True, slots=True)
class Column:
    """Heading and unit of a table's column.

    Examples
    --------
    >>> Column("bias", "difference").unit
    'difference'
    """

    name: str
    """Heading of the column."""
    unit: Unit = "text"
    """How the values are shown, see `peekbench.records.Unit`."""


@dataclass(frozen=True, slots=True)
class RuleWorth:
    """What a rule of adaptation was worth: its scores minus those with independent unlabeled texts.

    Examples
    --------
    >>> decisions = {"equivalent": 2}
    >>> worth = RuleWorth("cross-5", "cross", "5", "", (2, 2), -0.001, 0.002, 0.95, decisions, "difference")
    >>> worth.decisions["equivalent"]
    2
    """

    rule: str
    """Name of the arm."""
    kind: str
    """Kind of the arm, such as 'cross'."""
    num_blocks: str
    """Blocks of the test set; empty for blocks of one text."""
    sizes: str
    """Sizes of the methods, such as 'num_test 200'."""
    num_tasks: tuple[int, int]
    """Smallest and largest number of tasks of a method."""
    low: float
    """Lowest end of the methods' intervals."""
    high: float
    """Highest end of the methods' intervals."""
    level: float
    """Level of the intervals."""
    decisions: Mapping[str, int]
    """Number of methods by decision."""
    unit: Unit
    """Unit of low and high."""


@dataclass(frozen=True, slots=True)
class Inflation:
    """Inflation of the best score of several configurations, because it was chosen by this score.

    Examples
    --------
    >>> Inflation(10, Estimate(0.012), "difference").num_configurations
    10
    """

    num_configurations: int
    """Number of configurations among which the best was selected."""
    estimate: Estimate
    """Estimated inflation of the best score."""
    unit: Unit
    """Unit of the estimate."""
    sizes: str = ""
    """Sizes that distinguish these configurations from others."""
    num_texts: int | None = None
    """Texts by which a configuration is chosen, if known."""


Statement: TypeAlias = RuleWorth | Inflation
"""Fact that reports state in words."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a report.

    Examples
    --------
    >>> table = Table("Mean bias", (Column("task"), Column("bias", "difference")), (("tickets", 0.012),))
    >>> len(table.rows)
    1
    """

    title: str
    """Heading of the table."""
    columns: tuple[Column, ...]
    """Columns, from left to right."""
    rows: tuple[tuple[Cell, ...], ...]
    """Cells in full precision, in the order of the columns; None for missing values."""
    note: str = ""
    """One paragraph that readers need to interpret the table."""
    topic: Topic = "results"
    """Part of the report that shows the table."""
    overview: tuple[str, ...] = ()
    """Columns that the short view of a report in a terminal shows, as far as they fit, most important first. Empty for
    a table that it leaves out."""
    statements: tuple[Statement, ...] = ()
    """Facts that reports state in words before the note, or one in each row of a table without columns."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """What an analyzer returns. Analyzers write no files and print nothing; the report does.

    Examples
    --------
    >>> Analysis("summary", warnings=("2 trials are missing",)).warnings
    ('2 trials are missing',)
    """

    name: str
    """Name of the analysis."""
    tables: tuple[Table, ...] = ()
    """Tables, in the order in which reports show them."""
    figures: tuple[Figure, ...] = ()
    """Figures, in the order in which reports show them."""
    verdicts: tuple[Verdict, ...] = ()
    """Conclusions, one per method and effect."""
    warnings: tuple[str, ...] = ()
    """Facts that weaken the conclusions, such as missing trials or failed diagnostics."""
    attachments: Mapping[str, Callable[[Path], None]] = field(default_factory=dict, repr=False, compare=False)
    """Files to write beside the report: file name to a function that writes the file to a path. The functions are
    called only when a report is written."""
