"""The command that estimates the work of a run before it starts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from peekbench.cli.app import WorkersOption, app, load_any
from peekbench.cli.output import FAILED, echo, make_console, warn
from peekbench.formatting import duration, pluralize, shorten

if TYPE_CHECKING:
    from peekbench.execution.pilot import Forecast, Pilot
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
