"""Joins the results of several runs into one table in which equal draws have equal subsample numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from peekbench.errors import ResultsError
from peekbench.records.looks import Looks
from peekbench.records.table_options import TableOptions
from peekbench.report.build.report_warnings import check_results, warn_of_run
from peekbench.results.analyze import Seen, only_complete, planned_trials
from peekbench.results.column_use import ColumnUse
from peekbench.results.looks import look_at
from peekbench.results.read import load_table
from peekbench.results.texts import StoredPredictions
from peekbench.spec.design import designs_by_task
from peekbench.store.files import is_store
from peekbench.store.writer import Store

RUN = "run"
"""Column of the joined table that names the run."""


@dataclass(frozen=True, slots=True)
class Run:
    """Complete trials of a run and their origin; a table of scores has trials only."""

    name: str
    path: Path
    results: pd.DataFrame
    warnings: tuple[str, ...]
    spec: Mapping[str, Any] = field(default_factory=dict)
    tasks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    session: Mapping[str, Any] = field(default_factory=dict)
    """The last session."""
    columns: ColumnUse = field(default_factory=ColumnUse)
    """What was done with the columns of a table of scores."""
    looks: Looks = field(default_factory=Looks)
    """Looks at the run, this one included."""

    def seen(self) -> Seen:
        """Return what analyses can take besides the results."""
        return Seen(self.looks, StoredPredictions(self.path) if is_store(self.path) else None)

    def sampling_key(self, task: str) -> object:
        """Return a key that is equal for two runs if they sample the same rows of a task, number by number."""
        if task not in self.tasks:
            return self.path  # a table of scores does not say which rows were sampled
        design = self.spec["design"]
        return (self.spec["seed"], self.tasks[task]["fingerprint"], design["train"], max(design["num_train"]))


def open_runs(paths: Sequence[Path], *, allow_incomplete: bool = False, table: TableOptions | None = None) -> list[Run]:
    """Open stores, or other sources that `load_results` reads; runs that share a name are named by their paths.

    Parameters
    ----------
    paths
        Stores, or files or folders of scores.
    allow_incomplete
        Accept runs with missing trials.
    table
        How to read tables of scores of other tools.

    Raises
    ------
    ResultsError
        If trials are missing and `allow_incomplete` is not set, or a path is duplicated.
    """
    if len({path.absolute() for path in paths}) < len(paths):
        raise ResultsError(f"{', '.join(map(str, paths))}: a run is duplicated; name each run once")
    if table and not table.is_default and all(map(is_store, paths)):
        raise ResultsError(f"the columns of stores are known; remove {' '.join(table.arguments())}")
    runs = [_open(path, allow_incomplete, table or TableOptions()) for path in paths]
    names = [run.name for run in runs]
    return [replace(run, name=str(run.path)) if names.count(run.name) > 1 else run for run in runs]


def _open(path: Path, allow_incomplete: bool, options: TableOptions) -> Run:
    table = load_table(path, options if not is_store(path) else TableOptions())
    results = table.results
    if results.empty:
        raise ResultsError(f"{path}: no trial is finished; run its spec first")
    complete, warnings = only_complete(
        results,
        planned_trials(path),
        allow_incomplete=allow_incomplete,
        has_texts_as_draws=table.has_texts_as_draws,
    )
    looks = look_at(path, complete)
    checks = (warning for analysis in check_results(complete, is_run=is_store(path)) for warning in analysis.warnings)
    warnings = (*warnings, *checks)
    if not is_store(path):
        return Run(path.stem, path, complete, (*warnings, *table.columns.warnings), columns=table.columns)
    with Store.open(path) as store:
        spec, tasks, texts = store.spec(), store.tasks(), store.texts()
        warnings = (*warnings, *warn_of_run(designs_by_task(spec), tasks, texts, complete))
        return Run(spec["name"], path, complete, warnings, spec, tasks, store.sessions()[-1], looks=looks)


def side_by_side(runs: Sequence[Run]) -> pd.DataFrame:
    """Return one table of all results, with a column `run`.

    Subsample numbers of two runs are equal if, and only if, the sampled rows are equal.
    """
    step = 1 + max(int(run.results["subsample"].max()) for run in runs)
    keys_by_task: dict[str, list[object]] = {}
    tables = []
    for run in runs:
        shifts = {}
        for task in run.results["task"].unique():
            known, key = keys_by_task.setdefault(task, []), run.sampling_key(task)
            if key not in known:
                known.append(key)
            shifts[task] = step * known.index(key)
        subsample = run.results["subsample"] + run.results["task"].map(shifts).astype("Int64")
        tables.append(run.results.assign(subsample=subsample, **{RUN: run.name}))
    return pd.concat(tables, ignore_index=True)
