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

Decision: TypeAlias = Literal["biased up", "biased down", "equivalent", "inconclusive", "inert", "no signal"]
"""What a verdict says about an effect. 'inert': the predictions do not depend on the unlabeled texts. 'no signal': the
interval lies within the region, but the predictions carry no information on the labels, so no bias could be seen.

Examples
--------
>>> from typing import get_args
>>> get_args(Decision)[:4]
('biased up', 'biased down', 'equivalent', 'inconclusive')
"""

ControlOutcome: TypeAlias = Literal["passed", "undecided", "failed"]
"""Whether a run finds the known bias of a control."""

BiasSize: TypeAlias = Literal["", "open", "beyond"]
"""For a verdict of bias: 'beyond' if the whole interval lies outside the region of practical equivalence, 'open' if a
part of it lies inside; otherwise ''.

Examples
--------
>>> Verdict("lsa", "bias", "biased up", "", low=0.002, high=0.02, size="open").size  # the region is 0.01
'open'
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


@dataclass(frozen=True, slots=True)
class Verdict:
    """Conclusion of an analysis about one method.

    Examples
    --------
    >>> verdict = Verdict("lsa", "bias", "equivalent", "The bias is negligible.", 0.001, -0.002, 0.004, 0.9, 0.01)
    >>> verdict.decision
    'equivalent'
    """

    method: str
    """Label of the method, with its model if it has one."""
    effect: str
    """'bias', 'boost', 'contamination', or another effect."""
    decision: Decision | ControlOutcome
    """The decision on the bias of a method, or the outcome of a control."""
    sentence: str
    """The conclusion in plain words, with the interval."""
    estimate: float | None = None
    """Size of the effect; None if the analysis does not estimate it."""
    low: float | None = None
    """Lower end of the interval."""
    high: float | None = None
    """Upper end of the interval."""
    level: float | None = None
    """Nominal coverage of [low, high]."""
    region: float | None = None
    """Half-width of the region of practical equivalence around 0 that the decision used."""
    basis: str = ""
    """Data behind the verdict, in a few words: '5 tasks, 250 trials'."""
    unit: Unit = "difference"
    """Unit of estimate, low, high and region: 'difference' for differences of fractions, otherwise 'change'."""
    control: Control = ""
    """Whether the method is a control, whose bias is known in advance. Its verdict judges the run, not the method."""
    size: BiasSize = ""
    """For 'biased up' and 'biased down', whether the bias is known to be larger than the region."""
    other_tasks: str = ""
    """In a few words, what other tasks like these would show; '' if the analysis does not say."""
    family: int = 1
    """Number of configurations judged together; the decision and [low, high] are adjusted for it."""
    unadjusted: Decision | None = None
    """The decision without this adjustment; None if there is none."""
    looks: str = ""
    """A sentence on earlier looks at the results, if they matter to this verdict."""
    population: str = ""
    """What the estimate and its interval are about, in a few words: 'these texts of 5 tasks'."""
    interval_level: float | None = None
    """Coverage of [low, high] by itself, which is higher than `level` if the interval is adjusted for several
    configurations or looks; None if the analysis does not say."""
    other_score: str = ""
    """In a few words, a bias that another score shows and the decision does not state, such as 'the log loss improves
    by 0.01'."""
    analysis: str = ""
    """Analysis that reached the verdict, as named in the spec. Set by peekbench."""


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
