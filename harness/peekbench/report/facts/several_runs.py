"""Joins several runs: the leaderboard of their methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from peekbench.data.preflight import warn_of_design
from peekbench.errors import ResultsError
from peekbench.records.data import TableOptions
from peekbench.records.report import Extension, MethodFacts, Report
from peekbench.records.verdicts import RowName
from peekbench.report.facts.reports import add_analyses, extend_table
from peekbench.report.facts.run_facts import RunFacts, check_results, describe_copied_rows, make_command
from peekbench.report.render import run_words
from peekbench.results.analyze import AnalysisOptions, Analyzed, Seen, ask, find_analysis, read_run, read_scores
from peekbench.results.columns import TRIAL
from peekbench.results.recorded_looks import read_looks
from peekbench.results.user_columns import find_metric
from peekbench.spec.design import designs_by_task
from peekbench.store.files import is_store
from peekbench.store.reader import Store


def report_of_comparison(
    paths: Sequence[Path], *, allow_incomplete: bool = False, table: TableOptions | None = None
) -> Report:
    r"""Rank the methods of runs on the tasks and arms that all runs have.

    Parameters
    ----------
    paths
        Stores of the runs, or tables of scores.
    allow_incomplete
        Compare runs with missing trials instead of refusing them; the report warns about them. Missing trials of a
        method with a failed trial need no permission.
    table
        How to read tables of scores of other tools.

    Returns
    -------
    Report
        Leaderboard, ordered by the score of the arm extra.

    Raises
    ------
    ResultsError
        If trials are missing and `allow_incomplete` is not set, two paths name the same run, the runs have no task in
        common, or there is nothing to rank but controls.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "scores.csv")
    ...     _ = path.write_text("task,method,num_test,extra,test\na,lsa,50,0.7,0.8\nb,lsa,50,0.6,0.8\n")
    ...     report_of_comparison([path]).tables[0].title
    'Leaderboard, by accuracy of extra'
    """
    runs = open_runs(paths, allow_incomplete=allow_incomplete, table=table)
    joined = side_by_side(runs)
    shared, left_out = _keep_shared(joined)
    if len(runs) > 1:
        shared = shared.assign(method=shared[RUN] + ": " + shared["method"])
    make = partial(make_command, "compare", paths, (), allow_incomplete=allow_incomplete)
    methods, num_trials = shared.loc[shared["control"] == "", "method"].unique(), len(shared.drop_duplicates([*TRIAL]))
    stored = [RunFacts.read(run.path) for run in runs if run.is_run]
    if len(runs) > 1:
        extension = Extension(of="runs")
    elif runs[0].is_run:
        extension = stored[0].extension
    else:
        extension = extend_table(shared, table or TableOptions(), make)
    report = Report(
        name="comparison of " + ", ".join(run.name for run in runs),
        headline=run_words.describe_scores(
            run_words.count_methods_of(shared), shared["task"].nunique(), num_trials, [str(run.path) for run in runs]
        ),
        warnings=(*(f"{run.name}: {warning}" for run in runs for warning in run.warnings), *left_out),
        provenance={run.name: str(run.path) for run in runs},
        details={"runs": [str(run.path) for run in runs]},
        methods=tuple(MethodFacts(str(name)) for name in methods),
        extension=extension,
        has_copies=any(facts.copies for facts in stored),
        command=make(table),
    )
    fingerprints = {(task, run.tasks[task]["fingerprint"]) for run in runs for task in run.tasks}
    changed = [task for task in shared["task"].unique() if sum(task == name for name, _ in fingerprints) > 1]
    if changed:
        report = replace(report, warnings=(*report.warnings, run_words.warn_of_different_data(changed)))
    if not len(methods):
        raise ResultsError("all methods are controls, which are not ranked; name a run of other methods")
    seen = runs[0].scores.seen
    if len(runs) > 1:
        seen = Seen(read_looks(shared))
    columns_of_runs = (run.scores.table.columns for run in runs)
    unit = next((found for found in columns_of_runs if found.region is not None or found.not_like_accuracy), None)
    ranking = ask(find_analysis("ranking"), shared.drop(columns=RUN), seen, unit)
    for run in runs:
        rows_of_run = run.scores.complete[run.scores.complete["task"].isin(shared["task"])]
        prefix = f"{run.name}: " if len(runs) > 1 else ""
        (ranking,) = describe_copied_rows([ranking], run.path, run.tasks, rows_of_run, prefix)
    rows: RowName = "texts"
    if any(run.rows == "rows" for run in runs):
        rows = "rows"
    return add_analyses(report, [ranking], rows)


def _keep_shared(joined: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Keep the rows of the tasks and arms that every run has, and warn about the others."""
    num_runs = joined[RUN].nunique()
    warnings = []
    for column in ("task", "arm"):
        runs = joined.groupby(column, sort=False)[RUN].nunique()
        missing = [str(name) for name in runs.index[runs < num_runs]]
        if len(missing) == len(runs):
            raise ResultsError(f"the runs have no {column} in common; compare runs on the same {column}s")
        if missing:
            warnings.append(run_words.warn_of_left_out(column, missing))
        joined = joined[~joined[column].isin(missing)]
    return joined, tuple(warnings)


