"""Renders a report as GitHub Markdown, and one card per method to paste into an appendix or a model card."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from peekbench.formatting import pluralize
from peekbench.records.figures import Forest
from peekbench.records.report import MethodFacts, Report, Table
from peekbench.records.verdicts import Verdict
from peekbench.report.render.answers import (
    CONTROLS,
    answer,
    ask_about,
    basis_in_words,
    define_terms,
    explain_adjustments,
    explain_decisions,
    find_method,
    lead_verdicts,
    verdict_sections,
)
from peekbench.report.render.content import (
    cell_text,
    describe_design,
    make_printable,
    row_as_facts,
    rows_of,
)
from peekbench.report.render.pictures import FOLDER, alt_text, list_undrawn_figures, name_figures
from peekbench.report.render.sentences import state_with_estimate
from peekbench.report.render.terminal import forest_as_text

FOREST_WIDTH = 100
MAX_TRACEBACKS = 20


def render_markdown(report: Report, pictures: str = "") -> str:
    """Return the report as Markdown; all text from data is escaped.

    Parameters
    ----------
    report
        Report to render.
    pictures
        Suffix of the figures' picture files, to link them. If empty, forest plots are drawn in characters and other
        figures are listed by title.
    """
    return "\n".join(_lines(make_printable(report), pictures)) + "\n"


def _lines(report: Report, pictures: str) -> Iterator[str]:
    yield from (f"# {escape(report.name)}", "", escape(report.headline))
    for each in answer(report):
        yield from ("", f"**{each.question}** {escape(each.text)}")
        if each.command:
            yield from ("", *fenced([each.command], "sh"))
    for warning in report.warnings:
        yield from ("", warning_line(warning))
    for heading, verdicts in verdict_sections(report.verdicts):
        yield from _verdict_lines(heading, verdicts, report)
    yield from _figure_lines(report, pictures)
    for table in report.tables:
        yield from ("", f"## {escape(table.title)}", "")
        yield from table_lines(table)
    yield from _failure_lines(report)
    if report.provenance:
        yield from ("", "## Provenance", "")
        for name, text in report.provenance.items():
            yield f"- {name}: {escape(text)}"


def _figure_lines(report: Report, pictures: str) -> Iterator[str]:
    for name, figure in name_figures(report):
        if pictures:
            yield from ("", f"## {escape(figure.title)}", "")
            yield from (f"![{escape(alt_text(figure))}]({FOLDER}/{name}.{pictures})", "", escape(figure.note))
        elif isinstance(figure, Forest):
            yield from ("", f"## {escape(figure.title)}", "")
            yield from fenced(forest_as_text(figure, FOREST_WIDTH))
            yield from ("", escape(figure.note))
    if not pictures and (undrawn := list_undrawn_figures(report)):
        yield from ("", escape(undrawn))


def _failure_lines(report: Report) -> Iterator[str]:
    if report.failures:
        yield from ("", f"## {pluralize(len(report.failures), 'trial')} failed")
    for failure in report.failures[:MAX_TRACEBACKS]:
        yield from ("", f"<details><summary>{escape(str(failure.trial))}: {escape(failure.error)}</summary>", "")
        yield from fenced(failure.traceback.rstrip().splitlines())
        yield from ("", "</details>")
    if len(report.failures) > MAX_TRACEBACKS:
        yield from ("", f"{len(report.failures) - MAX_TRACEBACKS:,} more are in report.json.")


def warning_line(warning: str) -> str:
    """Return a quoted paragraph with a warning."""
    return f"> **Warning:** {escape(' '.join(warning.split()))}"


def _verdict_lines(heading: str, verdicts: Sequence[tuple[Verdict, str]], report: Report) -> Iterator[str]:
    """Yield verdicts with an interval and a short sentence each, and a part that unfolds to all sentences."""
    yield from ("", f"## {heading}", "")
    leads = [verdict for verdict, _ in verdicts]
    if heading != CONTROLS:
        yield from (escape(define_terms(leads[0])), "")
    for verdict in leads:
        sentence = state_with_estimate(verdict, report.verdicts)
        yield f"- **{escape(verdict.method)}**: **{verdict.decision}**. {escape(sentence)}"
    if heading != CONTROLS:
        yield from ("", escape(explain_decisions(leads)))
    yield from ("", "<details><summary>In detail</summary>", "")
    for verdict, sentence in verdicts:
        yield f"- **{escape(verdict.method)}**: {escape(sentence + basis_in_words(verdict))}"
    if adjustments := explain_adjustments(leads):
        yield from ("", escape(adjustments))
    yield from ("", "</details>")


def table_lines(table: Table) -> Iterator[str]:
    """Yield the lines of a table and its note."""
    yield "| " + " | ".join(escape(column.name) for column in table.columns) + " |"
    yield "|" + "|".join(" --- " if column.is_text else " ---: " for column in table.columns) + "|"
    for row in table.rows:
        texts = (cell_text(cell, column.unit) for cell, column in zip(row, table.columns, strict=True))
        yield "| " + " | ".join(map(escape, texts)) + " |"
    if table.note:
        yield from ("", escape(table.note))


def escape(text: str) -> str:
    """Return text on one line that neither Markdown nor HTML interprets."""
    flat = " ".join(text.split())
    flat = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    flat = re.sub(r"([\\`*_\[\]|~$#!])", r"\\\1", flat)
    return re.sub(r"^([-+=]|\d+[.)])(?=\s)", r"\\\1", flat).replace("@", "&#64;")


def fenced(lines: list[str], language: str = "text") -> Iterator[str]:
    """Yield a code block whose fence is longer than any run of backticks in its lines."""
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}{language}"
    yield from lines
    yield fence


MAX_NAME_LENGTH = 80  # characters of a file name, without suffix


def render_cards(report: Report) -> dict[str, str]:
    """Return the cards of all methods, by file name."""
    report = make_printable(report)
    cards: dict[str, str] = {}
    for facts in report.methods:
        cards[_file_name(facts.name, cards)] = "\n".join(_card_lines(facts, report)) + "\n"
    return cards


def _file_name(method: str, taken: dict[str, str]) -> str:
    """Return a portable file name that differs from the others in more than case."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", method)[:MAX_NAME_LENGTH].strip("-.") or "method"
    taken_names, name, number = {other.lower() for other in taken}, f"{stem}.md", 1
    while name.lower() in taken_names:
        number += 1
        name = f"{stem}-{number}.md"
    return name


