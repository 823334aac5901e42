"""Runs analyses by their specs, and formats their numbers as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from peekbench import Analysis, analyze
from peekbench.figures import Figure
from peekbench.formatting import with_sign
from peekbench.report import alt_text
from peekbench.spec.analysis_only import load_analysis_only
from peekbench_figures import draw

SPECS = Path(__file__).parents[1] / "specs" / "paper"
Row = dict[str, Any]


def run(spec: str, results: pd.DataFrame) -> tuple[Analysis, ...]:
    """Run the analyses of a spec of the study.

    Parameters
    ----------
    spec
        Name of the spec, without the prefix `analysis_`.
    results
        The results table; the spec may select some of its rows.

    Returns
    -------
    tuple of Analysis
        The analyses in the order of the spec.
    """
    analysis_spec = load_analysis_only(SPECS / f"analysis_{spec}.yaml")
    return analyze(analysis_spec.only.select_rows(results), analysis_spec.analyses)


def rows(analysis: Analysis, title: str) -> list[Row]:
    """Return the rows of the first table whose title starts with `title`, by column name."""
    table = next((table for table in analysis.tables if table.title.startswith(title)), None)
    if table is None:
        titles = [table.title for table in analysis.tables]
        raise SystemExit(f"{analysis.name}: no table {title!r}; its tables are {titles}")
    return [dict(zip([column.name for column in table.columns], row, strict=True)) for row in table.rows]


def pick(candidates: Sequence[Row], **values: Any) -> Row:
    """Return the only row with the given values; columns that a row lacks are ignored."""
    (row,) = (row for row in candidates if all(row.get(name, value) == value for name, value in values.items()))
    return row


def markdown(headings: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(headings)} |", "|" + "---|" * len(headings)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in body)])


def picture(analysis: Analysis, title: str, file: Path) -> str:
    """Draw the first figure whose title starts with `title`, and return its Markdown."""
    figure: Figure = next(figure for figure in analysis.figures if figure.title.startswith(title))
    file.write_bytes(draw(figure, "svg"))
    return f"![{alt_text(figure)}](figures/{file.name})"


def points(value: float, digits: int = 2) -> str:
    """Return a fraction in points, with its sign."""
    return with_sign(value * 100, digits)
