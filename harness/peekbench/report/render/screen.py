"""Renders the short view of a report, which fits one screen of a terminal.

It has the verdicts, the tables that analyses mark as an overview, failures and warnings. If these take more lines than
a screen, details are left out step by step, and a line names what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.text import Text

from peekbench.formatting import pluralize
from peekbench.records.analysis import Table
from peekbench.report.document import Report
from peekbench.report.render.printable import make_printable
from peekbench.report.render.screen_verdicts import print_lines, print_note, render_verdicts
from peekbench.report.render.terminal import DECISION_STYLES
from peekbench.report.render.terminal_tables import format_table

MAX_LINES = 45
MIN_KEY_WIDTH = 12  # of the names in a table, which are wrapped before columns are left out


@dataclass(frozen=True, slots=True)
class _Limits:
    """How much of a report to show."""

    verdicts: int
    rows: int
    warnings: int
    has_details: bool = False
    """Whether verdicts have a second line."""


STEPS = (
    _Limits(12, 15, 6, has_details=True),
    _Limits(12, 12, 4),
    _Limits(12, 12, 2),
    _Limits(10, 6, 1),
    _Limits(6, 6, 1),
    _Limits(3, 3, 1),
)
"""From most to least; the first with at most `MAX_LINES` lines is used."""


def render_screen(report: Report, console: Console, closing: Sequence[str] = ()) -> None:
    """Print the short view of a report.

    Parameters
    ----------
    report
        Report to print.
    console
        Console of rich; its width decides how the view is laid out.
    closing
        Lines to print at the end, such as the paths of files. They are never broken.

    Examples
    --------
    >>> from rich.console import Console
    >>> from peekbench import Verdict
    >>> verdict = Verdict("lsa", "bias", "equivalent", "lsa: no bias that matters.", 0.001, -0.002, 0.004, 0.95, 0.005)
    >>> render_screen(Report("tickets", "1 method on 1 task", (verdict,)), Console(width=78), ["Report: report.html"])
    tickets  1 method on 1 task
    <BLANKLINE>
    Does a method score higher if its unlabeled text comes from the test set?
    equivalent    lsa ├────────────────●────────────────┤  +0.10 [ -0.20,  +0.40]
                      -0.2      0.0        +0.2      +0.4                  points
    95% intervals. Biases within ±0.50 points count as equivalent to none.
    <BLANKLINE>
    Report: report.html
    """
    report = make_printable(report)
    for limits in STEPS:
        with console.capture() as captured:
            _print_report(report, console, limits)
        num_lines = captured.get().count("\n") + (len(closing) + 1 if closing else 0)
        if num_lines <= MAX_LINES:
            break
    _print_report(report, console, limits)
    if closing:
        console.print()
    for line in closing:
        console.print(Text(line), soft_wrap=True)


def _print_report(report: Report, console: Console, limits: _Limits) -> None:
    print_lines(Text.assemble((report.name, "bold"), f"  {report.headline}"), console, 4)
    render_verdicts(report.verdicts, console, max_verdicts=limits.verdicts, has_details=limits.has_details)
    _print_tables(report, console, limits)
    if report.failures:
        console.print()
        first = report.failures[0]
        console.print(Text(f"{pluralize(len(report.failures), 'trial')} failed", DECISION_STYLES["failed"]))
        print_lines(Text(f"First: {first.trial}: {first.error}"), console, 3)
    _print_warnings(report.warnings, console, limits)


def _print_tables(report: Report, console: Console, limits: _Limits) -> None:
    """Print the tables that are an overview; if there are neither any nor verdicts, the first table of results."""
    tables = [table for table in report.tables if table.overview]
    if len({verdict.method for verdict in report.verdicts if not verdict.control}) == 1:
        tables = [table for table in tables if len(table.rows) > 1 or "verdict" not in table.overview]  # repeats it
    if not tables and not report.verdicts:
        tables = [table for table in report.tables if table.topic == "results"][:2]
    for table in tables:
        console.print()
        console.print(Text(table.title, "bold"))
        fitted, left_out = _fit(table, console.width)
        for panel in format_table(fitted, console.width, limits.rows, min_key_width=MIN_KEY_WIDTH):
            console.print(panel)
        if (more := len(table.rows) - limits.rows) > 0:
            print_note(f"... and {pluralize(more, 'more row', 'more rows')}", console)
        if left_out:
            print_note(f"A wider terminal also shows: {', '.join(left_out)}", console)


def _fit(table: Table, width: int) -> tuple[Table, tuple[str, ...]]:
    """Return a table with as many columns of its overview as fit the width, and the names of the others."""
    if not table.overview:
        return table, ()
    for number in range(len(table.overview), 0, -1):
        chosen = _select(table, table.overview[:number])
        if number == 1 or len(list(format_table(chosen, width, min_key_width=MIN_KEY_WIDTH))) == 1:
            break
    return chosen, table.overview[number:]


def _select(table: Table, names: Sequence[str]) -> Table:
    positions = [
        position
        for name in names
        for wanted in (name, f"{name}, low", f"{name}, high")
        for position, column in enumerate(table.columns)
        if column.name == wanted
    ]
    columns = tuple(table.columns[position] for position in positions)
    return replace(table, columns=columns, rows=tuple(tuple(row[each] for each in positions) for row in table.rows))


def _print_warnings(warnings: Sequence[str], console: Console, limits: _Limits) -> None:
    if warnings:
        console.print()
    for warning in warnings[: limits.warnings]:
        print_lines(Text.assemble(("Warning: ", "bold"), warning), console, 5)
    if (left_out := len(warnings) - limits.warnings) > 0:
        console.print(Text(f"... and {pluralize(left_out, 'more warning', 'more warnings')}", "bold"))
