"""Analyses run by their specs, and their numbers as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peekbench import Analysis, analyze
from peekbench.figures import Figure
from peekbench.formatting import with_sign
from peekbench.report import alt_text
from peekbench.spec.analysis_only import load_analysis_only
from peekbench_figures import draw

if TYPE_CHECKING:
    import pandas as pd

SPECS = Path(__file__).parents[1] / "specs" / "paper"
Row = dict[str, Any]


def run(spec: str, results: pd.DataFrame) -> tuple[Analysis, ...]:
    asked = load_analysis_only(SPECS / f"analysis_{spec}.yaml")
    return analyze(asked.only.select_rows(results), asked.analyses)


def rows(analysis: Analysis, title: str) -> list[Row]:
    """Of the first table whose title begins so."""
    table = next((table for table in analysis.tables if table.title.startswith(title)), None)
    if table is None:
        raise SystemExit(f"{analysis.name}: no table {title!r}; there are {[table.title for table in analysis.tables]}")
    return [dict(zip([column.name for column in table.columns], row, strict=True)) for row in table.rows]


def pick(among: Sequence[Row], **cells: Any) -> Row:
    (found,) = (row for row in among if all(row.get(name, value) == value for name, value in cells.items()))
    return found


def markdown(headings: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(headings)} |", "|" + "---|" * len(headings)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in body)])


def picture(analysis: Analysis, title: str, file: Path) -> str:
    """Draw the figure whose title begins so, and say where it is."""
    figure: Figure = next(figure for figure in analysis.figures if figure.title.startswith(title))
    file.write_bytes(draw(figure, "svg"))
    return f"![{alt_text(figure)}](figures/{file.name})"


def points(value: float, digits: int = 2) -> str:
    return with_sign(value * 100, digits)
