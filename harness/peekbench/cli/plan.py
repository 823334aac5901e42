"""The command that estimates the work of a run before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from peekbench.api.inputs import load
from peekbench.cli.output import FAILED, SpecArgument, WorkersOption, echo, make_console, note, warn
from peekbench.data.loading import with_sizes
from peekbench.data.preflight import describe_tasks, warn_of_data
from peekbench.errors import StoredTrialsError
from peekbench.execution.fit_plans import count_work, planned_design
from peekbench.execution.hosts import check_files
from peekbench.execution.pilot import Forecast, Pilot, available_cores, run_pilot
from peekbench.execution.resuming import StoredRun
from peekbench.execution.runner import store_path
from peekbench.formatting import duration, pluralize, shorten
from peekbench.report import render_tables
from peekbench.results.analyze import check_analyses, forecast
from peekbench.results.missing_trials import drop_incomplete
from peekbench.results.read import load_results
from peekbench.results.recorded_looks import look_at
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.reader import Store
from peekbench.store.writer import append_look

if TYPE_CHECKING:
    import pandas as pd

MAX_ERROR = 500  # characters of the error of a pilot trial


def plan(
    spec: SpecArgument,
    pilot: Annotated[bool, typer.Option(help="Measure a trial of each method at each design point.")] = True,
    power: Annotated[bool, typer.Option("--power", help="Forecast also how many subsamples a verdict takes.")] = False,
    workers: WorkersOption = None,
) -> None:
    """Estimate the work of a spec on this machine before a run: trials, fits and time.

    Example: peekbench plan specs/quickstart.yaml --workers 4
    """
    experiment = load(spec, workers)
    check_files(experiment)
    experiment = with_sizes(experiment)
    tasks = describe_tasks(experiment)
    check_analyses(experiment)
    for warning in warn_of_data(experiment, tasks):
        warn(warning)
    size = count_work(experiment)
    trials = pluralize(size.trials, "trial")
    if experiment.design.stop:
        trials = f"at most {trials}"
    echo(f"{experiment.name}: {trials}, {pluralize(size.fits, 'fit')}")
    measured = Pilot(seconds={}, first={}, failures=())
    if pilot:
        measured = _run_pilot(experiment)
    if measured.seconds:
        number = int(getattr(experiment.executor.options, "workers", None) or 1)
        for line in describe_forecast(measured.forecast(experiment, number), measured):
            echo(line)
    num_classes = {name: len(facts["class_names"]) for name, facts in tasks.items()}
    results = _read_stored(experiment, tasks, record=power)
    console = make_console()
    for analysis in forecast(planned_design(experiment, num_classes, measured.variances, results), experiment.analyses):
        for warning in analysis.warnings:
            note(warning)
        render_tables(analysis.tables, console, full=power)
    if measured.failures:
        echo("peekbench: correct the methods whose pilot failed; a run would stop them after a few trials", err=True)
        raise typer.Exit(FAILED)


def _read_stored(spec: ExperimentSpec, tasks: Mapping[str, Mapping[str, Any]], *, record: bool) -> pd.DataFrame | None:
    """Return the complete trials of the run of a spec; None if there are none, or they are of another experiment.

    A forecast for the present estimate is a look, which is recorded. One that uses only the noise is none.
    """
    path = store_path(spec)
    stored = StoredRun.read(path)
    if stored.experiment is None:
        return None
    try:
        stored.refuse_changes(stored.keep_looks(stored.pin(spec)), tasks)
    except StoredTrialsError:
        return None
    results = drop_incomplete(load_results(path))
    if results.empty:
        return None
    if record:
        with Store.open(path) as store:
            _, look = look_at(store, results)
        if look is not None:
            append_look(path, look)
    return results


def _run_pilot(experiment: ExperimentSpec) -> Pilot:
    pilot = run_pilot(experiment, note)
    failed = {failure.trial.method: failure for failure in reversed(pilot.failures)}
    for failure in failed.values():
        error = shorten(" ".join(failure.error.split()), MAX_ERROR)
        echo(f"a pilot trial failed: {failure.trial}: {error}", err=True)
    noun = "num_unlabeled" if experiment.design.folds else "num_test"
    for (method, num_train, size), seconds in pilot.seconds.items():
        echo(f"  {method}, num_train {num_train}, {noun} {size}: {seconds:.3f} s per trial")
    for method, facts in pilot.facts.items():
        if "precision" in facts:
            echo(f"  {method}: trained in {facts['precision']} (precision: auto, as timed on this machine)")
    for method in failed:
        echo(f"  {method}: time unknown, because its pilot failed")
    return pilot


def describe_forecast(forecast: Forecast, pilot: Pilot) -> list[str]:
    """Return a forecast in words, with its basis."""
    time = "time"
    if pilot.failures:
        time = "time of the other methods"
    workers, cores = pluralize(forecast.workers, "worker"), pluralize(available_cores(), "core")
    line = f"{time}: about {duration(forecast.seconds)} on {cores}, {workers}"
    basis = f"  measured on this machine: {pluralize(len(pilot.seconds), 'pilot trial')} with one worker"
    if pilot.start:
        basis += f", {pilot.start:.1f} s to start a worker"
    if pilot.preparation >= 1:
        basis += f"; {duration(pilot.preparation)} to prepare models and files, once for this machine"
    return [line, basis]
