"""Runs experiments from Python, and finds finished ones."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

from peekbench.api.run import Run
from peekbench.errors import PeekbenchError, PluginError, RunWarning, SpecError
from peekbench.execution.observers import Observers
from peekbench.execution.runner import RunSummary, store_path
from peekbench.execution.runner import run as run_spec
from peekbench.formatting import pluralize, shorten, visible
from peekbench.plugins.similar_names import find_nearest_file
from peekbench.progress import PrintableConsole, make_display
from peekbench.report.facts.run_report import report_of_run
from peekbench.spec.experiment import ExperimentSpec, load_spec, make_spec
from peekbench.store.files import RUNS, is_store
from peekbench.store.reader import Store

CORE = f"{Path(__file__).parents[1]}{os.sep}"


def outer_level() -> int:
    """Return the `stacklevel` with which the caller of this function warns about the first line outside of peekbench.

    The same function warns for `peekbench.run`, and for `peekbench.measure`, which calls it.
    """
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_code.co_filename.startswith(CORE):
        frame, level = frame.f_back, level + 1
    return level


MAX_ERROR = 500  # characters of the first error in a warning
SUFFIX = ".sqlite"
SPEC_SUFFIXES = (".yaml", ".yml")


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
        Try all trials of a method, even if its first ten fail in the same way.
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
    experiment = read_experiment(spec)
    if workers is not None:
        experiment = experiment.with_executor_options(workers=workers)
    path = Path(store) if store is not None else store_path(experiment)
    display = None
    if progress:  # in lines in a notebook, where the live display of rich would need the package ipywidgets
        is_live = not PrintableConsole().is_jupyter  # whose standard error looks like a terminal
        display = make_display(PrintableConsole(stderr=True, force_jupyter=False), is_live=is_live)
    with Observers(display, experiment.observers, _warn_of_observer) as observers:
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
    for note in () if progress else summary.notes:  # which the display of the progress has shown
        warnings.warn(note, RunWarning, stacklevel=outer_level())
    if summary.failed:
        _warn_of_failures(finished)
    for plugin in summary.changed_code:
        warnings.warn(
            f"the code of the plugin {plugin} differs from the code that made trials in {summary.store}, which are not "
            "computed again. To measure the present code alone, give the run another name, or use fresh=True",
            RunWarning,
            stacklevel=outer_level(),
        )
    return finished


def read_experiment(spec: ExperimentSpec | Mapping[str, Any] | str | Path) -> ExperimentSpec:
    """Return the experiment of a path, a dictionary, or a spec.

    Raises
    ------
    SpecError
        If it is none of them, or invalid.
    """
    if isinstance(spec, ExperimentSpec):
        return spec
    if isinstance(spec, Mapping):
        return make_spec(spec, folder=Path.cwd())
    if not isinstance(spec, str | Path):
        raise SpecError(
            f"a spec is the path of a YAML file, a dictionary, or an ExperimentSpec, not a {type(spec).__name__}"
        )
    if "\n" in str(spec):
        raise SpecError(
            "this is the text of a spec; give the path of a YAML file, or a dictionary, such as "
            "`yaml.safe_load(text)` returns"
        )
    if _store_by_name(str(spec)).is_file() and not Path(spec).exists():
        raise SpecError(f"{spec} is the name of a run, not a spec; `peekbench.load_run({str(spec)!r})` loads it")
    return load_spec(spec)


def _warn_of_observer(message: str) -> None:
    warnings.warn(message, RunWarning, stacklevel=outer_level())


def _warn_of_failures(finished: Run) -> None:
    """Warn of failed trials; if no trial of the run is finished, raise an error.

    Raises
    ------
    PluginError
        If there are no results at all.
    """
    first, summary = finished.failures.iloc[0], finished.summary
    stopped = "".join(
        f"; the first trials of {method} failed in the same way, and its other {number:,} were not tried"
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
    warnings.warn(f"{problem}. `run.failures` {remedy}", RunWarning, stacklevel=outer_level())


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
    if not isinstance(run, ExperimentSpec) and Path(run).suffix in SPEC_SUFFIXES and Path(run).is_file():
        run = load_spec(run)
    path = _find_store(run)
    given = run.code if isinstance(run, ExperimentSpec) else ()
    with Store.open(path) as store:
        raw, origin = store.spec(), f"the spec in {path}"
        spec = make_spec(raw, folder=store.folder(), origin=origin, stored=True, given=given)
        num_done, num_failed, looks = len(store.done()), len(store.failures()), store.planned_looks()
    planned = sum(1 for _ in spec.trials())
    return Run(spec, RunSummary(spec, path, planned, num_done, 0, num_failed, look=looks[-1] if looks else None))


def is_run(source: str | Path) -> bool:
    """Return whether a path or a name means a run: its store, its spec, or the name of a store in the folder `runs`."""
    path = Path(source)
    if path.exists():
        return path.suffix in SPEC_SUFFIXES or (path.is_file() and is_store(path))
    return _store_by_name(str(source)).is_file()


def _find_store(run: str | Path | ExperimentSpec) -> Path:
    if isinstance(run, ExperimentSpec):
        path = store_path(run)
        if path.is_file():
            return path
        raise PeekbenchError(f"{path} does not exist; `peekbench.run` creates the run of a spec")
    path = Path(run)
    if not path.is_file() and _store_by_name(str(run)).is_file():
        path = _store_by_name(str(run))
    if path.is_file() and is_store(path):
        return path
    if path.is_file():
        raise PeekbenchError(f"{path} is not the store of a run; `peekbench.analyze` reads tables of scores")
    names = sorted(file.stem for file in RUNS.glob(f"*{SUFFIX}"))
    near = find_nearest_file(path.name, names)
    known = f"the runs are {', '.join(names[:10])}" if names else f"the folder {RUNS} has none"
    raise PeekbenchError(
        f"{run}: no run of this name, as {_store_by_name(str(run)) if path.suffix != SUFFIX else path} does not exist; "
        + (f"did you mean {near}?" if near else known)
    )


def _store_by_name(name: str) -> Path:
    return RUNS / f"{name}{SUFFIX}"
