"""One Markdown file a method: what it is, what was measured and how, to paste into an appendix or a model card."""

from __future__ import annotations

import re
from collections.abc import Iterator

from peekbench.records.analysis import Table
from peekbench.report.build.per_method import MethodPart, as_facts, describe_design, parts_by_method
from peekbench.report.build.run_report import Report, printable
from peekbench.report.render.markdown import escaped, fenced, table_lines, verdict_line

MOST_CHARACTERS = 80  # of a file name


def render_cards(report: Report) -> dict[str, str]:
    """Name of the file to the card in it, one for each method."""
    report = printable(report)
    cards: dict[str, str] = {}
    for part in parts_by_method(report):
        cards[_free_name(part.facts.name, cards)] = "\n".join(_lines(part, report)) + "\n"
    return cards


def _free_name(method: str, taken: dict[str, str]) -> str:
    """A file name that any system takes, and that differs from the others in more than case."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", method)[:MOST_CHARACTERS].strip("-.") or "method"
    lower, name, number = {one.lower() for one in taken}, f"{stem}.md", 1
    while name.lower() in lower:
        number += 1
        name = f"{stem}-{number}.md"
    return name


def _lines(part: MethodPart, report: Report) -> Iterator[str]:
    facts = part.facts
    yield f"# {escaped(facts.name)}"
    if facts.summary:
        yield ""
        yield escaped(facts.summary[:1].upper() + facts.summary[1:] + ".")
    yield ""
    design = describe_design(report.record.get("spec", {}))
    for name, text in (("method", facts.use), ("options", facts.options), *design):
        if text:
            yield f"- {name}: {escaped(text)}"
    yield f"- experiment: {escaped(report.name)}, {escaped(report.headline)}"
    if part.failures:
        yield f"- **{len(part.failures):,} of its trials failed**"
    if part.verdicts:
        yield ""
        yield "## Does it score higher because its unlabeled text is the test set's?"
        yield ""
        for verdict in part.verdicts:
            yield verdict_line(verdict)
    for table in part.tables:
        if table.title != "Methods":  # said above
            yield ""
            yield f"## {escaped(table.title)}"
            yield ""
            yield from _as_list(table) if len(table.rows) == 1 else table_lines(table)
    if report.provenance:
        yield ""
        yield "## Provenance"
        yield ""
        for name, text in report.provenance.items():
            if name != "command":
                yield f"- {name}: {escaped(text)}"
    if report.command:
        yield ""
        yield "The same again:"
        yield ""
        yield from fenced([report.command], "sh")


def _as_list(table: Table) -> Iterator[str]:
    """A single row reads better from top to bottom."""
    for name, text in as_facts(table):
        yield f"- {escaped(name)}: {escaped(text)}"
    if table.note:
        yield ""
        yield escaped(table.note)
