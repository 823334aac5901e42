"""Renders a report in a terminal, and as plain text."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from peekbench.formatting import pluralize
from peekbench.records.analysis import Table, Verdict
from peekbench.records.figures import Forest
from peekbench.records.trials import TrialFailure
from peekbench.report.document import Report
from peekbench.report.render.forest_plot import ESTIMATE, ZERO, Line, draw_forest
from peekbench.report.render.printable import make_printable
from peekbench.report.render.renderers import list_undrawn_figures
from peekbench.report.render.terminal_tables import format_table
from peekbench.report.render.verdict_texts import (
    basis_in_words,
    explain_decisions,
    format_estimate,
    scope_in_words,
    sentence_without_method,
    verdict_sections,
)

DECISION_STYLES = {
    "biased up": "bold red",
    "biased down": "bold magenta",
    "equivalent": "bold green",
    "inconclusive": "bold",
    "inert": "bold",
    "no signal": "bold",
    "passed": "bold green",
    "undecided": "bold",
    "failed": "bold red",
}
"""Style of each decision: colors that are legible on dark and on light backgrounds, which yellow and cyan are not."""
DECISION_WIDTH = 12
MAX_ROWS = 30  # of a table in a terminal; the report files have all rows
MAX_FAILURES = 10


def render_text(report: Report, console: Console, *, complete: bool = False) -> None:
    """Print a report.

    Parameters
    ----------
    report
        Report to print.
    console
        Console of rich; its width decides how tables are laid out.
    complete
        Print all rows of long tables.

    Examples
    --------
    >>> from rich.console import Console
    >>> render_text(Report("quickstart", "2 methods on 2 tasks"), Console(width=40))
    ╭──────────────────────────────────────╮
    │ quickstart  2 methods on 2 tasks     │
    ╰──────────────────────────────────────╯
    """
    report = make_printable(report)
    render_top(report, console)
    if undrawn := list_undrawn_figures(report):
        console.print()
        console.print(Text(undrawn, "dim"))
    for table in report.tables:
        console.print()
        _print_table(table, console, None if complete else MAX_ROWS)
    if report.failures:
        _print_failures(report.failures, console)
    if report.provenance:
        console.print()
        _print_heading("Provenance", console)
        for name, text in report.provenance.items():
            console.print(_indented(Text.assemble((f"{name}: ", "bold"), text)))


def render_tables(tables: Iterable[Table], console: Console) -> None:
    """Print tables that are not part of a report.

    Parameters
    ----------
    tables
        Tables to print with all rows.
    console
        Console of rich; its width decides how tables are laid out.

    Examples
    --------
    >>> from peekbench import Column, Table
    >>> from rich.console import Console
    >>> table = Table("Sizes", (Column("task"), Column("rows", "count")), (("trec", 5452),))
    >>> render_tables([table], Console(width=40))  # doctest: +NORMALIZE_WHITESPACE
    ────────────────────────────────────────
    Sizes
     task    rows
    ──────────────
     trec   5,452
    <BLANKLINE>
    """
    for table in tables:
        _print_table(table, console, None)
        console.print()


def render_top(report: Report, console: Console) -> None:
    """Print the part that everybody reads: warnings, verdicts and forest plots."""
    report = make_printable(report)
    console.print(Panel(Text.assemble((report.name, "bold"), f"  {report.headline}"), box=box.ROUNDED))
    _print_warnings(report, console)
    for heading, verdicts in verdict_sections(report.verdicts):
        _print_heading(heading, console)
        for verdict in verdicts:
            console.print(Text.assemble((verdict.method, "bold"), ": ", _decision(verdict), scope_in_words(verdict)))
            sentence = Text.assemble(sentence_without_method(verdict), (basis_in_words(verdict), "dim"))
            console.print(_indented(sentence))
    if report.verdicts:
        console.print(Text(explain_decisions(report.verdicts), "dim"))
    for figure in report.figures:
        if isinstance(figure, Forest):
            console.print()
            _print_heading(figure.title, console)
            for line in draw_forest(figure, console.width):
                console.print(style_line(line, console.width), no_wrap=True)
            console.print(Text(figure.note, "dim"))


def render_summary(report: Report, console: Console) -> None:
    """Print the verdicts in one line each and the warnings, for the end of a long output.

    Parameters
    ----------
    report
        Report whose verdicts to print; a report without verdicts prints nothing.
    console
        Console of rich.

    Examples
    --------
    >>> from peekbench import Verdict
    >>> from rich.console import Console
    >>> verdict = Verdict("lsa", "bias", "equivalent", "lsa: no bias that matters.", 0.001, -0.002, 0.004)
    >>> render_summary(Report("quickstart", "1 method", (verdict,)), Console(width=60))
    <BLANKLINE>
    ────────────────────────────────────────────────────────────
    Summary
    equivalent    lsa  +0.10 [-0.20, +0.40] points
    """
    report = make_printable(report)
    if not report.verdicts:
        return
    console.print()
    _print_heading("Summary", console)
    has_several_analyses = len({verdict.analysis for verdict in report.verdicts}) > 1
    for verdict in report.verdicts:
        text = _decision(verdict)
        text.pad_right(DECISION_WIDTH + 2 - len(text))
        text.append("  ".join(filter(None, (verdict.method, format_estimate(verdict)))), "")
        if verdict.other_tasks and not verdict.control:
            text.append(f"; other tasks: {verdict.other_tasks}", "")
        if has_several_analyses and verdict.analysis:
            text.append(f" ({verdict.analysis})", "dim")
        console.print(text)
    _print_warnings(report, console)


def _print_warnings(report: Report, console: Console) -> None:
    for warning in report.warnings:
        console.print(Text(f"Warning: {warning}", "bold"))


def _decision(verdict: Verdict) -> Text:
    """Return the styled decision on a method, or the outcome of a control."""
    return Text(verdict.decision, DECISION_STYLES[verdict.decision])


def _print_heading(text: str, console: Console) -> None:
    console.print(Rule(style="dim"))
    console.print(Text(text, "bold"))


def _indented(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, 2))


def style_line(line: Line, width: int) -> Text:
    """Return a line of a forest plot with its colors, cropped to a width."""
    if line.kind == "heading":
        return Text(line.label, "bold")
    text = Text(no_wrap=True, overflow="crop")
    text.append(line.label, "bold" if line.kind == "average" else "")
    default = "dim" if line.kind == "axis" else ""
    for character in line.plot:
        text.append(character, {ZERO: "dim", ESTIMATE: "bold"}.get(character, default))
    text.append(" " + line.numbers, "dim" if line.kind == "axis" else "")
    return text[:width]


def _print_table(table: Table, console: Console, max_rows: int | None) -> None:
    _print_heading(table.title, console)
    for panel in format_table(table, console.width, max_rows):
        console.print(panel)
    if max_rows is not None and len(table.rows) > max_rows:
        console.print(Text(f"... and {len(table.rows) - max_rows:,} more rows in the report files", "dim"))
    if table.note:
        console.print(Text(table.note, "dim"))


def _print_failures(failures: tuple[TrialFailure, ...], console: Console) -> None:
    console.print()
    _print_heading(f"{pluralize(len(failures), 'trial')} failed", console)
    for failure in failures[:MAX_FAILURES]:
        console.print(_indented(Text(f"{failure.trial}: {failure.error}")))
    if len(failures) > MAX_FAILURES:
        console.print(Text(f"  ... and {len(failures) - MAX_FAILURES:,} more in report.json", "dim"))
    console.print(Text("Traceback of the first failure:", "bold"))
    console.print(_indented(Text(failures[0].traceback.rstrip())))
