"""CSV files of a run: its results table, the effects of each trial, and estimates with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd

from peekbench.records import Report, Unit, estimates_table
from peekbench.results import COLUMNS, paired_scores
from peekbench_exports.content import ExportedRun, read_run

SCORES, EFFECTS, ESTIMATES = "scores.csv", "effects.csv", "estimates.csv"
DESCRIPTIONS = {
    SCORES: "Results table: one row for each arm of each trial.",
    EFFECTS: "Arms of each trial side by side, with boost = extra - base and bias = test - extra.",
    ESTIMATES: "Uncontaminated score (quantity extra), bias and boost with intervals, by task and on average.",
}
TYPES: dict[Unit, Literal["text", "integer", "number"]] = {"text": "text", "count": "integer", "number": "number"}
MEANINGS = {
    "quantity": "extra: score of the arm extra, which is uncontaminated; bias = test - extra; boost = extra - base",
    "metric": "name of the score, of which more is better",
    "task": "name of the task; empty for the average over tasks",
    "estimate": "mean over subsamples, as a fraction",
    "low": "lower end of the interval", "high": "upper end of the interval", "level": "coverage of the interval",
    "standard_error": "standard error of the estimate", "num_tasks": "number of tasks",
    "num_trials": "number of subsamples of all tasks", "decision": "verdict on the average bias",
}  # fmt: skip


UNITS: Mapping[str, Unit] = {column.name: column.unit for column in estimates_table([]).columns}


def write_csv(report: Report, folder: Path) -> None:
    """Write all CSV files of the run of a report."""
    write_tables(read_run(report), folder)


def write_tables(run: ExportedRun, folder: Path) -> None:
    """Write all CSV files of a run, with numbers in full precision."""
    for name, table in make_tables(run).items():
        table.to_csv(folder / name, index=False, lineterminator="\n", encoding="utf-8")


def make_tables(run: ExportedRun) -> Mapping[str, pd.DataFrame]:
    """Return the tables of a run by the names of their files."""
    rows = estimates_table(run.estimates).rows
    estimates = pd.DataFrame(rows, columns=list(UNITS))
    whole = {name: "Int64" for name, unit in UNITS.items() if unit == "count"}
    return {
        SCORES: run.content.results,
        EFFECTS: paired_scores(run.content.results),
        ESTIMATES: estimates.astype(whole),
    }


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A column of a CSV file."""

    file: str
    name: str
    type: Literal["text", "integer", "number"]
    meaning: str


def list_columns(tables: Mapping[str, pd.DataFrame]) -> Iterator[FileColumn]:
    """Yield the columns of all files.

    Parameters
    ----------
    tables
        The tables, from `make_tables`.
    """
    known = {column.name: column for column in COLUMNS}
    for file, table in tables.items():
        for name in map(str, table.columns):
            if file == ESTIMATES and name in MEANINGS:
                yield FileColumn(file, name, TYPES[UNITS[name]], MEANINGS[name])
            elif name in known:
                yield FileColumn(file, name, known[name].type, known[name].meaning)
            else:
                yield FileColumn(file, name, "number", _describe_effect(name))


def _describe_effect(column: str) -> str:
    return {"boost": "extra - base", "bias": "test - extra"}.get(column, f"score of {column}")
