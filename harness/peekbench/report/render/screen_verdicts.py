"""Prints verdicts in one line or two each, with their intervals on a common axis, for the short view of a report."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from peekbench.formatting import ScoreWords
from peekbench.records.analysis import Verdict
from peekbench.records.figures import Forest, Interval
from peekbench.report.document import Report
from peekbench.report.render.forest_plot import Line, draw_forest, label_room
from peekbench.report.render.printable import make_printable
from peekbench.report.render.terminal import DECISION_STYLES, style_line
from peekbench.report.render.verdict_texts import (
    ask_about,
    format_estimate,
    sentence_without_method,
    size_in_words,
    split_verdicts,
)

DECISION_WIDTH = 14  # characters of the column of decisions
MIN_PLOT = 72  # columns of a terminal; in a narrower one, an axis would leave so little room that labels are broken
MAX_PLOT = 110  # characters of a line with an interval
MAX_LABEL = 48  # characters of a method's name
MAX_VERDICTS = 12
SIZE = re.compile(r"(num_train|num_test)=(?=\d+[,)])")  # what `label_configuration` writes, but not "k=10" of a method


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
    names = {tuple(SIZE.findall(verdict.method)) for verdict in verdicts}
    if len(names) != 1 or not (sizes := names.pop()):
        return tuple(verdicts), ""
    shortened = (
        replace(verdict, method=SIZE.sub("", verdict.method), sentence=sentence_without_method(verdict))
        for verdict in verdicts
    )
    return tuple(shortened), f"In parentheses: {', '.join(sizes)}."


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
        is_drawn = lead.estimate is not None and lead.low is not None and lead.high is not None
        by_unit.setdefault(lead.unit if is_drawn else "", []).append(group)
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
        Interval(name, lead.estimate or 0.0, lead.low or 0.0, lead.high or 0.0)
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
    estimates = max(len(format_estimate(lead)) for lead in leads)
    longest = max(8, min(MAX_LABEL, console.width - DECISION_WIDTH - estimates - 2))
    names = [lead.method for lead in leads]
    short = [_shorten(name, longest) for name in names]
    labels = short if len(set(short)) == len(set(names)) else names  # a broken line is better than one name for two
    for lead, label, group in zip(leads, labels, groups, strict=True):
        padded = f"{label.ljust(max(map(len, labels)))}  "
        console.print(Text.assemble(_decision(lead), padded, format_estimate(lead)), soft_wrap=True)
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
        sentence = f"{verdict.method}: {sentence_without_method(verdict)}"
        print_lines(Text(sentence), console, 2, start=_decision(verdict), indent=DECISION_WIDTH)


def _print_details(group: Sequence[Verdict], console: Console) -> None:
    """Print in one line or two what the decision on a method leaves open."""
    lead, *others = group
    parts = [size_in_words(lead)]
    if lead.unadjusted not in (None, lead.decision):
        parts.append(f"unadjusted: {lead.unadjusted}")
    if lead.other_tasks:
        parts.append(f"bias in other tasks: {lead.other_tasks}")
    if lead.other_score:
        parts.append(f"but {lead.other_score}")
    parts += [
        f"{other.analysis or 'another analysis'}: {other.decision} {format_estimate(other)}".rstrip()
        for other in others
        if other.decision != lead.decision
    ]
    if text := "; ".join(filter(None, parts)):
        print_lines(Text(text, "dim"), console, 2, indent=DECISION_WIDTH)


def _explain(verdicts: Sequence[Verdict]) -> str:
    """Say what intervals and decisions refer to, as far as it is the same for all verdicts."""
    parts = []
    levels, families = {verdict.level for verdict in verdicts}, {verdict.family for verdict in verdicts}
    bases, regions = {verdict.basis for verdict in verdicts}, {(verdict.region, verdict.unit) for verdict in verdicts}
    if len(levels) == 1 and (level := levels.pop()) is not None:
        adjusted = f" adjusted for {family} configurations" if (family := max(families)) > 1 else ""
        adjusted += _name_levels(level, verdicts)
        basis = f", from {bases.pop()}" if len(bases) == 1 and "" not in bases else ""
        parts.append(f"{level:.0%} intervals{adjusted}{basis}.")
    if len(regions) == 1:
        region, unit = regions.pop()
        if region:
            parts.append(f"Biases within ±{ScoreWords(unit == 'difference').size(region)} count as equivalent to none.")
    if any(verdict.decision == "inconclusive" for verdict in verdicts):
        parts.append(
            "Inconclusive: raise num_subsamples; --full estimates how far. In a new spec, plan looks (`stop`), which "
            "need fewer subsamples."
        )
    if len(looks := {verdict.looks for verdict in verdicts}) == 1:
        parts += filter(None, looks)
    return " ".join(parts)


def _name_levels(nominal: float, verdicts: Sequence[Verdict]) -> str:
    """Return the levels of the single intervals in parentheses; empty if they are the nominal level."""
    known = [verdict.interval_level for verdict in verdicts if verdict.interval_level is not None]
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
