"""The command that estimates the work of a run before it starts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from peekbench.cli.app import WorkersOption, app, load_any
from peekbench.cli.output import FAILED, echo, make_console, warn
from peekbench.formatting import pluralize, shorten

if TYPE_CHECKING:
    from peekbench.execution.pilot import Crossover, Forecast, Pilot, SetChoice
    from peekbench.spec.experiment import ExperimentSpec

RunnableArgument = Annotated[Path, typer.Argument(metavar="SPEC", help="Spec, or the name or store of a run.")]
MAX_ERROR = 500  # characters of the error of a pilot trial
GPU_MARGIN = 1.1  # of the measured memory, for trials with longer texts


@app.command()
def plan(
    spec: RunnableArgument,
    pilot: Annotated[bool, typer.Option(help="Measure a few trials of each method at each design point.")] = True,
    power: Annotated[bool, typer.Option("--power", help="Forecast how small a bias the design can detect.")] = False,
    workers: WorkersOption = None,
) -> None:
    """Estimate the work of a spec on this machine before a run: trials, fits, disk space, time and memory.

    Example: peekbench plan specs/quickstart.yaml --workers 4
    """
    from peekbench.data.preflight import describe_splits, describe_tasks  # noqa: PLC0415 - for a fast --help
    from peekbench.execution.planning import measure  # noqa: PLC0415 - for a fast --help

    experiment = load_any(spec, workers)
    tasks = describe_tasks(experiment)
    num_classes = {name: len(task["class_names"]) for name, task in tasks.items()}
    size = measure(experiment, {name: max(1, number) for name, number in num_classes.items()})
    at_most = "at most " if experiment.design.stop else ""
    echo(
        f"{experiment.name}: {at_most}{pluralize(size.trials, 'trial')}, {pluralize(size.fits, 'fit')}, "
        f"{size.bytes / 1e6:,.0f} MB of disk"
    )
    for line in describe_splits(experiment):
        echo(f"  {line}")
    measured = _run_pilot(experiment) if pilot else None
    if measured is not None and measured.usages:
        number = int(getattr(experiment.executor.options, "workers", None) or 1)
        for line in describe_forecast(measured.forecast(experiment, number), measured):
            echo(line)
        for line in describe_set_choice(experiment, measured):
            echo(line)
    if power:
        _forecast_power(experiment, num_classes, {} if measured is None else measured.seconds)
    if measured is not None and measured.failures:
        echo(
            "peekbench: correct the methods whose pilot failed; a run would stop them after their first trials",
            err=True,
        )
        raise typer.Exit(FAILED)


def _forecast_power(
    experiment: ExperimentSpec, num_classes: Mapping[str, int], seconds: Mapping[tuple[str, int, int], float]
) -> None:
    from peekbench.execution.planning import planned_design  # noqa: PLC0415 - for a fast --help
    from peekbench.report import render_tables  # noqa: PLC0415 - for a fast --help
    from peekbench.results.analyze import forecast  # noqa: PLC0415 - for a fast --help

    design = planned_design(experiment, num_classes, seconds)
    console = make_console()
    for analysis in forecast(design, experiment.analyses):
        for warning in analysis.warnings:
            warn(warning)
        render_tables(analysis.tables, console)


def _run_pilot(experiment: ExperimentSpec) -> Pilot:
    from peekbench.execution.pilot import run_pilot  # noqa: PLC0415 - for a fast --help
    from peekbench.progress.displays import make_progress  # noqa: PLC0415 - for a fast --help

    with make_progress(make_console(err=True)) as progress:
        pilot = run_pilot(experiment, progress)
    failed = {failure.trial.method: failure for failure in reversed(pilot.failures)}
    for failure in failed.values():
        error = shorten(" ".join(failure.error.split()), MAX_ERROR)
        echo(f"a pilot trial failed: {failure.trial}: {error}", err=True)
    seconds = pilot.seconds
    for key, usages in pilot.usages.items():
        method, num_train, num_test = key
        echo(
            f"  {method}, num_train {num_train}, num_test {num_test}: {seconds[key]:.3f} s per trial "
            f"({pluralize(len(usages), 'trial')})"
        )
    for method in failed:
        echo(f"  {method}: time unknown, because its pilot failed")
    return pilot


def describe_forecast(forecast: Forecast, pilot: Pilot) -> list[str]:
    """Return a forecast in words, with its basis."""
    from peekbench.execution.pilot import available_cores  # noqa: PLC0415 - for a fast --help
    from peekbench.progress.tally import duration  # noqa: PLC0415 - for a fast --help

    others = " of the other methods" if pilot.failures else ""
    workers, cores = pluralize(forecast.workers, "worker"), pluralize(available_cores(), "core")
    lines = [
        f"time{others}: about {duration(forecast.seconds)} on {cores}, {workers}",
        f"memory of the {workers}: about {forecast.memory / 1e9:.1f} GB",
    ]
    if pilot.gpu_memory:
        needed = math.ceil(GPU_MARGIN * pilot.gpu_memory / 1e8) / 10
        lines.append(
            f"memory of GPUs: about {pilot.gpu_memory / 1e9:.1f} GB per worker; the executor option "
            f"`gpu_memory: {needed:g}` lets as many workers share a GPU as fit"
        )
    lines.append(
        f"  measured on this machine: {pluralize(len(pilot.measured), 'pilot trial')} with one worker, "
        f"{pilot.start:.1f} s to start a worker"
    )
    return lines


def describe_set_choice(experiment: ExperimentSpec, pilot: Pilot) -> list[str]:
    """Return the times of other values of `design.crossover` for the same power, and a recommendation."""
    from peekbench.execution.pilot import (  # noqa: PLC0415 - for a fast --help
        compare,
        count_trials,
        relative_times,
    )

    choice = compare(experiment, pilot.times, count_trials(experiment))
    if choice is None:
        others = [arm.name for arm in experiment.arms if arm.name not in ("base", "extra", "test")]
        return [f"crossover: other numbers of sets are not compared, because of the arm {others[0]}"] if others else []
    if not choice.excluded and len(choice.relative) == 1:
        return []
    names = " / ".join(map(_name_choice, choice.relative))
    lines = [f"crossover {names}: relative time for the same power {_list_times(choice.relative)}"]
    if len(set(choice.best_by_method().values())) > 1:
        for method, costs in choice.costs.items():
            lines.append(f"  {method}: {_list_times(relative_times([costs], choice.current))}")
    if choice.excluded:
        excluded = (f"{_name_choice(value)} ({reason})" for value, reason in choice.excluded.items())
        lines.append(f"  not possible: {', '.join(excluded)}")
    return [*lines, f"  {_recommend_sets(experiment, choice)}"]


def _recommend_sets(experiment: ExperimentSpec, choice: SetChoice) -> str:
    from peekbench.execution.pilot import with_crossover  # noqa: PLC0415 - for a fast --help
    from peekbench.execution.runner import store_path  # noqa: PLC0415 - for a fast --help

    name = _name_choice(choice.best)
    if choice.best == choice.current:
        return f"recommended: keep {name}; no other choice saves more than 10% of the time"
    other = with_crossover(experiment, choice.best)
    numbers = [f"`design.num_subsamples: {_write_number(other.design.num_subsamples)}`"]
    numbers += [
        f"`num_subsamples: {task.num_subsamples}` of the task {task.name}"
        for task in other.tasks
        if task.num_subsamples is not None
    ]
    rows = f"{other.design.num_sets * max(other.design.num_test):,}"
    renamed = "; give the spec another `name`, because stored trials keep their number of sets"
    return (
        f"recommended: `design.crossover: {name}` with {', '.join(numbers)}, which takes about "
        f"{1 - choice.relative[choice.best]:.0%} less time; a draw then has {rows} rows besides the train rows"
        f"{renamed if store_path(experiment).exists() else ''}"
    )


def _list_times(relative: Mapping[Crossover, float]) -> str:
    return " / ".join(f"{time:.2f}" for time in relative.values())


def _name_choice(value: Crossover) -> str:
    return str(value) if value else "false"


def _write_number(number: Mapping[int, int] | int) -> str:
    if isinstance(number, int):
        return str(number)
    return f"{{{', '.join(f'{size}: {repeats}' for size, repeats in number.items())}}}"
