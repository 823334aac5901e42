"""What all formats need of a run, and its CSV files: results table, effects of each trial, estimates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from peekbench import PeekbenchError
from peekbench.records import Report, RunContent, ScoreEstimate, Unit, estimates_table
from peekbench.results import COLUMNS, paired_scores

DETAILS = ("identifier", "spec", "data", "sessions")
TRIAL = ["task", "method", "model", "num_train", "num_test", "subsample"]


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """A run, with what its users say about its publication."""

    content: RunContent
    estimates: Sequence[ScoreEstimate]
    """Scores and effects by configuration and quantity: the average, then by task."""
    identifier: str
    spec: Mapping[str, Any]
    """Canonical form of the spec."""
    tasks: Mapping[str, Mapping[str, Any]]
    """Facts about the data by task."""
    sessions: Sequence[Mapping[str, Any]]
    """Provenance of the sessions, oldest first; at least one, but none of a table."""
    num_analyzed: int
    """Number of complete trials."""
    author: str
    license: str

    @property
    def name(self) -> str:
        """Name of the run."""
        return str(self.spec["name"])

    @property
    def session(self) -> Mapping[str, Any]:
        """The last session."""
        return self.sessions[-1]

    @property
    def is_complete(self) -> bool:
        """Whether all planned trials are complete."""
        return self.num_analyzed == self.content.num_planned


def read_run(report: Report, *, allow_table: bool = False) -> ExportedRun:
    """Read the run of a report, or a table of scores without spec and sessions if the format allows that.

    Raises
    ------
    PeekbenchError
        If the report is of no run, or the run has no complete trial.
    """
    if report.read_run is None or ("spec" not in report.details and not allow_table):
        raise PeekbenchError(
            f"{report.name} is a report of no run, and this format describes runs; name a run, as in `peekbench report "
            "RUN --format FORMAT`, or use exports.csv or exports.latex for a table of scores"
        )
    content = report.read_run()
    if "spec" not in report.details:
        names: dict[str, dict[str, Any]] = {str(task): {} for task in content.results["task"].unique()}
        return ExportedRun(
            content, content.estimates, "", {"name": report.name}, names, (), content.num_planned, report.author,
            report.license,
        )  # fmt: skip
    identifier, spec, tasks, sessions = (content.report.details[key] for key in DETAILS)
    trials = content.results.drop_duplicates(TRIAL)
    return ExportedRun(
        content, content.estimates, identifier, spec, tasks, sessions, len(trials), report.author, report.license
    )


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
    """Write all CSV files of the run or the table of a report."""
    write_tables(read_run(report, allow_table=True), folder)


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
        EFFECTS: _add_origin(paired_scores(run.content.results), run.content.results),
        ESTIMATES: estimates.astype(whole),
    }


def _add_origin(effects: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """Return effects with what their verdicts depend on: controls, numbers of answers, looks, independence of tasks."""
    origin = results.drop_duplicates(TRIAL)[[*TRIAL, "control", "num_scored", "looks", "independent_tasks"]]
    return effects.merge(origin, on=TRIAL, how="left")


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