def _card_lines(facts: MethodFacts, report: Report) -> Iterator[str]:
    yield f"# {escape(facts.name)}"
    if facts.summary:
        yield from ("", escape(facts.summary[:1].upper() + facts.summary[1:] + "."))
    yield ""
    design = describe_design(report.details.get("spec", {}))
    for name, text in (("method", facts.use), ("options", facts.options), *design):
        if text:
            yield f"- {name}: {escape(text)}"
    yield f"- experiment: {escape(report.name)}, {escape(report.headline)}"
    if failed := sum(failure.trial.method == facts.name for failure in report.failures):
        yield f"- **{failed:,} trials of this method failed**"
    for warning in _select_warnings(facts.name, report):
        yield from ("", warning_line(warning))
    if verdicts := [verdict for verdict in report.verdicts if find_method(verdict, report) == facts]:
        yield from _verdict_lines(ask_about(verdicts[0].effect), lead_verdicts(verdicts), report)
    for table in (rows_of(each, facts.name) for each in report.tables if each.title != "Methods"):  # which is above
        if table is not None:
            yield from ("", f"## {escape(table.title)}", "")
            yield from _row_as_list(table) if len(table.rows) == 1 else table_lines(table)
    if report.provenance:
        yield from ("", "## Provenance", "")
        for name, text in report.provenance.items():
            if name != "command":
                yield f"- {name}: {escape(text)}"
    if report.command:
        yield from ("", "To reproduce this report:", "")
        yield from fenced([report.command], "sh")


def _select_warnings(method: str, report: Report) -> Iterator[str]:
    """Yield the warnings that name this method, or no method."""
    others = [facts.name for facts in report.methods if facts.name != method]
    for warning in report.warnings:
        if method in warning or not any(name in warning for name in others):
            yield warning


def _row_as_list(table: Table) -> Iterator[str]:
    """Yield a list with one item per column: a single row is easier to read from top to bottom."""
    for name, text in row_as_facts(table):
        yield f"- {escape(name)}: {escape(text)}"
    if table.note:
        yield from ("", escape(table.note))
