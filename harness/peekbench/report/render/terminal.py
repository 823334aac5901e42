"""Renders a report as text: complete, or its verdicts in one line each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table as RichTable
from rich.text import Text

from peekbench.formatting import pluralize
from peekbench.records.figures import Forest
from peekbench.records.report import Report, Table
from peekbench.records.trials import TrialFailure
from peekbench.records.verdicts import TrialEvidence, Verdict
from peekbench.report.render.content import FoldedColumn, FoldedTable, fold_intervals, make_printable, wrap
from peekbench.report.render.figures import ESTIMATE, ZERO, Line, draw_forest, list_undrawn_figures
from peekbench.report.render.sentences import format_estimate
from peekbench.report.render.words import (
    DECISION_STYLES,
    basis_in_words,
    explain_decisions,
    scope_in_words,
    verdict_sections,
)

GAP = 3  # characters between columns
MAX_TEXT_WIDTH = 26  # of a column of wrapped texts, where a table does not fit otherwise
MIN_TEXT_WIDTH, MIN_CROWDED_WIDTH = 20, 8  # of the first columns; the second only if numbers would not fit otherwise


def format_table(
    table: Table, width: int, max_rows: int | None = None, *, min_key_width: int | None = None
) -> Iterator[RichTable]:
    """Yield the panels of a table, each with the columns that identify a row.

    Parameters
    ----------
    table
        Table to lay out.
    width
        Characters of a line.
    max_rows
        Rows to show; the widths of columns take the other rows into account too.
    min_key_width
        Wrap the texts that identify a row as narrowly as this if that avoids a second panel.
    """
    folded = fold_intervals(table)
    cells = [[cell.text for cell in row] for row in folded.rows]
    widths = [_column_widths(column, [row[number] for row in cells]) for number, column in enumerate(folded.columns)]
    full = [full for _, full in widths]
    if sum(full) + GAP * len(full) > width:
        full = [
            narrow if column.is_text else full for (narrow, full), column in zip(widths, folded.columns, strict=True)
        ]
    if min_key_width is not None:
        full = _narrow_keys(folded, full, width, min_key_width)
    for positions in _split_into_panels(folded, full, [narrow for narrow, _ in widths], width):
        panel = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
        fitted = {position: full[position] for position in positions}
        if folded.columns[positions[-1]].is_text:
            fitted[positions[-1]] += max(0, width - sum(full[position] + GAP for position in positions))
        for position in positions:
            # rich would crop a heading rather than wrap it above a column of numbers, so headings are wrapped here.
            panel.add_column(
                Text("\n".join(wrap(folded.columns[position].name, fitted[position])) or " "),
                justify="left" if folded.columns[position].is_text else "right",
                min_width=full[position],
                overflow="fold",
            )
        for row in cells[:max_rows]:
            panel.add_row(*(Text("\n".join(wrap(row[position], fitted[position]))) for position in positions))
        yield panel


def _column_widths(column: FoldedColumn, cells: list[str]) -> tuple[int, int]:
    """Return the width of a column with wrapped cells and the width with cells on one line.

    Words of headings and numbers are never broken. Wrapped, an estimate stands above the ends of its interval.
    """
    longest_word = max(map(cell_len, column.name.split()), default=1)
    longest_cell = max((cell_len(line) for cell in cells for line in cell.splitlines()), default=0)
    parts = (cell_len(part) for cell in cells for part in cell.split())
    narrow = min(longest_cell, MAX_TEXT_WIDTH) if column.is_text else max(parts, default=0)
    return max(longest_word, narrow), max(longest_word, longest_cell)


def _narrow_keys(table: FoldedTable, widths: list[int], width: int, narrowest: int) -> list[int]:
    """Return widths with which all columns fit beside each other, or the given ones if there are none."""
    narrowed = list(widths)
    texts = [position for position in range(table.num_key_columns) if table.columns[position].is_text]
    while (sum(narrowed) + GAP * len(narrowed)) > width:
        widest = max(texts, key=lambda position: narrowed[position], default=None)
        if widest is None or narrowed[widest] <= narrowest:
            return widths
        narrowed[widest] -= 1
    return narrowed


def _split_into_panels(table: FoldedTable, widths: list[int], narrow: list[int], width: int) -> list[list[int]]:
    """Split the columns into groups that fit the width, each with the columns that identify a row.

    If these take more than half of the width, their texts are wrapped more narrowly: `widths` is changed. If any other
    column still does not fit, estimates are wrapped above the ends of their intervals, then texts are wrapped more
    narrowly still, and finally the last counts among the identifying columns appear in one panel only.
    """
    if sum(widths) + GAP * len(widths) <= width:
        return [list(range(len(widths)))]
    keys = list(range(table.num_key_columns))
    texts = [position for position in keys if table.columns[position].is_text]
    while True:
        others = [position for position in range(len(widths)) if position not in keys]
        room = width - sum(widths[position] + GAP for position in keys)
        is_enough = room >= max((widths[position] + GAP for position in others), default=0)
        widest = max(texts, key=lambda position: widths[position], default=None)
        if is_enough and room >= width // 2:
            break
        if widest is not None and widths[widest] > MIN_TEXT_WIDTH:
            widths[widest] -= 1
        elif not is_enough and any(widths[position] > narrow[position] for position in others):
            widths[:] = [min(pair) for pair in zip(widths, narrow, strict=True)]
        elif not is_enough and widest is not None and widths[widest] > MIN_CROWDED_WIDTH:
            widths[widest] -= 1
        elif not is_enough and keys and table.columns[keys[-1]].unit == "count":
            keys.pop()
        else:
            break
    panels: list[list[int]] = [[]]
    used = 0
    for position in others:
        if panels[-1] and used + widths[position] + GAP > room:
            panels.append([])
            used = 0
        panels[-1].append(position)
        used += widths[position] + GAP
    return [[*keys, *panel] for panel in panels]


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
        for verdict, sentence in verdicts:
            console.print(Text.assemble((verdict.method, "bold"), ": ", _decision(verdict), scope_in_words(verdict)))
            console.print(_indented(Text.assemble(sentence, (basis_in_words(verdict), "dim"))))
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
    >>> from peekbench import Estimate, Verdict
    >>> from rich.console import Console
    >>> verdict = Verdict("lsa", "bias", "equivalent", Estimate(0.001, -0.002, 0.004))
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
        text.append("  ".join(filter(None, (verdict.method, format_estimate(verdict.estimate, verdict.unit)))), "")
        if isinstance(verdict.evidence, TrialEvidence) and verdict.evidence.other_tasks and not verdict.control:
            text.append(f"; other tasks: {verdict.evidence.other_tasks}", "")
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
