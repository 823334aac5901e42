"""The report as GitHub's Markdown, for pull requests."""

from __future__ import annotations

import re
from collections.abc import Iterator

from peekbench.formatting import pluralize
from peekbench.records.analysis import Table, Verdict
from peekbench.records.figures import Forest
from peekbench.report.build.run_report import CONTROLS, QUESTION, Report, legend, printable, split_verdicts
from peekbench.report.render.alt_text import alt_text
from peekbench.report.render.cells import as_shown
from peekbench.report.render.forest_plot import draw
from peekbench.report.render.renderers import FOLDER, named_figures, not_in_characters

FOREST_WIDTH = 100
MOST_TRACEBACKS = 20


def render_markdown(report: Report, pictures: str = "") -> str:
    """All of the report; whatever comes from data is escaped.

    Parameters
    ----------
    pictures
        Suffix of the figures' files, where they are written too; without, forests alone are shown, in characters.
    """
    return "\n".join(_lines(printable(report), pictures)) + "\n"


def _lines(report: Report, pictures: str) -> Iterator[str]:
    yield f"# {escaped(report.name)}"
    yield ""
    yield escaped(report.headline)
    for warning in report.warnings:
        yield ""
        yield f"> **Caution:** {escaped(' '.join(warning.split()))}"
    for heading, verdicts in zip((QUESTION, CONTROLS), split_verdicts(report.verdicts), strict=True):
        if verdicts:
            yield ""
            yield f"## {heading}"
            yield ""
            yield from map(verdict_line, verdicts)
    if report.verdicts:
        yield ""
        yield escaped(legend(report.verdicts))
    for name, figure in named_figures(report):
        if pictures or isinstance(figure, Forest):
            yield ""
            yield f"## {escaped(figure.title)}"
            yield ""
            if pictures:
                yield f"![{escaped(alt_text(figure))}]({FOLDER}/{name}.{pictures})"
            elif isinstance(figure, Forest):
                yield from fenced([line.text() for line in draw(figure, FOREST_WIDTH)])
            yield ""
            yield escaped(figure.note)
    if not pictures and (left_out := not_in_characters(report)):
        yield ""
        yield escaped(left_out)
    for table in report.tables:
        yield ""
        yield f"## {escaped(table.title)}"
        yield ""
        yield from table_lines(table)
    if report.failures:
        yield ""
        yield f"## {pluralize(len(report.failures), 'trial')} failed"
        for failure in report.failures[:MOST_TRACEBACKS]:
            yield ""
            yield f"<details><summary>{escaped(str(failure.trial))}: {escaped(failure.error)}</summary>"
            yield ""
            yield from fenced(failure.traceback.rstrip().splitlines())
            yield ""
            yield "</details>"
        if len(report.failures) > MOST_TRACEBACKS:
            yield ""
            yield f"{len(report.failures) - MOST_TRACEBACKS:,} more are in report.json."
    if report.provenance:
        yield ""
        yield "## Provenance"
        yield ""
        for name, text in report.provenance.items():
            yield f"- {name}: {escaped(text)}"


def verdict_line(verdict: Verdict) -> str:
    """An item of a list: the decision, its sentence, and what it rests on."""
    rests = f" (Rests on {verdict.basis}.)" if verdict.basis else ""
    return f"- **{verdict.decision}**: {escaped(verdict.sentence + rests)}"


def table_lines(raw: Table) -> Iterator[str]:
    """A table and its note."""
    table = as_shown(raw)
    yield "| " + " | ".join(escaped(column.name) for column in table.columns) + " |"
    yield "|" + "|".join(" --- " if column.is_text else " ---: " for column in table.columns) + "|"
    for row in table.rows:
        yield "| " + " | ".join(escaped(cell.text) for cell in row) + " |"
    if table.note:
        yield ""
        yield escaped(table.note)


def escaped(text: str) -> str:
    """Text that Markdown and HTML leave as it is, on one line."""
    flat = " ".join(text.split())
    flat = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    flat = re.sub(r"([\\`*_\[\]|~$#!])", r"\\\1", flat)
    return re.sub(r"^([-+=]|\d+[.)])(?=\s)", r"\\\1", flat).replace("@", "&#64;")


def fenced(lines: list[str], language: str = "text") -> Iterator[str]:
    """A code block that none of its lines can close."""
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}{language}"
    yield from lines
    yield fence
