"""Runs experiments from Python, loads their runs, and analyzes scores of other tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import pandas as pd

from peekbench.api.inputs import find_run, find_scores, load
from peekbench.api.report_view import ReportView
from peekbench.api.run_view import Run
from peekbench.errors import PeekbenchError, PluginError, ResultsError, public, warn_of_run
from peekbench.execution.observers import Observers
from peekbench.execution.runner import RunSummary, store_path
from peekbench.execution.runner import run as run_spec
from peekbench.formatting import pluralize, shorten, visible
from peekbench.progress import PrintableConsole, make_display
from peekbench.records.data import TableKeywords, TableOptions
from peekbench.report.facts.reports import report_of_run, report_of_table
from peekbench.results.analyze import AnalysisOptions
from peekbench.results.analyze import analyze as analyze_scores
from peekbench.results.read import python_messages
from peekbench.spec.experiment import ExperimentSpec, make_spec
from peekbench.store.files import is_store
from peekbench.store.reader import Store

MAX_ERROR = 500  # characters of the first error in a warning


@public
def run(
    spec: ExperimentSpec | Mapping[str, Any] | str | Path,
    *,
    store: str | Path | None = None,
    workers: int | None = None,
    progress: bool = True,
    keep_going: bool = False,
    allow_changed_code: bool = False,
    fresh: bool = False,
) -> Run:
    r"""Run an experiment, or resume its run. Trials that the store has are not repeated.

    If the design plans looks, the run analyzes its results at each of them, and stops if all verdicts are settled. If
    trials fail, the others are run, and a `RunWarning` has the first error; if all fail, an exception has it.

    Parameters
    ----------
    spec
        Path of a YAML file, a dictionary with the same content, or an `ExperimentSpec`. Relative paths in a dictionary
        start at the current folder.
    store
        The SQLite file; `runs/<name>.sqlite` by default.
    workers
        Number of worker processes, instead of that of the spec. It changes no number.
    progress
        Whether to show the progress: a bar in a terminal, lines elsewhere, on standard error.
    keep_going
        Try all trials of a method, even if its first ten fail.
    allow_changed_code
        Resume the run although the code of a method's plugin has changed since its trials were stored. The report then
        warns that its trials are of several versions.
    fresh
        Delete the trials of an earlier run in this store, once all is ready for the new ones. Without it, a store
        without a finished trial is replaced if the spec has changed, and finished trials are never deleted.

    Returns
    -------
    Run
        Results, predictions, failures and reports.

    Raises
    ------
    SpecError
        If the spec is invalid.
    DataError
        Before any trial, if data are unavailable or too small. Also if data change during the run.
    PluginError
        Before any trial, if a method does not support a task. After the run, if all trials failed.
    StoreError
        Before any trial, if the store belongs to another experiment, or if the code of a method's plugin has changed.
        Also if the store cannot be written later.
    KeyboardInterrupt
        On Ctrl-C, or if the notebook's cell is interrupted. Finished trials are stored; the same call resumes the run.

    Examples
    --------
    >>> import peekbench as pb
    >>> run = pb.run("specs/quickstart.yaml", progress=False)
    >>> run.finished + run.resumed == run.planned
    True
    >>> run.report().name
    'quickstart'
    """
    experiment = load(spec, workers)
    path = Path(store or store_path(experiment))
    display = None
    if progress:  # in lines in a notebook, where the live display of rich would need the package ipywidgets
        is_live = not PrintableConsole().is_jupyter  # whose standard error looks like a terminal
        display = make_display(PrintableConsole(stderr=True, force_jupyter=False), is_live=is_live)
    with Observers(display, experiment.observers, warn_of_run) as observers:
        with display or nullcontext():
            summary = run_spec(
                experiment,
                store=path,
                observers=observers,
                keep_going=keep_going,
                allow_changed_code=allow_changed_code,
                fresh=fresh,
            )
        if experiment.observers:
            report_of_run(path, given=experiment.code, on_analysis=observers.analysis_finished)
    finished = Run(summary.spec, summary)
    if not progress:  # which shows them
        for note in summary.notes:
            warn_of_run(note)
    if summary.failed:
        _warn_of_failures(finished)
    return finished


def _warn_of_failures(finished: Run) -> None:
    """Warn of failed trials; if no trial of the run is finished, raise an error.

    Raises
    ------
    PluginError
        If there are no results at all.
    """
    first, summary = finished.failures.iloc[0], finished.summary
    stopped = "".join(
        f"; the first trials of {method} failed, and its other {number:,} were not tried"
        for method, number in summary.stopped.items()
    )
    error = visible(" ".join(shorten(first["error"], MAX_ERROR).split()))
    problem = (
        f"{pluralize(finished.failed, 'trial')} failed; the first error, of {first['method']} on {first['task']}: "
        f"{error}{stopped}"
    )
    remedy = "has all errors; running it again retries them"
    if not summary.finished + summary.resumed:
        raise PluginError(
            f"no trial is finished: {problem}. `peekbench.load_run({str(summary.store)!r}).failures` {remedy}"
        )
    warn_of_run(f"{problem}. `run.failures` {remedy}")


@public
def load_run(run: str | Path | ExperimentSpec) -> Run:
    """Load a run, finished or not, without running anything.

    Parameters
    ----------
    run
        Name of a run in the folder `runs`, path of its store, or its spec.

    Returns
    -------
    Run
        Results, predictions, failures and reports. Its spec is the one in the store.

    Raises
    ------
    PeekbenchError
        If there is no such run. The message names the nearest one.
    StoreError
        If the store is damaged or has another version.

    Examples
    --------
    >>> import peekbench as pb
    >>> pb.load_run("quickstart").failed
    0
    >>> pb.load_run("no-such-run")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    peekbench.errors.PeekbenchError: no-such-run: no run of this name, as runs/no-such-run.sqlite does not exist; ...
    """
    if isinstance(run, ExperimentSpec):
        path, given = store_path(run), run.code
        if not path.is_file():
            raise PeekbenchError(f"{path} does not exist; `peekbench.run` creates the run of a spec")
    else:
        path, given = find_run(run)
    with Store.open(path) as store:
        raw, origin = store.spec(), f"the spec in {path}"
        spec = make_spec(raw, folder=store.folder(), origin=origin, stored=True, given=given)
        num_done, num_failed = len(store.done()), len(store.failures())
        look = next(reversed(store.planned_looks()), None)
    planned = sum(1 for _ in spec.trials())
    return Run(spec, RunSummary(spec, path, planned, num_done, 0, num_failed, look=look))


@public
def analyze(
    scores: pd.DataFrame | str | Path | Sequence[str | Path] | Run | Any,
    analyses: Sequence[str] | None = None,
    *,
    name: str = "",
    allow_incomplete: bool = False,
    **table: Unpack[TableKeywords],
) -> ReportView:
    """Analyze scores of any tool.

    Parameters
    ----------
    scores
        A data frame, a file or a folder with scores, in one of two forms: one row for each subsample with a column for
        each arm (base, extra, test), or one row for each arm of each subsample with a column of the arm. Only the task
        and the scores are required. With a column `text`, each row is about a single test text. Several files in a list
        are one table; if no column names the task, it is the name of the file. Also a run, its name, its spec or its
        store.
    analyses
        Names of the analyses, or with options as in a spec: ``"{use: summary, options: {level: 0.9}}"``. By default
        those of the run's spec, or `summary` and `permutation`, and `summary.texts` if rows are about single texts of
        several runs.
    name
        Name of the report.
    allow_incomplete
        Analyze the complete trials if trials are missing, or their scores empty. The report then has a warning.
    **table
        What the columns do not say themselves. `columns`: meaning of columns with names of their own, such as
        ``{"seed": "subsample"}``. `ignore`: columns that say nothing about the scores. `percent`: read scores as
        percentages.
        `independent_tasks`: different tasks have independent draws, although these have the same numbers. `region`:
        largest bias that is negligible, in the unit of the scores. `tasks`: tasks to read, by default all.
        `earlier`: subsamples per task at each earlier analysis of the table, if it was extended since.

    Returns
    -------
    ReportView
        Verdicts, tables and figures. A notebook shows them.

    Raises
    ------
    ResultsError
        If the table is malformed, a column is neither known nor mapped nor ignored, or trials are missing.
    SpecError
        If an analysis does not exist, or cannot analyze these scores.

    Examples
    --------
    >>> import pandas as pd, peekbench as pb
    >>> extra, test = [0.70, 0.71, 0.69, 0.70, 0.72, 0.71, 0.70], [0.75, 0.77, 0.74, 0.75, 0.77, 0.75, 0.76]
    >>> scores = pd.DataFrame({"dataset": "news", "seed": range(7), "extra": extra, "test": test})
    >>> report = pb.analyze(scores, ["summary"])
    >>> report.verdicts[0].decision
    'biased up'
    """
    options = AnalysisOptions(analyses or (), TableOptions(**table), allow_incomplete)
    if isinstance(scores, str | Path):
        given, scores = scores, find_scores(scores)
        if is_store(scores):
            scores = load_run(given)
    if isinstance(scores, Run):
        if table or name:
            first = next(iter(table), "name")
            raise ResultsError(f"{scores.store} is the store of a run, whose columns are known; remove {first}=")
        return scores.report(analyses, allow_incomplete=allow_incomplete)
    source: pd.DataFrame | Path | list[Path]
    if isinstance(scores, Path):
        source = scores
    elif isinstance(scores, list | tuple) and all(isinstance(path, str | Path) for path in scores):
        source = [Path(path) for path in scores]
    else:
        source, name = _to_pandas(scores), name or "scores"
    with python_messages(options.table):
        report = report_of_table(analyze_scores(source, options), name)
    return ReportView(replace(report, extension=replace(report.extension, command="")))  # advice is about Python


def _to_pandas(scores: Any) -> pd.DataFrame:
    """Return a data frame, also of another library such as polars, as one of pandas."""
    table = scores
    if hasattr(scores, "to_pandas"):
        table = scores.to_pandas()
    if not isinstance(table, pd.DataFrame):
        raise ResultsError(
            f"scores are a data frame, a path, or a run, not a {type(scores).__name__}; make one with "
            "pandas.DataFrame(scores), with the names of the columns"
        )
    return table
