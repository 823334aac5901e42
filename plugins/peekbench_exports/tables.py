"""What all formats need of a report, and its CSV files: results table, effects of each trial, estimates."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from peekbench import PeekbenchError
from peekbench.records import Report, RunContent
from peekbench.results import paired_scores
from peekbench_stats import estimates_table

TRIAL = ["task", "method", "model", "num_train", "num_test", "subsample"]
ORIGIN = ["control", "num_scored", "looks", "independent_tasks"]
"""What verdicts depend on besides the scores."""


def read_content(report: Report) -> RunContent:
    """Read the scores and estimates of a report on a run or on a table of scores.

    Raises
    ------
    PeekbenchError
        If the report is of neither, or the run has no complete trial.
    """
    if report.read_run is None:
        raise PeekbenchError(
            f"{report.name} is a report of no run; name a run, as in `peekbench report RUN --format exports.csv`"
        )
    return report.read_run()


def write_csv(report: Report, folder: Path) -> None:
    """Write the CSV files of a run or a table, with numbers in full precision."""
    content = read_content(report)
    estimates = estimates_table(content.estimates)
    whole = {column.name: "Int64" for column in estimates.columns if column.unit == "count"}
    origin = content.results.drop_duplicates(TRIAL)[[*TRIAL, *ORIGIN]]
    tables = {
        "scores.csv": content.results,
        "effects.csv": paired_scores(content.results).merge(origin, on=TRIAL, how="left"),
        "estimates.csv": pd.DataFrame(estimates.rows, columns=[column.name for column in estimates.columns]).astype(
            whole
        ),
    }
    for name, table in tables.items():
        table.to_csv(folder / name, index=False, lineterminator="\n", encoding="utf-8")
