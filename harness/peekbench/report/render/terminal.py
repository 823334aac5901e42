"""Renders a report for a terminal: the verdicts with their intervals and the main tables, or everything."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Column
from rich.table import Table as RichTable
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

from peekbench.formatting import format_cell, format_signed, pluralize, points
from peekbench.records.figures import Figure, Forest, Interval
from peekbench.records.report import Column as TableColumn
from peekbench.records.report import Report, Table
from peekbench.records.trials import TrialFailure
from peekbench.records.verdicts import Unit, Verdict
from peekbench.report.render.advice import Answer
from peekbench.report.render.content import Block, Code, Facts, Finding, Findings, Paragraph, Part, lay_out
from peekbench.report.render.pictures import UNDRAWN, Picture, Scale

PICTURE_WIDTH = 110  # characters of a line of a picture of the screen
GAP = 3  # characters between the columns of a table
MAX_TEXT_WIDTH = 26  # of a column of texts, if a table does not fit otherwise
DECISION_WIDTH = 14  # of the column of decisions
MAX_PLOT_WIDTH = 110  # of an interval with its label and numbers
MIN_AXIS_WIDTH = 12
MAX_VERDICTS, MAX_ROWS, MAX_WARNINGS, MAX_TABLES = 12, 12, 4, 2
FIRST_SCREEN = ("answers", "verdicts", "warnings", "tables")
"""Parts that one screen shows."""
TEMPLATE = Path(__file__).parent / "templates" / "terminal.svg"
MAX_DETAILED = 6  # verdicts up to which each has a line on what it leaves open
DECISION_STYLES = {
    **dict.fromkeys(("inconclusive", "inert", "no signal", "undecided"), "bold"),
    "biased up": "bold red",
    "biased down": "bold magenta",
    "equivalent": "bold green",
    "passed": "bold green",
    "failed": "bold red",
}
"""Style of each decision: colors that are legible on dark and on light backgrounds, which yellow and cyan are not."""


def render_text(report: Report, console: Console, closing: Sequence[str] = (), *, full: bool = False) -> None:
    """Print a report.

    Parameters
    ----------
    report
        Report to print.
    console
        Console of rich; its width decides how the report is laid out.
    closing
        Lines to print at the end, such as the paths of files. They are never broken.
    full
        Print all sentences, figures, rows and tables instead of one screen.

    Examples
    --------
    >>> from rich.console import Console
    >>> from peekbench import Estimate, Verdict
    >>> from peekbench.records import Family
    >>> estimate = Estimate(0.001, low=-0.002, high=0.004)
    >>> verdict = Verdict("lsa", "bias", "equivalent", estimate, region=0.005, family=Family(level=0.95))
    >>> report = Report("tickets", "1 method on 1 task", (verdict,))
    >>> render_text(report, Console(width=78), ["Report: report.html"])  # doctest: +NORMALIZE_WHITESPACE
    tickets  1 method on 1 task
    <BLANKLINE>
    Question      Does a method score higher if its unlabeled data come from the
                  test set?
    Biased?       No. lsa is equivalent.
    How large?    +0.10 [-0.20, +0.40] points. The 95% interval is in brackets. Up
                  to 0.50 points is negligible.
    Checked?      No controls.
    What next?    Nothing. The bias is negligible.
    <BLANKLINE>
    Verdicts
    Each method is scored three times. Base: without unlabeled texts. Extra: with
    independent ones. Test: with those of the test set. Bias: test - extra.
    equivalent    lsa ├──────────────────●──────────────────┤ +0.10 [-0.20, +0.40]
                  Test texts change accuracy by less than 0.50 points.
                      -0.2        0.0        +0.2        +0.4               points
    95% intervals. Biased: the interval excludes 0 and extends beyond ±0.50
    points. Equivalent: the interval lies entirely within ±0.50 points.
    Inconclusive: neither.
    <BLANKLINE>
    Report: report.html
    """
    content = lay_out(report)
    console.print(Text.assemble((content.name, "bold"), f"  {content.headline}"))
    for part in content.parts:
        if full or part.name in FIRST_SCREEN:
            _print_part(part, console, full=full)
    if closing:
        console.print()
    for line in closing:
        console.print(Text(line), soft_wrap=True)


def _print_part(part: Part, console: Console, *, full: bool) -> None:
    """Print all blocks of a part, or those of its blocks that fit one screen."""
    blocks = part.blocks
    if not full and part.name == "tables":
        blocks = tuple(block for block in blocks if isinstance(block, Table) and block.overview) or blocks[:MAX_TABLES]
    elif not full and part.name == "warnings":
        blocks = blocks[:MAX_WARNINGS]
    console.print()
    if part.name in ("failures", "provenance"):  # the blocks of others have headings of their own
        console.print(Text(part.heading, "bold"))
    for place, block in enumerate(blocks):
        if place and isinstance(block, Findings | Table | Picture):
            console.print()
        _print_block(block, console, full=full)
    if part.name == "warnings" and len(blocks) < len(part.blocks):
        left_out = pluralize(len(part.blocks) - len(blocks), "more warning", "more warnings")
        console.print(Text(f"... and {left_out}", "bold"))


def _print_block(block: Block, console: Console, *, full: bool) -> None:
    match block:
        case Answer():
            console.print(_beside(Text(block.question, "bold"), Text(block.text)))
            if block.command:  # never broken, to be copied
                console.print(Text(" " * DECISION_WIDTH + block.command), soft_wrap=True)
        case Findings():
            _print_findings(block, console, full=full)
        case Paragraph(is_warning=True):
            console.print(Text.assemble(("Warning: ", "bold"), block.text))
        case Paragraph():
            console.print(Text(block.text))
        case Table():
            _print_table(block, console, full=full)
        case Picture():
            _print_figure(block.figure, console)
        case TrialFailure():
            console.print(Text(f"{block.trial}: {block.error}", DECISION_STYLES["failed"]))
            console.print(Text(block.traceback.rstrip()))
        case Facts():
            for name, text in block.pairs:
                console.print(Text.assemble((f"{name}: ", "bold"), text))
        case Code():
            console.print(Text(block.text), soft_wrap=True)


def _print_figure(figure: Figure, console: Console) -> None:
    console.print(Text(figure.title, "bold"))
    if isinstance(figure, Forest):
        console.print(draw_forest(figure, console.width))
    else:
        console.print(Text(UNDRAWN, "dim"))
    if figure.note:
        console.print(Text(figure.note, "dim"))


def render_tables(tables: Iterable[Table], console: Console, *, full: bool = True) -> None:
    """Print tables that are not part of a report.

    Parameters
    ----------
    tables
        Tables to print.
    console
        Console of rich; its width decides how tables are laid out.
    full
        Print all rows and columns instead of an overview.

    Examples
    --------
    >>> from peekbench import Column, Table
    >>> from rich.console import Console
    >>> table = Table("Sizes", (Column("task"), Column("rows", "count")), (("trec", 5452),))
    >>> render_tables([table], Console(width=40))  # doctest: +NORMALIZE_WHITESPACE
    Sizes
     task    rows
    ──────────────
     trec   5,452
    <BLANKLINE>
    """
    for table in tables:
        _print_table(table, console, full=full)
        console.print()


def _print_findings(section: Findings, console: Console, *, full: bool) -> None:
    """Print verdicts; the short view leaves out those beyond `MAX_VERDICTS`, but no bias before one without a bias."""
    console.print(Text(section.heading, "bold"))
    if section.definition:
        console.print(Text(section.definition, "dim"))
    others: list[Finding] = []
    if not full:
        by_interest = sorted(section.findings, key=lambda finding: not finding.verdict.decision.startswith("biased"))
        others = by_interest[MAX_VERDICTS:]
    _print_plots([finding for finding in section.findings if finding not in others], console, full=full)
    if others:
        counts = Counter(finding.verdict.decision for finding in others)
        listed = ", ".join(f"{number:,} {decision}" for decision, number in counts.items())
        console.print(Text(f"... and {len(others):,} more: {listed}", "dim"))
    if section.explanation:
        console.print(Text(section.explanation, "dim"))
    if full and section.background:
        console.print(Text(section.background, "dim"))


def _print_plots(findings: Sequence[Finding], console: Console, *, full: bool) -> None:
    """Print verdicts; those with an interval in the same unit share an axis."""
    groups: dict[tuple[bool, Unit], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.verdict.estimate.has_interval, finding.verdict.unit), []).append(finding)
    for (is_drawn, unit), members in groups.items():
        intervals = [_as_interval(finding.verdict) for finding in members if is_drawn]
        plot = Plot(intervals, unit, min(MAX_PLOT_WIDTH, console.width) - DECISION_WIDTH)
        for finding in members:
            verdict = finding.verdict
            drawn: RenderableType = Text(verdict.method)
            if is_drawn:
                drawn = plot.draw(_as_interval(verdict))
            console.print(_beside(Text(finding.decision, DECISION_STYLES[verdict.decision]), drawn))
            is_short = len(findings) <= MAX_DETAILED and verdict.decision != "passed"
            if full or is_short or not is_drawn:
                console.print(_beside(Text(""), Text(finding.short, "dim")))
            if full or not (is_drawn or verdict.control):
                console.print(_beside(Text(""), Text(finding.explained, "dim")))
        if is_drawn:
            console.print(_beside(Text(""), plot.draw_axis()))


def _as_interval(verdict: Verdict) -> Interval:
    return Interval(verdict.method, verdict.estimate.mean, verdict.estimate.low, verdict.estimate.high)


def _beside(decision: Text, content: RenderableType) -> RichTable:
    grid = RichTable.grid(Column(width=DECISION_WIDTH - 1), Column(overflow="fold"), padding=(0, 1, 0, 0))
    grid.add_row(decision, content)
    return grid


def _print_table(table: Table, console: Console, *, full: bool) -> None:
    """Print a table, without the columns that do not fit the width, which are named below."""
    console.print(Text(table.title, "bold"))
    places = list(range(len(table.columns)))
    if not full and table.overview:
        names = [column.name for column in table.columns]
        places = [names.index(name) for name in table.overview if name in names]
    columns = [table.columns[place] for place in places]
    rows = [[format_cell(row[place], table.columns[place].unit) for place in places] for row in table.rows]
    num_fitting, num_shown = _count_fitting(columns, rows, console.width), len(rows)
    if not full:
        num_shown = min(num_shown, MAX_ROWS)
    panel = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    for column in columns[:num_fitting]:
        if column.is_text:
            panel.add_column(Text(column.name), overflow="fold")
        else:  # rich would crop the heading above numbers
            panel.add_column(Text("\n".join(column.name.split())), justify="right", no_wrap=True)
    for row in rows[:num_shown]:
        panel.add_row(*map(Text, row[:num_fitting]))
    console.print(panel)
    if num_shown < len(rows):
        console.print(Text(f"... and {len(rows) - num_shown:,} more rows", "dim"))
    if in_points := ", ".join(column.name for column in columns[:num_fitting] if points(column.unit)):
        console.print(Text(f"In points: {in_points}", "dim"))
    if left_out := ", ".join(column.name for column in columns[num_fitting:]):
        console.print(Text(f"A wider terminal also shows: {left_out}", "dim"))
    if note := table.note if full else table.caption:
        console.print(Text(note, "dim"))


def _count_fitting(columns: Sequence[TableColumn], rows: Sequence[Sequence[str]], width: int) -> int:
    """Return the number of leading columns that fit; texts are wrapped, numbers are not."""
    used = 0
    for place, column in enumerate(columns):
        longest = max((cell_len(row[place]) for row in rows), default=0)
        if column.is_text:
            longest = min(longest, MAX_TEXT_WIDTH)
        used += GAP + max(longest, *map(cell_len, column.name.split()), 0)
        if used > width:
            return max(place, 1)
    return len(columns)


ESTIMATE, LINE, LEFT, RIGHT, ZERO = "●", "─", "├", "┤", "│"
CHARACTERS_PER_TICK = 8
LABEL_STYLES = {True: "bold", False: ""}
"""Style of the label of an interval, by whether it is that of an average."""


def draw_forest(forest: Forest, width: int) -> Group:
    """Draw a forest plot in lines of at most `width` characters, with the numbers at the right.

    A label that is too long for its column has a line of its own.
    """
    plot = Plot([interval for _, group in forest.groups for interval in group], forest.unit, width)
    lines: list[RenderableType] = []
    for heading, group in forest.groups:
        lines += [Text(heading, "bold"), *map(plot.draw, group)]
    return Group(*lines, plot.draw_axis())


def forest_as_text(forest: Forest, width: int) -> list[str]:
    """Return the lines of a forest plot as texts without colors."""
    console = _make_console(width)
    console.print(draw_forest(forest, width))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def render_screen(report: Report) -> str:
    """Return a picture of the screen as SVG."""
    console = _make_console(PICTURE_WIDTH, record=True, force_terminal=True, color_system="truecolor")
    render_text(report, console)
    # The template of rich loads a font from a web server; this one uses the reader's fonts.
    template, title = TEMPLATE.read_text(encoding="utf-8"), f"peekbench report {report.name}"
    return console.export_svg(title=title, theme=SVG_EXPORT_THEME, code_format=template, unique_id="report")


def _make_console(width: int, **options: Any) -> Console:
    """Return a console that writes into memory; in a notebook, rich would show everything below the cell."""
    defaults: dict[str, Any] = {"color_system": None, "force_terminal": False}
    return Console(file=io.StringIO(), width=width, force_jupyter=False, legacy_windows=False, **(defaults | options))


class Plot:
    """Intervals in characters, one per row, on the shortest axis that contains zero and all of them.

    Parameters
    ----------
    intervals
        All intervals of the plot.
    unit
        Their unit; differences of fractions are drawn in percentage points.
    width
        Characters of a line.
    """

    def __init__(self, intervals: Sequence[Interval], unit: Unit, width: int) -> None:
        ends = [end for interval in intervals for end in (interval.low, interval.estimate, interval.high)]
        self._scale = Scale.fitting(ends, unit)
        self._number_width = max((len(format_signed(end, unit)) for end in ends), default=0)
        longest = max((cell_len(interval.label) for interval in intervals), default=0)
        room = width - 3 * self._number_width - 7  # of label and axis
        self._label_width = max(1, min(longest, width * 2 // 5, room - MIN_AXIS_WIDTH))
        self._width = max(MIN_AXIS_WIDTH, room - self._label_width)

    def draw(self, interval: Interval) -> RenderableType:
        """Draw an interval with its label and numbers."""
        low, middle, high = (self._column(end) for end in (interval.low, interval.estimate, interval.high))
        line = [" "] * self._width
        line[self._column(0.0)] = ZERO
        line[low : high + 1] = LINE * (high + 1 - low)
        if high > low:
            line[low], line[high] = LEFT, RIGHT
        line[middle] = ESTIMATE
        estimate, start, end = (
            format_signed(value, self._scale.unit).rjust(self._number_width)
            for value in (interval.estimate, interval.low, interval.high)
        )
        plot = Text("".join(line))
        plot.highlight_regex(ESTIMATE, "bold")
        plot.highlight_regex(ZERO, "dim")
        label, numbers = Text(interval.label, LABEL_STYLES[interval.is_average]), f"{estimate} [{start}, {end}]"
        if cell_len(interval.label) <= self._label_width:
            return self._row(label, plot, numbers)
        return Group(label, self._row(Text(""), plot, numbers))

    def draw_axis(self) -> RichTable:
        """Draw the numbers below the axis, each centered; one that would touch another one is left out."""
        line = [" "] * self._width
        ticks = self._scale.ticks(self._width / CHARACTERS_PER_TICK)
        for value, text in sorted(ticks, key=lambda tick: abs(tick[0])):  # zero first, so that it is kept
            start = min(max(0, self._column(value) - len(text) // 2), self._width - len(text))
            if all(cell == " " for cell in line[max(0, start - 1) : start + len(text) + 1]):
                line[start : start + len(text)] = text
        return self._row(Text(""), Text("".join(line), "dim"), points(self._scale.unit).strip())

    def _column(self, value: float) -> int:
        return round(self._scale.share(value) * (self._width - 1))

    def _row(self, label: Text, plot: Text, numbers: str) -> RichTable:
        grid = RichTable.grid(
            Column(width=self._label_width, overflow="fold"),
            Column(width=self._width, no_wrap=True),
            Column(width=3 * self._number_width + 5, justify="right", no_wrap=True),
            padding=(0, 1),
        )
        grid.add_row(label, plot, numbers)
        return grid