RUN = "run"
"""Column of the joined table that names the run."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Complete trials of a run and their origin; a table of scores has trials only."""

    name: str
    scores: Analyzed
    warnings: tuple[str, ...]
    spec: Mapping[str, Any] = field(default_factory=dict)
    tasks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rows: RowName = "texts"
    """What sentences call the rows of the tasks."""

    @property
    def path(self) -> Path:
        """Store of the run, or path of the table."""
        return Path(self.scores.origin)

    @property
    def is_run(self) -> bool:
        """Whether the scores are those of a run, and not of a table."""
        return bool(self.spec)

    def sampling_key(self, task: str) -> object:
        """Return a key that is equal for two runs if they sample the same rows of a task, number by number."""
        if task not in self.tasks:
            return self.path  # a table of scores does not say which rows were sampled
        design = self.spec["design"]
        return (self.spec["seed"], self.tasks[task]["fingerprint"], design["train"], max(design["num_train"]))


def open_runs(
    paths: Sequence[Path], *, allow_incomplete: bool = False, table: TableOptions | None = None
) -> list[Compared]:
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
    if table and table.given and all(map(is_store, paths)):
        raise ResultsError(f"the columns of stores are known; remove {' '.join(table.arguments())}")
    each = AnalysisOptions(table=table or TableOptions(), allow_incomplete=allow_incomplete)
    runs = [_open(path, each) for path in paths]
    metrics = {run.scores.table.columns.metric or find_metric(run.scores.complete): run for run in runs}
    metrics.pop("", None)
    if len(metrics) > 1:
        listed = ", ".join(f"{metric} ({run.path})" for metric, run in metrics.items())
        raise ResultsError(f"the scores have different metrics: {listed}; name runs or tables of one metric")
    names = Counter(run.name for run in runs)
    for position, run in enumerate(runs):
        if names[run.name] > 1:
            runs[position] = replace(run, name=str(run.path))
    return runs


def _open(path: Path, options: AnalysisOptions) -> Compared:
    if not is_store(path):
        scores = read_scores(path, options)
        return Compared(path.stem, scores, (*_warn_of_scores(scores), *scores.table.columns.warnings))
    with Store.open(path) as store:
        scores = read_run(store, replace(options, table=TableOptions()))
        spec, tasks, rows = store.spec(), store.tasks(), store.row_name()
        run_warnings = warn_of_design(designs_by_task(spec), tasks)
        warnings = (*_warn_of_scores(scores), *run_words.warn_of_repeats(store.repeats()), *run_warnings)
    scores.record_look()
    return Compared(spec["name"], scores, warnings, spec, tasks, rows)


def _warn_of_scores(scores: Analyzed) -> Iterator[str]:
    """Yield warnings about scores, which need at least one finished trial."""
    if scores.complete.empty:
        raise ResultsError(f"{scores.origin}: no trial is finished; run its spec first")
    yield from scores.warnings
    for analysis in check_results(scores.complete):
        yield from analysis.warnings


def side_by_side(runs: Sequence[Compared]) -> pd.DataFrame:
    """Return one table of all results, with a column `run`.

    Subsample numbers of two runs are equal if, and only if, the sampled rows are equal.
    """
    step = 1 + max(int(run.scores.complete["subsample"].max()) for run in runs)
    keys_by_task: dict[str, list[object]] = {}
    # Tasks of tables can share draws, so each table has one shift.
    table_keys: list[object] = [run.path for run in runs if not run.tasks]
    tables = []
    for run in runs:
        shifts = {}
        for task in run.scores.complete["task"].unique():
            known, key = keys_by_task.setdefault(task, [*table_keys]), run.sampling_key(task)
            if key not in known:
                known.append(key)
            shifts[task] = step * known.index(key)
        subsample = run.scores.complete["subsample"] + run.scores.complete["task"].map(shifts).astype("Int64")
        tables.append(run.scores.complete.assign(subsample=subsample, **{RUN: run.name}))
    return pd.concat(tables, ignore_index=True)
