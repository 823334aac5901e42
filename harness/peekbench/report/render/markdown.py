"""Renders a report as GitHub Markdown, for pull requests."""

from __future__ import annotations

import re
from collections.abc import Iterator

from peekbench.formatting import pluralize
from peekbench.records.analysis import Table, Verdict
from peekbench.records.figures import Forest
from peekbench.report.document import Report
from peekbench.report.render.alt_text import alt_text
from peekbench.report.render.cells import fold_intervals
from peekbench.report.render.forest_plot import draw_forest
from peekbench.report.render.printable import make_printable
from peekbench.report.render.renderers import FOLDER, list_undrawn_figures, name_figures
from peekbench.report.render.verdict_texts import (
    basis_in_words,
    explain_decisions,
    scope_in_words,
    sentence_without_method,
    verdict_sections,
)

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
    for warning in report.warnings:
        yield from ("", warning_line(warning))
    for heading, verdicts in verdict_sections(report.verdicts):
        yield from ("", f"## {heading}", "")
        yield from map(verdict_line, verdicts)
    if report.verdicts:
        yield from ("", escape(explain_decisions(report.verdicts)))
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
            yield from fenced([line.text() for line in draw_forest(figure, FOREST_WIDTH)])
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


def verdict_line(verdict: Verdict) -> str:
    """Return a list item with the method, the decision, its scope, its sentence and its basis."""
    scope = scope_in_words(verdict)
    space = " " if scope.startswith(" ") else ""  # which escape removes
    subject = f"**{escape(verdict.method)}**: **{verdict.decision}**{space}{escape(scope)}"
    return f"- {subject}. {escape(sentence_without_method(verdict) + basis_in_words(verdict))}"


def table_lines(table: Table) -> Iterator[str]:
    """Yield the lines of a table and its note."""
    folded = fold_intervals(table)
    yield "| " + " | ".join(escape(column.name) for column in folded.columns) + " |"
    yield "|" + "|".join(" --- " if column.is_text else " ---: " for column in folded.columns) + "|"
    for row in folded.rows:
        yield "| " + " | ".join(escape(cell.text) for cell in row) + " |"
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
