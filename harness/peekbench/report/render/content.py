"""Prepares the content of a report for all formats: printable texts, folded intervals, the part of each method."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import takewhile
from typing import Any

from peekbench.formatting import UNKNOWN, format_cell, shorten, visible, visible_lines
from peekbench.records.report import Cell, Report, Table
from peekbench.records.trials import MAX_ERROR, Draw, Trial, TrialFailure
from peekbench.records.verdicts import Unit

MAX_TEXT = 20_000  # characters of a text in a report


def make_printable(report: Report) -> Report:
    """Return the report with printable texts of bounded length; all except messages, tracebacks and data are a line."""
    cleaned: Report = _clean(report, visible)
    return cleaned


OF_SEVERAL_LINES = ("warnings", "error", "traceback", "texts")
"""Fields of a report and of its failures whose texts can have several lines."""


def _clean(value: Any, escape: Callable[[str], str]) -> Any:
    """Clean the texts in nested records, sequences and mappings."""
    if isinstance(value, str):
        return escape(shorten(value, MAX_TEXT))
    if isinstance(value, tuple):
        cleaned = (_clean(item, escape) for item in value)
        return type(value)._make(cleaned) if isinstance(value, Draw | Trial) else tuple(cleaned)
    if isinstance(value, list):
        return [_clean(item, escape) for item in value]
    if isinstance(value, Mapping):
        return {_clean(key, escape): _clean(item, escape) for key, item in value.items()}
    if isinstance(value, TrialFailure):
        value = replace(value, error=shorten(value.error, MAX_ERROR))
    if is_dataclass(value) and not isinstance(value, type):
        escapes = {part.name: visible_lines if part.name in OF_SEVERAL_LINES else escape for part in fields(value)}
        return replace(value, **{name: _clean(getattr(value, name), each) for name, each in escapes.items()})
    return value


KEY_UNITS: tuple[Unit, ...] = ("text", "count")  # units of columns that can identify a row
LOW, HIGH = ", low", ", high"  # the columns 'bias, low' and 'bias, high' are the interval of the column 'bias'


@dataclass(frozen=True, slots=True)
class FoldedCell:
    """Text of a cell and the number to sort it by."""

    text: str
    number: float | None
    """Value in full precision; None if it is not a number."""


@dataclass(frozen=True, slots=True)
class FoldedColumn:
    """Name of a column and the unit of its cells, or of the estimates in them."""

    name: str
    unit: Unit

    @property
    def is_text(self) -> bool:
        """Whether the cells are texts."""
        return self.unit == "text"


@dataclass(frozen=True, slots=True)
class FoldedTable:
    """Table in which an estimate and its interval share a cell."""

    title: str
    columns: tuple[FoldedColumn, ...]
    rows: tuple[tuple[FoldedCell, ...], ...]
    note: str

    @property
    def num_key_columns(self) -> int:
        """Number of leading columns that identify a row: as many texts and counts as tell the rows apart."""
        num_candidates = len(list(takewhile(lambda column: column.unit in KEY_UNITS, self.columns)))
        for number in range(1, num_candidates + 1):
            if len({row[:number] for row in self.rows}) == len(self.rows):
                return number
        return num_candidates if num_candidates < len(self.columns) else 1


def fold_intervals(table: Table) -> FoldedTable:
    """Fold the columns 'X, low' and 'X, high' into the column 'X', or into a new column 'X' if there is none."""
    names = [column.name for column in table.columns]
    columns: list[tuple[FoldedColumn, list[int]]] = []  # each with the positions of the cells that it joins
    for position, column in enumerate(table.columns):
        for end in (LOW, HIGH):
            stem = column.name.removesuffix(end)
            if column.name.endswith(end) and {stem + LOW, stem + HIGH} <= set(names):
                if stem not in names and end == LOW:
                    columns.append((FoldedColumn(stem, column.unit), [position, names.index(stem + HIGH)]))
                break
        else:
            ends = [names.index(column.name + end) for end in (LOW, HIGH) if column.name + end in names]
            columns.append((FoldedColumn(column.name, column.unit), [position, *(ends if len(ends) == 2 else [])]))
    rows = tuple(
        tuple(_fold([row[position] for position in positions], column.unit) for column, positions in columns)
        for row in table.rows
    )
    return FoldedTable(table.title, tuple(column for column, _ in columns), rows, table.note)


def _fold(values: Sequence[Cell], unit: Unit) -> FoldedCell:
    """Format a value, an interval, or a value with its interval; an unknown interval is left out."""
    texts = [format_cell(value, unit) for value in values]
    is_known = len(values) > 1 and all(_number(end) is not None for end in values[-2:])
    interval = f"[{texts[-2]}, {texts[-1]}]" if is_known else ""
    value = texts[0] if len(values) != 2 else "" if interval else format_cell(None, unit)
    return FoldedCell(" ".join(filter(None, (value, interval))), _number(values[0]))


def _number(cell: Cell) -> float | None:
    if isinstance(cell, bool) or not isinstance(cell, int | float) or not math.isfinite(cell):
        return None
    return cell


METHOD = "method"  # column that names the method of a row
TIE = "tie"  # column that is meaningful next to other methods only


def rows_of(table: Table, method: str) -> Table | None:
    """Return a table with the rows of a method only, without the columns `method` and `tie`; None if it has none."""
    position = next((position for position, column in enumerate(table.columns) if column.name == METHOD), None)
    if position is None:
        return None
    kept = [number for number, column in enumerate(table.columns) if column.name not in (METHOD, TIE)]
    rows = tuple(tuple(row[number] for number in kept) for row in table.rows if row[position] == method)
    return replace(table, columns=tuple(table.columns[number] for number in kept), rows=rows) if rows and kept else None


def row_as_facts(table: Table) -> list[tuple[str, str]]:
    """Return the only row of a table as (name, text) pairs without the unknown cells."""
    folded = fold_intervals(table)
    return [
        (column.name, cell.text + (" points" if column.unit in ("difference", "spread") else ""))
        for column, cell in zip(folded.columns, folded.rows[0], strict=True)
        if cell.text not in ("", UNKNOWN)
    ]


def describe_design(spec: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the design of a run as (name, text) pairs; empty if there is no spec."""
    if not spec:
        return []
    design, arms = spec["design"], spec["arms"]
    shares = ", balanced by class" if design["train"] == "balanced" else ", at natural class shares"
    if all(task.get("kind") == "language_modeling" for task in spec["tasks"]):
        shares = ""
    return [
        ("tasks", ", ".join(task["name"] for task in spec["tasks"])),
        (f"training rows at most{shares}", _listed(design["num_train"])),
        ("test rows, and the same number of extra rows", _listed(design["num_test"])),
        *(("unlabeled rows in extra and test", str(number)) for number in [design.get("num_unlabeled")] if number),
        ("subsamples per task", _listed(design["num_subsamples"])),
        *((f"subsamples of {task}", str(number)) for task, number in own_subsamples(spec).items()),
        (
            "arms",
            ", ".join(arm if isinstance(arm, str) else "{} {:g}".format(*next(iter(arm.items()))) for arm in arms),
        ),
        ("seed", str(spec["seed"])),
    ]


def own_subsamples(spec: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of subsamples of each task that has a number of its own."""
    return {task["name"]: task["num_subsamples"] for task in spec["tasks"] if task.get("num_subsamples")}


def _listed(sizes: Any) -> str:
    if isinstance(sizes, Mapping):
        return ", ".join(f"{repeats} at {size} test rows" for size, repeats in sizes.items())
    return ", ".join(map(str, sizes)) if isinstance(sizes, list | tuple) else str(sizes)
