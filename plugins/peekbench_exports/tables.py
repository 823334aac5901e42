"""What all formats need of a run, and its CSV files: results table, effects of each trial, estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from peekbench import PeekbenchError
from peekbench.records import Report, RunContent, ScoreEstimate, Unit, estimates_table
from peekbench.results import paired_scores

DETAILS = ("identifier", "spec", "data", "sessions")
TRIAL = ["task", "method", "model", "num_train", "num_test", "subsample"]


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """A run or a table of scores, as formats need it."""

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

    @property
    def name(self) -> str:
        """Name of the run."""
        return str(self.spec["name"])

    @property
    def session(self) -> Mapping[str, Any]:
        """The last session."""
        return self.sessions[-1]


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
        return ExportedRun(content, content.estimates, "", {"name": report.name}, names, ())
    identifier, spec, tasks, sessions = (content.report.details[key] for key in DETAILS)
    return ExportedRun(content, content.estimates, identifier, spec, tasks, sessions)


SCORES, EFFECTS, ESTIMATES = "scores.csv", "effects.csv", "estimates.csv"
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
