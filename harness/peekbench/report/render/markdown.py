"""Renders a report as GitHub Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from peekbench.formatting import format_cell
from peekbench.records.figures import Forest
from peekbench.records.report import Report, Table
from peekbench.records.trials import TrialFailure
from peekbench.report.render.advice import Answer
from peekbench.report.render.content import Block, Code, Facts, Findings, Paragraph, Part, lay_out, name_heading
from peekbench.report.render.pictures import UNDRAWN, Picture
from peekbench.report.render.terminal import forest_as_text

FOREST_WIDTH = 100
ALIGNMENT = {True: " --- ", False: " ---: "}
"""Line below the heading of a column, by whether it has texts."""
UNTITLED = ("answers", "verdicts", "warnings")
"""Parts whose blocks have no heading, or headings of their own."""


def render_markdown(report: Report) -> str:
    """Return the report as Markdown; all text from data is escaped.

    Parameters
    ----------
    report
        Report to render. Forest plots are drawn in characters; other figures are only named.
    """
    content = lay_out(report)
    lines = [f"# {escape(content.name)}", "", escape(content.headline)]
    return "\n".join([*lines, *_part_lines(content.parts)]) + "\n"


def _part_lines(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        if part.name not in UNTITLED:
            yield from ("", f"## {escape(part.heading)}")
        for block in part.blocks:
            yield ""
            yield from _block_lines(block)


def _block_lines(block: Block) -> Iterator[str]:
    match block:
        case Answer():
            yield f"**{block.question}** {escape(block.text)}"
            if block.command:
                yield from ("", *fenced([block.command], "sh"))
        case Findings():
            yield from _finding_lines(block)
        case Paragraph(is_warning=True):
            yield f"> **Warning:** {escape(block.text)}"
        case Paragraph():
            yield escape(block.text)
        case Table():
            yield from (f"### {escape(block.title)}", "", *_table_lines(block))
        case Picture():
            yield from (f"### {escape(block.figure.title)}", "", *_picture_lines(block))
        case TrialFailure():
            yield from (f"<details><summary>{escape(str(block.trial))}: {escape(block.error)}</summary>", "")
            yield from (*fenced(block.traceback.rstrip().splitlines()), "", "</details>")
        case Facts():
            yield from (f"- {escape(name)}: {escape(text)}" for name, text in block.pairs)
        case Code():
            yield from fenced(block.text.splitlines(), "sh")


def _finding_lines(section: Findings) -> Iterator[str]:
    """Yield verdicts with an interval and a short sentence each, and a part that unfolds to all sentences."""
    yield from (f"## {escape(section.heading)}", "")
    if section.definition:
        yield from (escape(section.definition), "")
    for finding in section.findings:
        verdict = finding.verdict
        yield f"- **{escape(verdict.method)}**: **{finding.decision}**. {escape(finding.summary)}"
    if section.explanation:
        yield from ("", escape(section.explanation))
    yield from ("", "<details><summary>In detail</summary>", "")
    yield from (f"- **{escape(finding.verdict.method)}**: {escape(finding.explained)}" for finding in section.findings)
    if section.background:
        yield from ("", escape(section.background))
    yield from ("", "</details>")


def _picture_lines(picture: Picture) -> Iterator[str]:
    figure = picture.figure
    if isinstance(figure, Forest):
        yield from fenced(forest_as_text(figure, FOREST_WIDTH))
    else:
        yield escape(UNDRAWN)
    if figure.note:
        yield from ("", escape(figure.note))


def _table_lines(table: Table) -> Iterator[str]:
    yield _row(name_heading(column) for column in table.columns)
    yield f"|{'|'.join(ALIGNMENT[column.is_text] for column in table.columns)}|"
    for row in table.rows:
        yield _row(format_cell(cell, column.unit) for cell, column in zip(row, table.columns, strict=True))
    if table.note:
        yield from ("", escape(table.note))


def _row(texts: Iterable[str]) -> str:
    return f"| {' | '.join(map(escape, texts))} |"


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
