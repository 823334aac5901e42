"""The command that estimates the work of a run before it starts."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from peekbench.api.inputs import load
from peekbench.cli.options import SpecArgument, WorkersOption
from peekbench.cli.output import FAILED, echo, make_console, note, warn
from peekbench.data.loading import with_sizes
from peekbench.data.preflight import describe_rows, describe_tasks, list_errors, warn_of_copies
from peekbench.execution.pilot import Forecast, Pilot, available_cores, run_pilot
from peekbench.execution.planning import estimate_size, fits_of_arms, planned_design
from peekbench.execution.preparation import check_files, split_reachable
from peekbench.execution.runner import store_path
from peekbench.formatting import duration, pluralize, shorten
from peekbench.plugins.boundary import Foreign
from peekbench.records.data import TaskFacts
from peekbench.report import render_tables
from peekbench.results.analyze import check_analyses, forecast
from peekbench.results.missing_trials import drop_incomplete
from peekbench.results.read import load_results
from peekbench.results.recorded_looks import look_at
from peekbench.spec.components import TaskSpec
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.reader import Store
from peekbench.store.writer import append_look

if TYPE_CHECKING:
    import pandas as pd

MAX_ERROR = 500  # characters of the error of a pilot trial
GPU_MARGIN = 1.1  # of the measured memory, for trials with longer texts


def plan(
    spec: SpecArgument,
    pilot: Annotated[bool, typer.Option(help="Measure a trial of each method at each design point.")] = True,
    power: Annotated[bool, typer.Option("--power", help="Forecast how many subsamples a verdict takes.")] = False,
    workers: WorkersOption = None,
) -> None:
    """Estimate the work of a spec on this machine before a run: trials, fits, disk space, time and memory.

    Example: peekbench plan specs/quickstart.yaml --workers 4
    """
    experiment = load(spec, workers)
    check_files(experiment)
    part, unread, unprepared = split_reachable(experiment, note, with_methods=pilot)
    part = with_sizes(part)
    with_rows = {task.name: task for task in part.tasks}
    tasks_of_spec = tuple(with_rows.get(task.name, task) for task in experiment.tasks)
    experiment = experiment.model_copy(update={"tasks": tasks_of_spec})
    tasks = describe_tasks(part)
    if part.tasks and part.methods:
        check_analyses(part, tasks)
    designs = {task.name: part.design_of(task) for task in part.tasks}
    for warning in warn_of_copies(designs, tasks):
        warn(warning)
    num_classes = {
        **{name: len(facts["class_names"]) for name, facts in tasks.items()},
        **{task.name: _known_classes(experiment, task) for task in experiment.tasks if task.name in unread},
    }
    size = estimate_size(experiment, {name: max(1, number) for name, number in num_classes.items()})
    trials = pluralize(size.trials, "trial")
    if experiment.design.stop:
        trials = f"at most {trials}"
    echo(f"{experiment.name}: {trials}, {pluralize(size.fits, 'fit')}, {size.bytes / 1e6:,.0f} MB of disk")
    if any(arm.is_rule for arm in experiment.arms):
        for num_test, fits in fits_of_arms(experiment).items():
            listed = ", ".join(f"{arm} {number:,}" for arm, number in fits.items())
            echo(f"  fits of a method in a trial with num_test {num_test:,}: {listed}")
    for line in describe_rows(part):
        echo(f"  {line}")
    for line in (*list_errors(unread, len(experiment.tasks)), *map(str, unprepared.values())):
        echo(f"  left out: {line}")
    if unread:
        echo("  not checked: whether the rows of these tasks suffice, and whether the methods suit them")
    if unread or unprepared:
        echo(f"  With a network, this downloads them: peekbench validate --download {shlex.quote(str(spec))}")
    measured = Pilot(usages={}, first={}, failures=())
    if pilot and part.tasks and part.methods:
        measured = _run_pilot(part)
    if measured.usages:
        number = int(getattr(experiment.executor.options, "workers", None) or 1)
        is_part = bool(unprepared or measured.failures)
        for line in describe_forecast(measured.forecast(experiment, number), measured, is_part=is_part):
            echo(line)
    if power or measured.variances:
        _forecast_power(experiment, num_classes, measured)
    if measured.failures:
        echo(
            "peekbench: correct the methods whose pilot failed; a run would stop them after their first trials",
            err=True,
        )
        raise typer.Exit(FAILED)


def _known_classes(experiment: ExperimentSpec, task: TaskSpec) -> int:
    """Return the number of classes of a task that cannot be loaded, as far as its data source knows; otherwise 2."""
    if task.kind is not None:
        return 0
    if task.entry.facts is None:
        return 2
    facts: TaskFacts = Foreign(f"task {task.name}: `facts`", task.use).call(
        task.entry.facts, {"folders": experiment.folders()}, TaskFacts
    )
    return facts.num_classes or 2


def _forecast_power(experiment: ExperimentSpec, num_classes: Mapping[str, int], measured: Pilot) -> None:
    results = _read_stored(store_path(experiment))
    design = planned_design(experiment, num_classes, measured.variances, results)
    console = make_console()
    for analysis in forecast(design, experiment.analyses):
        for warning in analysis.warnings:
            warn(warning)
        render_tables(analysis.tables, console)


def _read_stored(path: Path) -> pd.DataFrame | None:
    """Return the complete trials of a run, and record that they were looked at; None if there are none."""
    if not path.is_file():
        return None
    results = drop_incomplete(load_results(path))
    if results.empty:
        return None
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
    for (method, num_train, num_test), usage in pilot.usages.items():
        echo(f"  {method}, num_train {num_train}, num_test {num_test}: {usage.seconds:.3f} s per trial")
    for method in failed:
        echo(f"  {method}: time unknown, because its pilot failed")
    return pilot


def describe_forecast(forecast: Forecast, pilot: Pilot, *, is_part: bool = False) -> list[str]:
    """Return a forecast in words, with its basis; `is_part` if it lacks a method."""
    time = "time"
    if is_part:
        time = "time of the other methods"
    workers, cores = pluralize(forecast.workers, "worker"), pluralize(available_cores(), "core")
    lines = [
        f"{time}: about {duration(forecast.seconds)} on {cores}, {workers}",
        f"memory of the {workers}: about {forecast.memory / 1e9:.1f} GB",
    ]
    if pilot.gpu_memory:
        needed = math.ceil(GPU_MARGIN * pilot.gpu_memory / 1e8) / 10
        lines.append(
            f"memory of GPUs: about {pilot.gpu_memory / 1e9:.1f} GB per worker; the executor option "
            f"`gpu_memory: {needed:g}` lets as many workers share a GPU as fit"
        )
    if forecast.answers:
        lines.append(f"disk for generated answers: about {max(forecast.answers / 1e6, 0.1):,.1f} MB more")
    basis = f"  measured on this machine: {pluralize(len(pilot.usages), 'pilot trial')} with one worker"
    if pilot.start:
        basis += f", {pilot.start:.1f} s to start a worker"
    return [*lines, basis]
