"""The report in a terminal, and as plain text."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table as RichTable
from rich.text import Text

from peekbench.formatting import format_signed, pluralize
from peekbench.records.analysis import Table, Verdict
from peekbench.records.figures import Forest
from peekbench.records.trials import TrialFailure
from peekbench.report.build.run_report import CONTROLS, QUESTION, Report, legend, printable, split_verdicts
from peekbench.report.render.cells import ShownColumn, ShownTable, as_shown
from peekbench.report.render.forest_plot import ESTIMATE, ZERO, draw
from peekbench.report.render.renderers import not_in_characters
from peekbench.report.render.wrapping import fold
from peekbench.results.decisions import control_outcome

STYLES = {
    "biased up": "bold red",
    "biased down": "bold magenta",
    "equivalent": "bold green",
    "inconclusive": "bold yellow",
}
GAP = 3  # between columns
FOLDED = 26  # width from which text is folded
NARROW, NARROWEST = 20, 8  # to which it may be folded, the second only where numbers would not fit otherwise
MOST_ROWS = 30  # of a table in a terminal; the files have all
MOST_FAILURES = 10


def render_text(report: Report, console: Console, *, complete: bool = False) -> None:
    """Print a report; with `complete`, tables of any length."""
    report = printable(report)
    render_top(report, console)
    if left_out := not_in_characters(report):
        console.print()
        console.print(Text(left_out, "dim"))
    for table in report.tables:
        console.print()
        _print_table(table, console, None if complete else MOST_ROWS)
    if report.failures:
        _print_failures(report.failures, console)
    if report.provenance:
        console.print()
        _print_heading("Provenance", console)
        for name, text in report.provenance.items():
            console.print(Padding(Text.assemble((f"{name}: ", "bold"), text), (0, 0, 0, 2)))


def render_tables(tables: Iterable[Table], console: Console) -> None:
    """Print tables that are no part of a report."""
    for table in tables:
        _print_table(table, console, None)
        console.print()


def render_top(report: Report, console: Console) -> None:
    """Print what everybody reads: verdicts and forests."""
    report = printable(report)
    console.print(Panel(Text.assemble((report.name, "bold"), f"  {report.headline}"), box=box.ROUNDED))
    for warning in report.warnings:
        console.print(Text(f"Caution: {warning}", "bold yellow"))
    for heading, verdicts in zip((QUESTION, CONTROLS), split_verdicts(report.verdicts), strict=True):
        if verdicts:
            _print_heading(heading, console)
        for verdict in verdicts:
            _print_verdict(verdict, console)
    if report.verdicts:
        console.print(Text(legend(report.verdicts), "dim"))
    for figure in report.figures:
        if isinstance(figure, Forest):
            console.print()
            _print_heading(figure.title, console)
            for line in draw(figure, console.width):
                console.print(_styled(line.kind, line.label, line.plot, line.numbers, console.width), no_wrap=True)
            console.print(Text(figure.note, "dim"))


def render_in_short(report: Report, console: Console) -> None:
    """Print the verdicts once more, a line each, where whoever waited for a long report looks: at its end."""
    report = printable(report)
    if not report.verdicts:
        return
    console.print()
    _print_heading("In short", console)
    for verdict in report.verdicts:
        word, style = _decision(verdict)
        text = Text(f"{word:<12}  ", style)
        text.append(verdict.method, "")
        if verdict.estimate is not None:
            points = " points" if verdict.unit == "difference" else ""
            ends = [format_signed(end, verdict.unit) for end in (verdict.low, verdict.high) if end is not None]
            span = f" [{', '.join(ends)}]" if ends else ""
            text.append(f"  {format_signed(verdict.estimate, verdict.unit)}{span}{points}", "")
        console.print(text)


def _decision(verdict: Verdict) -> tuple[str, str]:
    """The word for it and its style; a control's decision is right or wrong, and no finding."""
    if not verdict.control:
        return verdict.decision, STYLES[verdict.decision]
    outcome = control_outcome(verdict)
    return outcome, {"passed": "bold green", "undecided": "bold yellow", "failed": "bold red"}[outcome]


def _print_heading(text: str, console: Console) -> None:
    console.print(Rule(style="dim"))
    console.print(Text(text, "bold"))


def _print_verdict(verdict: Verdict, console: Console) -> None:
    grid = RichTable.grid(padding=(0, 2))
    grid.add_column(width=12, no_wrap=True)
    grid.add_column()
    rests = f" (Rests on {verdict.basis}.)" if verdict.basis else ""
    sentence = Text.assemble(verdict.sentence, (rests, "dim"))
    grid.add_row(Text(*_decision(verdict)), sentence)
    console.print(grid)


