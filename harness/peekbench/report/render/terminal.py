"""Renders a report for a terminal: the verdicts with their intervals and the main tables, or everything."""

from __future__ import annotations

import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from peekbench.formatting import TICK_STEPS, format_signed, pluralize, shorten, tick_decimals, with_sign
from peekbench.records.figures import Forest, Interval
from peekbench.records.report import Column as TableColumn
from peekbench.records.report import Report, Table
from peekbench.records.trials import TrialFailure
from peekbench.records.verdicts import Unit, Verdict
from peekbench.report.render.answers import (
    CONTROLS,
    answer,
    basis_in_words,
    define_terms,
    explain_adjustments,
    explain_decisions,
    verdict_sections,
)
from peekbench.report.render.content import cell_text, make_printable
from peekbench.report.render.pictures import list_undrawn_figures
from peekbench.report.render.sentences import state_briefly
from peekbench.report.render.words import DECISION_STYLES

GAP = 3  # characters between the columns of a table
MAX_TEXT_WIDTH = 26  # of a column of texts, if a table does not fit otherwise
LONG_WORD = re.compile(rf"\S{{{MAX_TEXT_WIDTH + 1},}}")
DECISION_WIDTH = 14  # of the column of decisions
MAX_PLOT_WIDTH = 110  # of an interval with its label and numbers
MIN_AXIS_WIDTH = 12
MAX_VERDICTS, MAX_ROWS, MAX_WARNINGS = 12, 12, 4
MAX_DETAILED = 6  # verdicts up to which each has a line on what it leaves open
MAX_SHOWN = 240  # characters of an error


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
    Biased?       No. lsa is equivalent.
    How large?    +0.10 [-0.20, +0.40] points. Up to 0.50 points is negligible.
    Trust it?     No controls. No warnings.
    What next?    Nothing. The bias is negligible.
    <BLANKLINE>
    Does a method score higher if its unlabeled data come from the test set?
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
    report = make_printable(report)
    console.print(Text.assemble((report.name, "bold"), f"  {report.headline}"))
    _print_answers(report, console)
    render_verdicts(report.verdicts, console, full=full)
    if full:
        _print_figures(report, console)
    for table in report.tables if full else _select_tables(report):
        console.print()
        _print_table(table, console, full=full)
    if report.failures:
        _print_failures(report.failures, console, full=full)
    if full and report.provenance:
        console.print(Text("\nProvenance", "bold"))
        for name, text in report.provenance.items():
            console.print(Text.assemble((f"{name}: ", "bold"), text))
    _print_warnings(report.warnings, console, full=full)
    if closing:
        console.print()
    for line in closing:
        console.print(Text(line), soft_wrap=True)


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
    Sizes
     task    rows
    ──────────────
     trec   5,452
    <BLANKLINE>
    """
    for table in tables:
        _print_table(table, console, full=True)
        console.print()


def render_verdicts(verdicts: Sequence[Verdict], console: Console, *, full: bool = False) -> None:
    """Print verdicts on methods by question, then those on controls.

    Parameters
    ----------
    verdicts
        Verdicts; of several on one method, the first leads.
    console
        Console of rich.
    full
        Print all verdicts, with their sentences.
    """
    verdicts = make_printable(Report("", "", tuple(verdicts))).verdicts
    sections = list(verdict_sections(verdicts))
    for heading, answers in sections:
        if heading == CONTROLS:  # one that did not pass is never left out before one that did
            answers.sort(key=lambda answer: answer[0].decision == "passed")
        console.print(Text(f"\n{heading}", "bold"))
        if heading != CONTROLS:
            console.print(Text(define_terms(answers[0][0]), "dim"))
        shown, others = answers, []
        if not full and len(answers) > MAX_VERDICTS:  # a bias is never left out before a verdict without one
            by_interest = sorted(answers, key=lambda answer: not answer[0].decision.startswith("biased"))
            others = [lead for lead, _ in by_interest[MAX_VERDICTS:]]
            shown = [answer for answer in answers if answer[0] not in others]
        _print_plots(shown, verdicts, console, full=full)
        if others:
            counts = Counter(lead.decision for lead in others)
            listed = ", ".join(f"{number:,} {decision}" for decision, number in counts.items())
            console.print(Text(f"... and {len(others):,} more: {listed}", "dim"))
        if heading == sections[0][0]:
            console.print(Text(explain_decisions(verdicts), "dim"))
            if full and (adjustments := explain_adjustments(verdicts)):
                console.print(Text(adjustments, "dim"))


def _print_answers(report: Report, console: Console) -> None:
    for place, each in enumerate(answer(report)):
        if not place:
            console.print()
        console.print(_beside(Text(each.question, "bold"), Text(each.text)))
        if each.command:  # never broken, to be copied
            console.print(Text(" " * DECISION_WIDTH + each.command), soft_wrap=True)


def _print_plots(
    answers: Sequence[tuple[Verdict, str]], verdicts: Sequence[Verdict], console: Console, *, full: bool
) -> None:
    """Print verdicts; those with an interval in the same unit share an axis."""
    groups: dict[Unit | None, list[tuple[Verdict, str]]] = {}
    for lead, sentence in answers:
        groups.setdefault(lead.unit if lead.estimate.has_interval else None, []).append((lead, sentence))
    for unit, members in groups.items():
        intervals = [_as_interval(lead) for lead, _ in members] if unit else []
        plot = Plot(intervals, unit or "change", min(MAX_PLOT_WIDTH, console.width) - DECISION_WIDTH)
        for place, (lead, sentence) in enumerate(members):
            content = plot.draw(intervals[place]) if unit else Text(lead.method)
            console.print(_beside(Text(lead.decision, DECISION_STYLES[lead.decision]), content))
            is_short = len(answers) <= MAX_DETAILED and lead.decision != "passed"
            is_control_without_interval = unit is None and lead.control != ""
            parts = []
            if full or is_short or is_control_without_interval:
                parts.append(state_briefly(lead, verdicts))
            if full or (unit is None and not lead.control):
                parts.append(sentence + basis_in_words(lead))
            if text := "\n".join(parts):
                console.print(_beside(Text(""), Text(text, "dim")))
        if unit:
            console.print(_beside(Text(""), plot.draw_axis()))


def _as_interval(verdict: Verdict) -> Interval:
    return Interval(verdict.method, verdict.estimate.mean, verdict.estimate.low, verdict.estimate.high)


def _beside(decision: Text, content: RenderableType) -> RichTable:
    grid = RichTable.grid(Column(width=DECISION_WIDTH), Column(overflow="fold"))
    grid.add_row(decision, content)
    return grid


def _select_tables(report: Report) -> list[Table]:
    """Return the tables that are an overview; if there are neither any nor verdicts, the first tables of results."""
    tables = [table for table in report.tables if table.overview]
    if tables or report.verdicts:
        return tables
    return [table for table in report.tables if table.topic == "results"][:2]


def _print_table(table: Table, console: Console, *, full: bool) -> None:
    """Print a table, without the columns that do not fit the width, which are named below."""
    console.print(Text(table.title, "bold"))
    shown = list(range(len(table.columns)))
    if not full and table.overview:
        known = [column.name for column in table.columns]
        shown = [known.index(name) for name in table.overview if name in known]
    columns = [table.columns[place] for place in shown]
    rows = [[cell_text(row[place], table.columns[place].unit) for place in shown] for row in table.rows]
    num_rows, num_fitting = len(rows), _count_fitting(columns, rows, console.width)
    rows = rows if full else rows[:MAX_ROWS]
    panel = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    for column in columns[:num_fitting]:
        panel.add_column(
            Text(column.name if column.is_text else "\n".join(column.name.split())),  # rich would crop it above numbers
            justify="left" if column.is_text else "right",
            overflow="fold",
            no_wrap=not column.is_text,
        )
    natural = sum(GAP + max(cell_len(row[place]) for row in rows) for place in range(num_fitting)) if rows else 0
    for row in rows:
        texts = row[:num_fitting]
        if natural > console.width:
            texts = [LONG_WORD.sub(_break_name, text) for text in texts]
        panel.add_row(*map(Text, texts))
    console.print(panel)
    if len(rows) < num_rows:
        console.print(Text(f"... and {num_rows - len(rows):,} more rows", "dim"))
    if left_out := ", ".join(column.name for column in columns[num_fitting:]):
        console.print(Text(f"A wider terminal also shows: {left_out}", "dim"))
    if full and table.note:
        console.print(Text(table.note, "dim"))


def _break_name(name: re.Match[str]) -> str:
    """Break a long name after its separators instead of inside a word."""
    lines = [""]
    for part in re.findall(r"[^-_./:]*[-_./:]*", name[0]):
        lines = [*lines, part] if len(lines[-1] + part) > MAX_TEXT_WIDTH else [*lines[:-1], lines[-1] + part]
    return "\n".join(filter(None, lines))


def _count_fitting(columns: Sequence[TableColumn], rows: Sequence[Sequence[str]], width: int) -> int:
    """Return the number of leading columns that fit; texts are wrapped, numbers are not."""
    used = 0
    for position, column in enumerate(columns):
        longest = max((cell_len(row[position]) for row in rows), default=0)
        heading = max(map(cell_len, column.name.split()), default=0)
        used += GAP + max(heading, min(longest, MAX_TEXT_WIDTH) if column.is_text else longest)
        if used > width:
            return max(position, 1)
    return len(columns)


def _print_figures(report: Report, console: Console) -> None:
    for figure in report.figures:
        if isinstance(figure, Forest):
            console.print(Text(f"\n{figure.title}", "bold"))
            console.print(draw_forest(figure, console.width))
            console.print(Text(figure.note, "dim"))
    if undrawn := list_undrawn_figures(report):
        console.print(Text(f"\n{undrawn}", "dim"))


def _print_failures(failures: Sequence[TrialFailure], console: Console, *, full: bool) -> None:
    console.print(Text(f"\n{pluralize(len(failures), 'trial')} failed", DECISION_STYLES["failed"]))
    for failure in failures[: MAX_ROWS if full else 1]:
        console.print(Text(f"{failure.trial}: {shorten(failure.error, MAX_SHOWN)}"))
    if full:
        console.print(Text("Traceback of the first failure; report.json has all:", "bold"))
        console.print(Text(failures[0].traceback.rstrip()))


def _print_warnings(warnings: Sequence[str], console: Console, *, full: bool) -> None:
    if warnings:
        console.print()
    num_shown = len(warnings) if full else MAX_WARNINGS
    for warning in warnings[:num_shown]:
        console.print(Text.assemble(("Warning: ", "bold"), warning))
    if (left_out := len(warnings) - num_shown) > 0:
        console.print(Text(f"... and {pluralize(left_out, 'more warning', 'more warnings')}", "bold"))


ESTIMATE, LINE, LEFT, RIGHT, ZERO = "●", "─", "├", "┤", "│"
CHARACTERS_PER_TICK = 8


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
    console = Console(file=io.StringIO(), width=width, color_system=None, force_jupyter=False)
    with console.capture() as captured:
        console.print(draw_forest(forest, width))
    return [line.rstrip() for line in captured.get().splitlines()]


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
        self._unit, self._factor = unit, 100 if unit == "difference" else 1
        ends = [end for each in intervals for end in (each.low, each.estimate, each.high)]
        self._number_width = max((len(format_signed(end, unit)) for end in ends), default=0)
        longest = max((cell_len(interval.label) for interval in intervals), default=0)
        room = width - 3 * self._number_width - 7  # of label and axis
        self._label_width = max(1, min(longest, width * 2 // 5, room - MIN_AXIS_WIDTH))
        self._width = max(MIN_AXIS_WIDTH, room - self._label_width)
        self._low = min([0.0, *(end * self._factor for end in ends)])
        self._high = max([0.0, *(end * self._factor for end in ends)])
        if self._low == self._high:
            self._low, self._high = -1.0, 1.0

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
            format_signed(value, self._unit).rjust(self._number_width)
            for value in (interval.estimate, interval.low, interval.high)
        )
        plot = Text("".join(line))
        plot.highlight_regex(ESTIMATE, "bold")
        plot.highlight_regex(ZERO, "dim")
        label, numbers = Text(interval.label, "bold" if interval.is_average else ""), f"{estimate} [{start}, {end}]"
        if cell_len(interval.label) <= self._label_width:
            return self._row(label, plot, numbers)
        return Group(label, self._row(Text(""), plot, numbers))

    def draw_axis(self) -> RichTable:
        """Draw the numbers below the axis, each centered; one that would touch another one is left out."""
        span = self._high - self._low
        steps = (step for step in TICK_STEPS if span / step <= self._width / CHARACTERS_PER_TICK)
        step = next(steps, TICK_STEPS[-1])
        line = [" "] * self._width
        numbers = range(math.ceil(self._low / step), math.floor(self._high / step) + 1)
        for tick in (number * step for number in sorted(numbers, key=abs)):  # zero first, so that it is kept
            text = with_sign(tick, tick_decimals(step))
            start = min(max(0, self._column(tick / self._factor) - len(text) // 2), self._width - len(text))
            if all(cell == " " for cell in line[max(0, start - 1) : start + len(text) + 1]):
                line[start : start + len(text)] = text
        return self._row(Text(""), Text("".join(line), "dim"), "points" if self._factor == 100 else "")

    def _column(self, value: float) -> int:
        return round((value * self._factor - self._low) / (self._high - self._low) * (self._width - 1))

    def _row(self, label: Text, plot: Text, numbers: str) -> RichTable:
        grid = RichTable.grid(
            Column(width=self._label_width, overflow="fold"),
            Column(width=self._width, no_wrap=True),
            Column(width=3 * self._number_width + 5, justify="right", no_wrap=True),
            padding=(0, 1),
        )
        grid.add_row(label, plot, numbers)
        return grid
