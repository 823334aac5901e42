"""What a report says of one method: its verdicts, and its rows of every table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from peekbench.formatting import UNKNOWN
from peekbench.records.analysis import Table, Verdict
from peekbench.records.trials import TrialFailure
from peekbench.report.build.run_report import MethodFacts, Report
from peekbench.report.render.cells import as_shown

METHOD = "method"  # the column of a table that says whose a row is
TIE = "tie"  # says something beside other methods only


@dataclass(frozen=True, slots=True)
class MethodPart:
    """Everything on one method."""

    facts: MethodFacts
    verdicts: tuple[Verdict, ...]
    tables: tuple[Table, ...]
    """With its rows alone, without the columns that name it or say what it ties with; none without rows."""
    failures: tuple[TrialFailure, ...]


def parts_by_method(report: Report) -> Iterator[MethodPart]:
    """One part a method, in the report's order."""
    for facts in report.methods:
        yield MethodPart(
            facts,
            tuple(verdict for verdict in report.verdicts if about(verdict, report) == facts),
            tuple(own for table in report.tables if (own := _rows_of(table, facts.name)) is not None),
            tuple(failure for failure in report.failures if failure.trial.method == facts.name),
        )


def about(verdict: Verdict, report: Report) -> MethodFacts | None:
    """The method whose name the verdict's label is, or begins with before model and sizes in brackets."""
    fitting = [
        one for one in report.methods if verdict.method == one.name or verdict.method.startswith(f"{one.name} (")
    ]
    return max(fitting, key=lambda one: len(one.name), default=None)


def _rows_of(table: Table, method: str) -> Table | None:
    place = next((place for place, column in enumerate(table.columns) if column.name == METHOD), None)
    if place is None:
        return None
    kept = [number for number, column in enumerate(table.columns) if column.name not in (METHOD, TIE)]
    rows = tuple(tuple(row[number] for number in kept) for row in table.rows if row[place] == method)
    return replace(table, columns=tuple(table.columns[number] for number in kept), rows=rows) if rows and kept else None


def as_facts(table: Table) -> list[tuple[str, str]]:
    """The single row of a table as (name, text); what is not known is left out."""
    seen = as_shown(table)
    return [
        (column.name, cell.text + (" points" if column.unit in ("difference", "spread") else ""))
        for column, cell in zip(seen.columns, seen.rows[0], strict=True)
        if cell.text not in ("", UNKNOWN)
    ]


def describe_design(spec: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What was drawn, as (name, text); nothing where there is no spec."""
    if not spec:
        return []
    design, arms = spec["design"], spec["arms"]
    return [
        ("tasks", ", ".join(task["name"] for task in spec["tasks"])),
        ("train texts at most, as many of each class", _listed(design["num_train"])),
        ("test texts, and as many extra texts", _listed(design["num_test"])),
        ("subsamples of each task", _listed(design["num_subsamples"])),
        ("arms", ", ".join(arm if isinstance(arm, str) else f"mix {arm['mix']:g}" for arm in arms)),
        ("seed", str(spec["seed"])),
    ]


def _listed(sizes: Any) -> str:
    if isinstance(sizes, Mapping):
        return ", ".join(f"{repeats} at {size} test texts" for size, repeats in sizes.items())
    return ", ".join(map(str, sizes)) if isinstance(sizes, list | tuple) else str(sizes)
