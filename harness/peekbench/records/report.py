"""What analyses return, and the report as data: what builders produce and renderers turn into files."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from peekbench.records.figures import Figure
from peekbench.records.runs import DEFAULT_FORMATS
from peekbench.records.trials import RowLimit, TrialFailure
from peekbench.records.verdicts import POINTS, ControlOutcome, Decision, Estimate, Key, ScoreUnits, Unit, Verdict

if TYPE_CHECKING:
    import pandas as pd


Topic: TypeAlias = Literal["results", "methods", "data"]
"""Part of a report to which a table or a figure belongs."""

Cell: TypeAlias = Key | Estimate
"""Value in a row of a table. None is shown as a dash, an estimate with its interval.

Examples
--------
>>> row: tuple[Cell, ...] = ("news", 0.71, 200, True, None)
>>> Table("Scores", tuple(map(Column, "abcde")), (row,)).rows[0][1]
0.71
"""


@dataclass(frozen=True, slots=True)
class Column:
    """Heading and unit of a table's column."""

    name: str
    """Heading of the column."""
    unit: Unit = "text"
    """How the values are shown, see `peekbench.records.Unit`."""

    @property
    def is_text(self) -> bool:
        """Whether the cells are texts."""
        return self.unit == "text"


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
    caption: str = ""
    """What the columns of the short view mean, in a few words; the note explains them in full."""
    ranked_by: str = ""
    """Column whose values descend from row to row; empty if the rows have another order."""

    def spread(self) -> tuple[list[str], tuple[tuple[Any, ...], ...]]:
        """Return the names of columns and the rows for data frames, in which the limits of intervals have columns.

        Examples
        --------
        >>> Table("Mean", (Column("bias", "difference"),), ((Estimate(0.01, -0.01, 0.03),),)).spread()
        (['bias', 'bias, low', 'bias, high'], ((0.01, -0.01, 0.03),))
        """
        names: list[str] = []
        columns: list[list[Any]] = []
        for place, column in enumerate(self.columns):
            cells = [row[place] for row in self.rows]
            if any(isinstance(cell, Estimate) for cell in cells):
                names += [column.name, f"{column.name}, low", f"{column.name}, high"]
                columns += [[_part_of(cell, part) for cell in cells] for part in ("mean", "low", "high")]
            else:
                names.append(column.name)
                columns.append(cells)
        return names, tuple(zip(*columns, strict=True))


def _part_of(cell: Cell, part: str) -> float | None:
    """Return a number of an estimate; None if it has none."""
    number: float = getattr(cell, part, math.nan)
    if math.isnan(number):
        return None
    return number


@dataclass(frozen=True, slots=True)
class Analysis:
    """What an analyzer returns. Analyzers write no files and print nothing; the report does."""

    name: str
    """Name of the analysis."""
    tables: tuple[Table, ...] = ()
    """Tables, in the order in which reports show them."""
    figures: tuple[Figure, ...] = ()
    """Figures, in the order in which reports show them."""
    verdicts: tuple[Verdict, ...] = ()
    """Conclusions, one per method and effect."""
    estimates: tuple[ScoreEstimate, ...] = ()
    """Scores and effects of all configurations, of an analysis with the role `estimates`."""
    warnings: tuple[str, ...] = ()
    """Facts that weaken the conclusions, such as missing trials or failed diagnostics."""


Quantity: TypeAlias = Literal["extra", "bias", "boost"]
"""'extra' is the score of the arm extra, which is uncontaminated."""

ACCURACY = "accuracy"
"""`ScoreEstimate.metric` of accuracies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreEstimate:
    """A score or an effect of one method, on one task or averaged over its tasks.

    Examples
    --------
    >>> score = {"quantity": "extra", "metric": "accuracy", "estimate": Estimate(0.7), "num_trials": 50}
    >>> ScoreEstimate(method="lsa", task="news", **score).is_average
    False
    """

    method: str
    """Label of the method."""
    model: str = ""
    """Language model of the method; empty if it has none."""
    num_train: int | None = None
    """Number of labeled texts for training; None if unknown."""
    num_test: int | None = None
    """Number of test texts; None if unknown."""
    control: str = ""
    """As in the results table: 'negative', 'positive' or empty."""
    task: str = ""
    """Empty for the average over tasks, which all have equal weight."""
    quantity: Quantity
    """The score of an arm, or an effect."""
    metric: str
    """Name of the score in words, such as 'accuracy'. More is always better."""
    units: ScoreUnits = POINTS
    """Units of scores and effects."""
    estimate: Estimate
    """Value and interval, which is for new subsamples of the same data. The interval of an average bias is that of its
    verdict, which can be adjusted for the number of configurations and for planned looks; `level` is nominal."""
    num_tasks: int = 1
    """Number of tasks behind the estimate."""
    num_trials: int
    """Number of subsamples, of all tasks together."""
    decision: Decision | ControlOutcome | Literal[""] = ""
    """Verdict on the average bias; empty for other quantities."""

    @property
    def is_average(self) -> bool:
        """Whether this is the average over tasks."""
        return not self.task

    @property
    def configuration(self) -> tuple[str, str, int | None, int | None]:
        """Method, model and sizes."""
        return self.method, self.model, self.num_train, self.num_test


@dataclass(frozen=True, slots=True)
class MethodFacts:
    """Description of a method, as far as the report's source records it."""

    name: str
    """Label of the method."""
    use: str = ""
    """Plugin and name of the method, such as 'classic.lsa'."""
    options: str = ""
    """Options in words, including those that differ by task."""
    summary: str = ""
    """Summary that the plugin gives."""


