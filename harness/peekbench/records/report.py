"""The report as data: what builders produce and renderers turn into files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from peekbench.records.analysis import Table
from peekbench.records.estimates import ScoreEstimate
from peekbench.records.figures import Figure
from peekbench.records.trials import TrialFailure
from peekbench.records.verdicts import Verdict

if TYPE_CHECKING:
    import pandas as pd

ReportFormat: TypeAlias = Literal["html", "text", "markdown", "json", "cards", "svg", "png"]
"""Formats of peekbench itself. 'cards' is one Markdown file per method; 'svg' and 'png' are one picture per figure."""

OWN_FORMATS: tuple[str, ...] = get_args(ReportFormat)
"""Names that no format of a plugin can have."""
DEFAULT_FORMATS: tuple[ReportFormat, ...] = ("html", "text", "markdown", "json", "cards")


@dataclass(frozen=True, slots=True)
class MethodFacts:
    """Description of a method, as far as the report's source records it.

    Examples
    --------
    >>> MethodFacts("lsa", use="classic.lsa", options="num_components 100").options
    'num_components 100'
    """

    name: str
    """Label of the method."""
    use: str = ""
    """Plugin and name of the method, such as 'classic.lsa'."""
    options: str = ""
    """Options in words, including those that differ by task."""
    summary: str = ""
    """Summary that the plugin gives."""


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
    attachments: Mapping[str, Callable[[Path], None]] = field(default_factory=dict)
    """Files that analyses add to the report: file name to a function that writes the file."""
    methods: tuple[MethodFacts, ...] = ()
    """Descriptions of the methods."""
    command: str = ""
    """Shell command that makes the report again."""
    formats: tuple[str, ...] = DEFAULT_FORMATS
    """Formats to write, unless `write_report` is told otherwise; empty for a report that is only printed."""
    renderer: str = ""
    """Renderer of the figures, as `plugin.thing`; empty for the only one installed."""
    author: str = ""
    """Person or organization that publishes the results, for formats that state it."""
    license: str = ""
    """License of the results, a URL or an SPDX identifier, for formats that state it."""
    read_run: Callable[[], RunContent] | None = None
    """Function that reads the run, for formats that write more than a report has; None if the report is of no run."""


@dataclass(frozen=True, slots=True)
class RunContent:
    """What formats can write of a run besides its report.

    Examples
    --------
    >>> from peekbench.testing import sample_report
    >>> sample_report().read_run().num_planned
    2
    """

    report: Report
    """The report with the texts as they are: hidden characters are no escapes. `details` has the spec, the data and the
    sessions of the run, oldest first."""
    results: pd.DataFrame
    """The results table, with complete trials only."""
    estimates: tuple[ScoreEstimate, ...]
    """Scores and effects with intervals, by configuration and quantity: the average, then by task."""
    num_planned: int
    """Number of trials that the design plans."""
    summaries: Mapping[str, str]
    """Summaries of the analyses of the spec, by their names."""
    copy_store: Callable[[Path], None]
    """Function that writes a copy of the store."""
    num_looks: int = 1
    """Number of planned looks, of which the last is at all subsamples."""
    last_look: int | None = None
    """Number of the planned look at which the run stopped, from 1; None if it did not."""
    lock: Path | None = None
    """Lock file of the run, if there is one."""
