"""Selects the verdicts, table rows and failures of each method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from peekbench.formatting import UNKNOWN
from peekbench.records.analysis import Table, Verdict
from peekbench.records.trials import TrialFailure
from peekbench.report.document import MethodFacts, Report
from peekbench.report.render.cells import fold_intervals
from peekbench.report.render.verdict_texts import find_method

METHOD = "method"  # column that names the method of a row
TIE = "tie"  # column that is meaningful next to other methods only


@dataclass(frozen=True, slots=True)
class MethodPart:
    """Content of a report on one method."""

    facts: MethodFacts
    verdicts: tuple[Verdict, ...]
    tables: tuple[Table, ...]
    """Tables with the method's rows only, without the columns `method` and `tie`; tables without rows are left out."""
    failures: tuple[TrialFailure, ...]


def parts_by_method(report: Report) -> Iterator[MethodPart]:
    """Yield the content on each method, in the report's order."""
    for facts in report.methods:
        tables = (_rows_of(table, facts.name) for table in report.tables)
        yield MethodPart(
            facts,
            tuple(verdict for verdict in report.verdicts if find_method(verdict, report) == facts),
            tuple(table for table in tables if table is not None),
            tuple(failure for failure in report.failures if failure.trial.method == facts.name),
        )


def _rows_of(table: Table, method: str) -> Table | None:
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
        (f"training texts at most{shares}", _listed(design["num_train"])),
        ("test texts, and the same number of extra texts", _listed(design["num_test"])),
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
        return ", ".join(f"{repeats} at {size} test texts" for size, repeats in sizes.items())
    return ", ".join(map(str, sizes)) if isinstance(sizes, list | tuple) else str(sizes)