@dataclass(frozen=True, slots=True)
class Extension:
    """How to add subsamples to what a report is about.

    Examples
    --------
    >>> Extension("peekbench run tickets.yaml", of="run", num_subsamples=20).num_missing
    0
    """

    command: str = ""
    """Shell command for a changed spec or table, or for the reports of the runs; empty if it is unknown."""
    of: Literal["table", "run", "runs"] = "table"
    """What the report is about. Several runs are extended one by one, after their own reports."""
    num_subsamples: int | None = None
    """Subsamples of every task; None if tasks or sizes differ."""
    num_missing: int = 0
    """Planned trials that are neither finished nor failed."""
    seconds: float = 0.0
    """Mean seconds of all fits and predictions of one more subsample of each task and size, of a run."""
    earlier: tuple[int, ...] = ()
    """Subsamples per task at all analyses of a table, this one included, which the next one must state. Empty if the
    column `looks` of the table tells them."""
    max_subsamples: Mapping[int, RowLimit] = field(default_factory=dict)
    """Subsamples per task that the rows of all tasks support, by test size; empty for tables."""


@dataclass(frozen=True, slots=True)
class Report:
    """Content of a report, in the order in which it is shown.

    Examples
    --------
    >>> from peekbench import Verdict
    >>> verdict = Verdict("lsa", "bias", "equivalent")
    >>> Report("quickstart", "1 method on 2 tasks", verdicts=(verdict,)).verdicts[0].decision
    'equivalent'
    """

    name: str
    """Name of the run, or of the analyzed file."""
    headline: str
    """One line that says what was analyzed."""
    verdicts: tuple[Verdict, ...] = ()
    """Conclusions about all methods, controls included."""
    warnings: tuple[str, ...] = ()
    """Facts that weaken the conclusions."""
    figures: tuple[Figure, ...] = ()
    """Figures of all analyses."""
    tables: tuple[Table, ...] = ()
    """Tables of all analyses."""
    failures: tuple[TrialFailure, ...] = ()
    """Trials that raised an error."""
    provenance: Mapping[str, str] = field(default_factory=dict)
    """Versions, machine and command behind the numbers, in words."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Spec, data and sessions in full; only the JSON file has them."""
    methods: tuple[MethodFacts, ...] = ()
    """Descriptions of the methods."""
    extension: Extension = Extension()
    """How to add subsamples."""
    has_one_run: bool = False
    """Whether each arm has a single run, so that verdicts are on its fits only."""
    has_copies: bool = False
    """Whether so many test rows have copies in other sets that they distort scores or hide bias."""
    command: str = ""
    """Shell command that makes the report again."""
    formats: tuple[str, ...] = DEFAULT_FORMATS
    """Formats to write, unless `write_report` is told otherwise; empty for a report that is only printed."""
    renderer: str = ""
    """Renderer of the figures, as `plugin.thing`; empty for the only one installed."""
    read_run: Callable[[], RunContent] | None = None
    """Function that reads the run or the table of scores, for formats that write more than a report has; None if the
    report is of neither."""

    @property
    def judged(self) -> list[list[Verdict]]:
        """The verdicts on each method and effect, that of the first analysis first."""
        found: dict[tuple[str, str], list[Verdict]] = {}
        for verdict in self.verdicts:
            found.setdefault((verdict.method, verdict.effect), []).append(verdict)
        return list(found.values())


@dataclass(frozen=True, slots=True)
class RunContent:
    """What formats can write of a run, or of a table of scores, besides its report.

    Examples
    --------
    >>> from peekbench_testing import sample_report
    >>> len(sample_report().read_run().estimates)
    6
    """

    report: Report
    """The report with the texts as they are: hidden characters are no escapes. For a run, `details` has the spec, the
    data and the sessions, oldest first."""
    results: pd.DataFrame
    """The results table, with complete trials only."""
    estimates: tuple[ScoreEstimate, ...]
    """Scores and effects with intervals, by configuration and quantity: the average, then by task."""
