"""A table as it is shown: every cell as text, an estimate and the ends of its interval in one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from peekbench.formatting import format_cell
from peekbench.records.analysis import Cell, Table
from peekbench.records.units import Unit

NAMING: tuple[Unit, ...] = ("text", "count")  # units of columns that can say what a row is
LOW, HIGH = ", low", ", high"  # a table's columns 'bias, low' and 'bias, high' are the interval of its column 'bias'


@dataclass(frozen=True, slots=True)
class ShownCell:
    text: str
    number: float | None
    """What it is sorted by, in full precision; None where it is no number."""


@dataclass(frozen=True, slots=True)
class ShownColumn:
    name: str
    unit: Unit
    """Of its cells, or of the estimate in them."""

    @property
    def is_text(self) -> bool:
        return self.unit == "text"


@dataclass(frozen=True, slots=True)
class ShownTable:
    title: str
    columns: tuple[ShownColumn, ...]
    rows: tuple[tuple[ShownCell, ...], ...]
    note: str

    @property
    def num_naming(self) -> int:
        """How many of the first columns say what a row is: texts and counts, as many as tell the rows apart."""
        naming = len(list(takewhile(lambda column: column.unit in NAMING, self.columns)))
        for number in range(1, naming + 1):
            if len({row[:number] for row in self.rows}) == len(self.rows):
                return number
        return naming if naming < len(self.columns) else 1


def as_shown(table: Table) -> ShownTable:
    """Fold the columns 'X, low' and 'X, high' into 'X', or, where there is no such column, into one of that name."""
    names = [column.name for column in table.columns]
    places: list[tuple[ShownColumn, list[int]]] = []
    for place, column in enumerate(table.columns):
        for end in (LOW, HIGH):
            stem = column.name.removesuffix(end)
            if column.name.endswith(end) and {stem + LOW, stem + HIGH} <= set(names):
                if stem not in names and end == LOW:
                    places.append((ShownColumn(stem, column.unit), [place, names.index(stem + HIGH)]))
                break
        else:
            ends = [names.index(column.name + end) for end in (LOW, HIGH) if column.name + end in names]
            places.append((ShownColumn(column.name, column.unit), [place, *ends] if len(ends) == 2 else [place]))
    rows = tuple(
        tuple(_cell([row[place] for place in folded], column.unit) for column, folded in places) for row in table.rows
    )
    return ShownTable(table.title, tuple(column for column, _ in places), rows, table.note)


def _cell(values: Sequence[Cell], unit: Unit) -> ShownCell:
    """Of a value, an interval, or a value and its interval; an interval that is not known is left out."""
    texts = [format_cell(value, unit) for value in values]
    is_known = len(values) > 1 and all(_number(end) is not None for end in values[-2:])
    span = f"[{texts[-2]}, {texts[-1]}]" if is_known else ""
    value = texts[0] if len(values) != 2 else "" if span else format_cell(None, unit)
    return ShownCell(" ".join(filter(None, (value, span))), _number(values[0]))


def _number(cell: Cell) -> float | None:
    if isinstance(cell, bool) or not isinstance(cell, int | float) or not math.isfinite(cell):
        return None
    return cell