def _styled(kind: str, label: str, plot: str, numbers: str, width: int) -> Text:
    if kind == "heading":
        return Text(label, "bold")
    text = Text(no_wrap=True, overflow="crop")
    text.append(label, "bold" if kind == "average" else "")
    for character in plot:
        text.append(character, {ZERO: "dim", ESTIMATE: "bold cyan"}.get(character, "dim" if kind == "axis" else "cyan"))
    text.append(" " + numbers, "dim" if kind == "axis" else "")
    return text[:width]


def _print_table(raw: Table, console: Console, most_rows: int | None) -> None:
    table = as_shown(raw)
    _print_heading(table.title, console)
    rows = [[cell.text for cell in row] for row in table.rows]
    kept = rows[:most_rows]
    needs = [_needs(column, [row[position] for row in rows]) for position, column in enumerate(table.columns)]
    widths = [whole for _, whole in needs]
    if sum(widths) + GAP * len(widths) > console.width:
        is_text = [column.is_text for column in table.columns]
        widths = [folded if text else whole for (folded, whole), text in zip(needs, is_text, strict=True)]
    for positions in _panels(table, widths, [folded for folded, _ in needs], console.width):
        rich_table = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
        spare = console.width - sum(widths[position] + GAP for position in positions)
        fitted = {position: widths[position] for position in positions}
        fitted[positions[-1]] += max(0, spare) if table.columns[positions[-1]].is_text else 0
        for position in positions:
            # All is folded here: rich would rather cut a heading than break it above a column of numbers.
            rich_table.add_column(
                Text("\n".join(fold(table.columns[position].name, fitted[position])) or " "),
                justify="left" if table.columns[position].is_text else "right",
                min_width=widths[position],
                overflow="fold",
            )
        for row in kept:
            rich_table.add_row(*(Text("\n".join(fold(row[position], fitted[position]))) for position in positions))
        console.print(rich_table)
    if len(kept) < len(rows):
        console.print(Text(f"... and {len(rows) - len(kept):,} rows more in the report files", "dim"))
    if table.note:
        console.print(Text(table.note, "dim"))


def _needs(column: ShownColumn, cells: list[str]) -> tuple[int, int]:
    """Width that a column needs, with its cells folded and without; numbers and words of headings stay whole.

    Long texts are folded, and an estimate and the ends of its interval may stand one below the other.
    """
    longest_word = max(map(cell_len, column.name.split()), default=1)
    longest_cell = max((cell_len(line) for cell in cells for line in cell.splitlines()), default=0)
    parts = (cell_len(part) for cell in cells for part in cell.split())
    folded = min(longest_cell, FOLDED) if column.is_text else max(parts, default=0)
    return max(longest_word, folded), max(longest_word, longest_cell)


def _panels(table: ShownTable, widths: list[int], folded: list[int], width: int) -> list[list[int]]:
    """Split the columns into groups that fit the width, each beginning with those that say what a row is.

    Where these take more than half of the width, their texts are folded further, for which `widths` is changed. Where
    that does not leave enough room for any other column, estimates and ends of intervals stand one below the other;
    then texts are folded more narrowly still, and at last counts among the first stand in one group only.
    """
    if sum(widths) + GAP * len(widths) <= width:
        return [list(range(len(widths)))]
    leading = list(range(table.num_naming))
    texts = [position for position in leading if table.columns[position].is_text]
    while True:
        others = [position for position in range(len(widths)) if position not in leading]
        room = width - sum(widths[position] + GAP for position in leading)
        is_enough = room >= max((widths[position] + GAP for position in others), default=0)
        widest = max(texts, key=lambda position: widths[position], default=None)
        if is_enough and room >= width // 2:
            break
        if widest is not None and widths[widest] > NARROW:
            widths[widest] -= 1
        elif not is_enough and any(widths[position] > folded[position] for position in others):
            widths[:] = [min(pair) for pair in zip(widths, folded, strict=True)]
        elif not is_enough and widest is not None and widths[widest] > NARROWEST:
            widths[widest] -= 1
        elif not is_enough and leading and table.columns[leading[-1]].unit == "count":
            leading.pop()
        else:
            break
    panels: list[list[int]] = [[]]
    taken = 0
    for position in others:
        if panels[-1] and taken + widths[position] + GAP > room:
            panels.append([])
            taken = 0
        panels[-1].append(position)
        taken += widths[position] + GAP
    return [[*leading, *panel] for panel in panels]


def _print_failures(failures: tuple[TrialFailure, ...], console: Console) -> None:
    console.print()
    _print_heading(f"{pluralize(len(failures), 'trial')} failed", console)
    for failure in failures[:MOST_FAILURES]:
        console.print(Padding(Text(f"{failure.trial}: {failure.error}"), (0, 0, 0, 2)))
    if len(failures) > MOST_FAILURES:
        console.print(Text(f"  ... and {len(failures) - MOST_FAILURES:,} more in report.json", "dim"))
    console.print(Text("Traceback of the first:", "bold"))
    console.print(Padding(Text(failures[0].traceback.rstrip()), (0, 0, 0, 2)))
