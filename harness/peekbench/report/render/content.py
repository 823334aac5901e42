"""Prepares the content of a report for all formats: printable texts, cells, the part of each method."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from itertools import takewhile
from typing import Any

from peekbench.formatting import UNKNOWN, format_cell, shorten, visible, visible_lines
from peekbench.records.report import Cell, Report, Table
from peekbench.records.trials import MAX_ERROR, Draw, Trial, TrialFailure
from peekbench.records.verdicts import Estimate, Unit

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


def cell_text(cell: Cell, unit: Unit) -> str:
    """Return the text of a cell; that of an estimate has its interval, if this is known.

    Examples
    --------
    >>> cell_text(Estimate(0.0123, 0.004, 0.0206), "difference"), cell_text(Estimate(low=0.5, high=0.9), "fraction")
    ('+1.23 [+0.40, +2.06]', '[50.0%, 90.0%]')
    """
    if not isinstance(cell, Estimate):
        return format_cell(cell, unit)
    parts = []
    if cell.is_known or not cell.has_interval:
        parts.append(format_cell(cell.mean if cell.is_known else None, unit))
    if cell.has_interval:
        parts.append(f"[{format_cell(cell.low, unit)}, {format_cell(cell.high, unit)}]")
    return " ".join(parts)


def cell_number(cell: Cell) -> float | None:
    """Return the number by which rows are sorted; None if a cell has none."""
    if isinstance(cell, Estimate):
        cell = cell.mean if cell.is_known else cell.low
    if isinstance(cell, bool) or not isinstance(cell, int | float) or not math.isfinite(cell):
        return None
    return cell


def count_key_columns(table: Table) -> int:
    """Return the number of leading columns that identify a row: as many texts and counts as tell the rows apart."""
    num_candidates = len(list(takewhile(lambda column: column.unit in KEY_UNITS, table.columns)))
    for number in range(1, num_candidates + 1):
        if len({row[:number] for row in table.rows}) == len(table.rows):
            return number
    return num_candidates if num_candidates < len(table.columns) else 1


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
    facts = []
    for column, cell in zip(table.columns, table.rows[0], strict=True):
        text = cell_text(cell, column.unit)
        if text not in ("", UNKNOWN):
            facts.append((column.name, text + (" points" if column.unit in ("difference", "spread") else "")))
    return facts


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
