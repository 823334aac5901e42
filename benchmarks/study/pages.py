"""Parts of the pages in docs/ that scripts write: rows of an analysis's tables, Markdown tables, pictures, numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from peekbench import Analysis
from peekbench.formatting import with_sign
from peekbench.records import Figure
from peekbench.report import alt_text
from peekbench_figures import draw

Row = dict[str, Any]


def rows(analysis: Analysis, title: str) -> list[Row]:
    """Return the rows of the first table whose title starts with `title`, by column name."""
    table = next((table for table in analysis.tables if table.title.startswith(title)), None)
    if table is None:
        titles = [table.title for table in analysis.tables]
        raise SystemExit(f"{analysis.name}: no table {title!r}; its tables are {titles}")
    names, cells = table.spread()
    return [dict(zip(names, row, strict=True)) for row in cells]


def pick(candidates: Sequence[Row], **values: Any) -> Row:
    """Return the only row with the given values; columns that a row lacks are ignored."""
    (row,) = (row for row in candidates if all(row.get(name, value) == value for name, value in values.items()))
    return row


def markdown(headings: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(headings)} |", "|" + "---|" * len(headings)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in body)])


def picture(analysis: Analysis, title: str, file: Path) -> str:
    """Draw the first figure whose title starts with `title`, and return its Markdown; the page has its numbers."""
    figure = next(figure for figure in analysis.figures if figure.title.startswith(title))
    file.write_bytes(draw(figure, "svg"))
    return f"![{figure.title}]({file.parent.name}/{file.name})"


def draw_picture(figure: Figure, file: Path, text: str = "") -> str:
    """Draw a figure into a folder next to the page, and return its Markdown, with a text instead of all numbers."""
    file.write_bytes(draw(figure, "svg"))
    return f"![{f'{figure.title}. {text}' if text else alt_text(figure)}]({file.parent.name}/{file.name})"


def points(value: float, digits: int = 2) -> str:
    """Return a fraction in points, with its sign."""
    return with_sign(value * 100, digits)
