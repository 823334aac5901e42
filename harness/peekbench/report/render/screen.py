"""Renders the short view of a report, which fits one screen of a terminal.

It has the verdicts, the tables that analyses mark as an overview, failures and warnings. If these take more lines than
a screen, details are left out step by step, and a line names what is missing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from peekbench.formatting import pluralize
from peekbench.records.figures import Forest, Interval
from peekbench.records.report import Report, Table
from peekbench.records.verdicts import TrialEvidence, Verdict
from peekbench.report.render.content import make_printable
from peekbench.report.render.figures import Line, draw_forest, label_room
from peekbench.report.render.sentences import (
    format_estimate,
    format_size,
    state_alone,
    state_log_likelihood,
    tell_looks,
)
from peekbench.report.render.terminal import format_table, style_line
from peekbench.report.render.words import (
    DECISION_STYLES,
    ask_about,
    basis_of,
    size_in_words,
    split_verdicts,
)

MAX_LINES = 45
SIZES = ("num_train", "num_test")
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
    >>> from peekbench import Estimate, Verdict
    >>> from peekbench.records import Family
    >>> estimate = Estimate(0.001, low=-0.002, high=0.004)
    >>> verdict = Verdict("lsa", "bias", "equivalent", estimate, region=0.005, family=Family(level=0.95))
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


DECISION_WIDTH = 14  # characters of the column of decisions
MIN_PLOT = 72  # columns of a terminal; in a narrower one, an axis would leave so little room that labels are broken
MAX_PLOT = 110  # characters of a line with an interval
MAX_LABEL = 48  # characters of a method's name
MAX_VERDICTS = 12


def render_verdicts(
    verdicts: Sequence[Verdict], console: Console, *, max_verdicts: int = MAX_VERDICTS, has_details: bool = False
) -> None:
    """Print verdicts on methods by question, then those on controls.

    Parameters
    ----------
    verdicts
        Verdicts; of several on one method, the first leads.
    console
        Console of rich.
    max_verdicts
        Verdicts to print of each question, and of controls; the others are counted.
    has_details
        Add a line on what each decision leaves open.
    """
    (verdicts, sizes) = _shorten_labels(make_printable(Report("", "", tuple(verdicts))).verdicts)
    judged, controls = split_verdicts(verdicts)
    by_question: dict[str, list[Verdict]] = {}
    for verdict in judged:
        by_question.setdefault(ask_about(verdict.effect), []).append(verdict)
    for question, answers in by_question.items():
        console.print()
        console.print(Text(question, "bold"))
        groups = list(_by_method(answers))
        shown = groups[:max_verdicts]
        _print_judged(shown, console, has_details=has_details)
        if others := groups[max_verdicts:]:
            print_note(f"... and {_count_decisions([lead for lead, *_ in others])}", console)
        notes = " ".join(filter(None, (sizes, _explain([lead for lead, *_ in groups]))))
        print_note(notes, console, max_lines=7 if has_details else 5)
    if controls:
        console.print()
        console.print(Text("Controls, whose bias is known", "bold"))
        leads = [lead for lead, *_ in _by_method(controls)]
        # A control that did not pass is never left out before one that did.
        leads.sort(key=lambda verdict: verdict.decision == "passed")
        _print_estimates([[lead] for lead in leads[:max_verdicts]], console)
        if left_out := leads[max_verdicts:]:
            print_note(f"... and {_count_decisions(left_out)}", console)


def _shorten_labels(verdicts: Sequence[Verdict]) -> tuple[tuple[Verdict, ...], str]:
    """Return verdicts with 'lsa (50, 200)' for 'lsa (num_train=50, num_test=200)', and a sentence on the sizes.

    Labels are kept if they do not all have the same sizes.
    """
    names = {tuple(name for name, value in verdict.parts if name in SIZES and value) for verdict in verdicts}
    if len(names) != 1 or not (sizes := names.pop()):
        return tuple(verdicts), ""
    shortened = (replace(verdict, method=_short_label(verdict)) for verdict in verdicts)
    return tuple(shortened), f"In parentheses: {', '.join(sizes)}."


def _short_label(verdict: Verdict) -> str:
    values = ", ".join(str(value) for name, value in verdict.parts if name != "method" and value)
    return f"{verdict.name} ({values})"


def _by_method(verdicts: Sequence[Verdict]) -> Iterator[list[Verdict]]:
    """Yield the verdicts on each method, with that of the first analysis first."""
    by_subject: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        by_subject.setdefault((verdict.method, verdict.effect), []).append(verdict)
    yield from by_subject.values()


def _print_judged(groups: Sequence[Sequence[Verdict]], console: Console, *, has_details: bool) -> None:
    """Print the verdicts on methods; those with an interval in the same unit share an axis."""
    by_unit: dict[str, list[Sequence[Verdict]]] = {}
    for group in groups:
        lead = group[0]
        by_unit.setdefault(lead.unit if lead.estimate.has_interval else "", []).append(group)
    for unit, members in by_unit.items():
        if not unit:
            _print_undrawn(members, console)
            continue
        if console.width < MIN_PLOT:
            _print_estimates(members, console, has_details=has_details)
            continue
        _print_intervals(members, console, has_details=has_details)


def _print_intervals(groups: Sequence[Sequence[Verdict]], console: Console, *, has_details: bool) -> None:
    """Print verdicts with their intervals on a common axis; long names stand on lines of their own."""
    unit = groups[0][0].unit
    width = min(MAX_PLOT, console.width) - DECISION_WIDTH + 2
    names = [" ".join(lead.method.split()) for lead, *_ in groups]
    intervals = [
        Interval(name, lead.estimate.mean, lead.estimate.low, lead.estimate.high)
        for name, (lead, *_) in zip(names, groups, strict=True)
    ]
    room = label_room(intervals, unit, width)
    intervals = [replace(each, label="" if cell_len(each.label) > room else each.label) for each in intervals]
    forest = Forest("", (("", tuple(intervals)),), unit=unit)
    *rows, axis = [line for line in draw_forest(forest, width) if line.kind != "heading"]
    for group, name, interval, line in zip(groups, names, intervals, rows, strict=True):
        start = _decision(group[0])
        if not interval.label:
            console.print(Text.assemble(start, _shorten(name, console.width - DECISION_WIDTH)), soft_wrap=True)
            start = Text(" " * DECISION_WIDTH)
        _print_plot(start, line, console)
        if has_details:
            _print_details(group, console)
    _print_plot(Text(" " * DECISION_WIDTH), axis, console)


def _print_plot(start: Text, line: Line, console: Console) -> None:
    styled = style_line(replace(line, label=line.label[2:]), console.width)
    console.print(Text.assemble(start, styled), no_wrap=True, crop=True)


def _print_estimates(groups: Sequence[Sequence[Verdict]], console: Console, *, has_details: bool = False) -> None:
    """Print verdicts with their intervals in numbers alone."""
    leads = [lead for lead, *_ in groups]
    estimates = max(len(format_estimate(lead.estimate, lead.unit)) for lead in leads)
    longest = max(8, min(MAX_LABEL, console.width - DECISION_WIDTH - estimates - 2))
    names = [lead.method for lead in leads]
    short = [_shorten(name, longest) for name in names]
    labels = short if len(set(short)) == len(set(names)) else names  # a broken line is better than one name for two
    for lead, label, group in zip(leads, labels, groups, strict=True):
        padded = f"{label.ljust(max(map(len, labels)))}  "
        console.print(Text.assemble(_decision(lead), padded, format_estimate(lead.estimate, lead.unit)), soft_wrap=True)
        if has_details:
            _print_details(group, console)


def _shorten(label: str, limit: int) -> str:
    """Return a name, without its middle if it is too long: names of variants differ at their ends."""
    if len(label) <= limit:
        return label
    end = limit * 2 // 5
    return f"{label[: limit - end - 1]}…{label[len(label) - end :]}"


def _print_undrawn(groups: Sequence[Sequence[Verdict]], console: Console) -> None:
    for verdict, *_ in groups:
        sentence = f"{verdict.method}: {state_alone(verdict)}"
        print_lines(Text(sentence), console, 2, start=_decision(verdict), indent=DECISION_WIDTH)


def _print_details(group: Sequence[Verdict], console: Console) -> None:
    """Print in one line or two what the decision on a method leaves open."""
    lead, *others = group
    parts = [size_in_words(lead)]
    if lead.family.unadjusted not in (None, lead.decision):
        parts.append(f"unadjusted: {lead.family.unadjusted}")
    if isinstance(lead.evidence, TrialEvidence):
        if lead.evidence.other_tasks:
            parts.append(f"bias in other tasks: {lead.evidence.other_tasks}")
        if lead.evidence.log_likelihood is not None:
            parts.append(f"but {state_log_likelihood(lead.evidence.log_likelihood)}")
    for other in others:
        if other.decision != lead.decision:
            estimate = format_estimate(other.estimate, other.unit)
            parts.append(f"{other.analysis or 'another analysis'}: {other.decision} {estimate}".rstrip())
    if text := "; ".join(filter(None, parts)):
        print_lines(Text(text, "dim"), console, 2, indent=DECISION_WIDTH)


def _explain(verdicts: Sequence[Verdict]) -> str:
    """Say what intervals and decisions refer to, as far as it is the same for all verdicts."""
    parts = []
    levels = {None if math.isnan(verdict.family.level) else verdict.family.level for verdict in verdicts}
    families = {verdict.family.size for verdict in verdicts}
    bases, regions = (
        {basis_of(verdict) for verdict in verdicts},
        {(verdict.region, verdict.unit) for verdict in verdicts},
    )
    if len(levels) == 1 and (level := levels.pop()) is not None:
        adjusted = f" adjusted for {family} configurations" if (family := max(families)) > 1 else ""
        adjusted += _name_levels(level, verdicts)
        basis = f", from {bases.pop()}" if len(bases) == 1 and "" not in bases else ""
        parts.append(f"{level:.0%} intervals{adjusted}{basis}.")
    if len(regions) == 1:
        region, unit = regions.pop()
        if region:
            parts.append(f"Biases within ±{format_size(region, unit)} count as equivalent to none.")
    if any(verdict.decision == "inconclusive" for verdict in verdicts):
        parts.append(
            "Inconclusive: raise num_subsamples; --full estimates how far. In a new spec, plan looks (`stop`), which "
            "need fewer subsamples."
        )
    if len(looks := {_looks_of(verdict) for verdict in verdicts}) == 1:
        parts += filter(None, looks)
    return " ".join(parts)


def _looks_of(verdict: Verdict) -> str:
    evidence = verdict.evidence
    if not isinstance(evidence, TrialEvidence) or evidence.looks is None:
        return ""
    return tell_looks(evidence.looks, evidence.num_trials)


def _name_levels(nominal: float, verdicts: Sequence[Verdict]) -> str:
    """Return the levels of the single intervals in parentheses; empty if they are the nominal level."""
    known = [verdict.estimate.level for verdict in verdicts if not math.isnan(verdict.estimate.level)]
    ends = [f"{100 * level:.4g}%" for level in (min(known, default=nominal), max(known, default=nominal))]
    return "" if set(ends) == {f"{100 * nominal:.4g}%"} else f" ({' to '.join(dict.fromkeys(ends))} each)"


def _count_decisions(verdicts: Sequence[Verdict]) -> str:
    """Return the number of verdicts by decision: '3 more: 2 equivalent, 1 biased up'."""
    decisions = [verdict.decision for verdict in verdicts]
    counts = ", ".join(f"{decisions.count(decision):,} {decision}" for decision in dict.fromkeys(decisions))
    return f"{len(verdicts):,} more: {counts}"


def _decision(verdict: Verdict) -> Text:
    text = Text(verdict.decision, DECISION_STYLES[verdict.decision])
    return Text.assemble(text, " " * (DECISION_WIDTH - len(text)))


def print_note(text: str, console: Console, max_lines: int = 3) -> None:
    """Print a remark in a few lines."""
    if text:
        print_lines(Text(text, "dim"), console, max_lines)


def print_lines(text: Text, console: Console, max_lines: int, *, start: Text | None = None, indent: int = 0) -> None:
    """Print the first lines of a text, in whole sentences if one fits; an ellipsis marks what is left out."""
    width = max(20, console.width - indent)
    lines = list(text.wrap(console, width))
    if len(lines) > max_lines:
        last = lines[max_lines - 1]
        last.rstrip()
        last.truncate(width - 4)
        shown = "\n".join(line.plain for line in lines[:max_lines])
        if ends := list(re.finditer(r"[.!?](?=\s)", shown)):
            num_left_out = shown.count("\n", ends[-1].end())
            lines = lines[: max_lines - num_left_out]
            last = lines[-1]
            last.truncate(ends[-1].end() - shown.rfind("\n", 0, ends[-1].start()) - 1)
        last.append(" ...")
    for number, line in enumerate(lines[:max_lines]):
        line.rstrip()
        console.print(Text.assemble(start if start and not number else " " * indent, line), soft_wrap=True)
