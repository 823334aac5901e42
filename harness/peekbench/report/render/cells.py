"""Turns tables into cells of text in which an estimate and its interval share a cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from peekbench.formatting import format_cell
from peekbench.records.analysis import Cell, Table
from peekbench.records.units import Unit

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
