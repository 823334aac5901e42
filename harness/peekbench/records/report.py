"""The report as data: what builders produce and renderers turn into files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peekbench.records.analysis import Table, Verdict
from peekbench.records.figures import Figure
from peekbench.records.report_formats import DEFAULT_FORMATS
from peekbench.records.trials import TrialFailure


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
    >>> verdict = Verdict("lsa", "bias", "equivalent", "lsa: the bias is too small to matter.")
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
