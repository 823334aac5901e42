"""The command that estimates the work of a run before it starts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from peekbench.cli.app import WorkersOption, app, load_any
from peekbench.cli.output import FAILED, echo, make_console, warn
from peekbench.cli.plugin_option import PluginOption
from peekbench.formatting import pluralize, shorten

if TYPE_CHECKING:
    from peekbench.execution.forecast import Forecast
    from peekbench.execution.pilot import Pilot
    from peekbench.spec.experiment import ExperimentSpec

RunnableArgument = Annotated[Path, typer.Argument(metavar="SPEC", help="Spec, or the name or store of a run.")]
MAX_ERROR = 500  # characters of the error of a pilot trial
GPU_MARGIN = 1.1  # of the measured memory, for trials with longer texts
BUSY = 0.1  # share of the pilot's time without a core from which the forecast mentions it


@app.command()
def plan(
    spec: RunnableArgument,
    pilot: Annotated[bool, typer.Option(help="Measure a few trials of each method at each design point.")] = True,
    power: Annotated[bool, typer.Option("--power", help="Forecast how small a bias the design can detect.")] = False,
    on: Annotated[
        str, typer.Option("--on", metavar="HARDWARE", help="Hardware of the run, such as 64-cores or h200.")
    ] = "this-machine",
    price_per_hour: Annotated[
        float | None, typer.Option("--price-per-hour", min=0, help="Price of the hardware, for the cost of the run.")
    ] = None,
    workers: WorkersOption = None,
    plugin: PluginOption = None,
) -> None:
    """Estimate the work of a spec before a run: trials, fits, disk space, time, memory and cost.

    Example: peekbench plan specs/quickstart.yaml --on 64-cores --price-per-hour 2.50
    """
    from peekbench.data.preflight import describe_splits, describe_tasks  # noqa: PLC0415 - for a fast --help
    from peekbench.execution.hardware import HERE, find_hardware  # noqa: PLC0415 - for a fast --help
    from peekbench.execution.planning import measure  # noqa: PLC0415 - for a fast --help

    hardware = find_hardware(on)
    if not pilot and (hardware.name != HERE or price_per_hour is not None):
        raise typer.BadParameter("--on and --price-per-hour need the pilot; leave out --no-pilot")
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
    measured = _run_pilot(experiment, counts_operations=bool(hardware.peak)) if pilot else None
    if measured is not None and measured.usages:
        from peekbench.execution.forecast import (  # noqa: PLC0415 - for a fast --help
            MainProcess,
            default_workers,
            forecast_run,
        )

        number = default_workers(experiment, hardware, workers)
        forecast = forecast_run(experiment, measured, hardware, number, MainProcess.rehearse(experiment))
        for line in describe_forecast(forecast, measured, price_per_hour):
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


def _run_pilot(experiment: ExperimentSpec, *, counts_operations: bool) -> Pilot:
    from peekbench.execution.pilot import run_pilot  # noqa: PLC0415 - for a fast --help
    from peekbench.progress.displays import make_progress  # noqa: PLC0415 - for a fast --help

    with make_progress(make_console(err=True)) as progress:
        pilot = run_pilot(experiment, progress, counts_operations=counts_operations)
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


def describe_forecast(forecast: Forecast, pilot: Pilot, price_per_hour: float | None) -> list[str]:
    """Return a forecast in words: the estimates, their basis, and what is assumed."""
    hardware = forecast.hardware
    num_cores = pluralize(hardware.cores, "core")
    place = hardware.name if hardware.peak else f"{num_cores}, {pluralize(forecast.workers, 'worker')}"
    others = " of the other methods" if pilot.failures else ""
    lines = [f"time{others}: about {_describe_range(forecast.seconds)} on {place}"]
    if forecast.processor:
        lines.append(f"processor time: about {_duration(forecast.processor)}")
        lines.append(f"memory: about {forecast.memory / 1e9:.1f} GB")
    if pilot.gpu_memory:
        needed = math.ceil(GPU_MARGIN * pilot.gpu_memory / 1e8) / 10
        lines.append(
            f"memory of GPUs: about {pilot.gpu_memory / 1e9:.1f} GB per worker; the executor option "
            f"`gpu_memory: {needed:g}` lets as many workers share a GPU as fit"
        )
    if price_per_hour is not None:
        low, middle, high = forecast.price(price_per_hour)
        spread = f" ({low:,.2f} to {high:,.2f})" if low < high else ""
        lines.append(f"cost: about {middle:,.2f}{spread} at {price_per_hour:g} per hour")
    return [*lines, *(f"  {line}" for line in _describe_basis(forecast, pilot))]


def _describe_basis(forecast: Forecast, pilot: Pilot) -> list[str]:
    from peekbench.execution.forecast import REPORT_SECONDS, STORE_SECONDS  # noqa: PLC0415 - for a fast --help
    from peekbench.execution.hardware import CORE_SHARES, SHARES, available_cores  # noqa: PLC0415 - for a fast --help

    hardware = forecast.hardware
    lines = [
        f"measured on this machine: {pluralize(pilot.num_trials, 'pilot trial')} with one worker, "
        f"{pilot.start:.1f} s to start a worker",
        f"assumed, measured elsewhere: {1000 * STORE_SECONDS:.1f} ms per trial to store it, {REPORT_SECONDS:g} s for "
        "the analyses and the report",
    ]
    if pilot.busy > BUSY:
        lines.append(
            f"other programs kept this machine busy: pilot trials waited {pilot.busy:.0%} of their time for a core, "
            "which the forecast leaves out"
        )
    if forecast.operations:
        low, middle, high = SHARES
        lines += [
            f"counted on this machine, in the first trial of each method: {forecast.operations:.2e} operations of "
            "matrix products in all trials",
            f"published: {hardware.peak / 1e12:,.0f} Tflop/s in bf16 without sparsity ({hardware.source})",
            f"assumed, not measured: {middle:.0%} of the peak ({low:.0%} to {high:.0%}), reached by enough fits at a "
            f"time in {hardware.memory / 1e9:.0f} GB",
        ]
    if forecast.uncounted:
        names = ", ".join(forecast.uncounted)
        lines.append(f"not counted, so with the time of one core of this machine: {names}")
    if hardware.cores > available_cores():
        low, middle, high = CORE_SHARES
        lines.append(
            f"assumed, not measured: {middle:.0%} of the speed of a core of this machine ({low:.0%} to {high:.0%}), "
            "because many fits share the memory's bandwidth"
        )
    elif forecast.workers > hardware.cores:
        lines.append(f"{forecast.workers} workers share {pluralize(hardware.cores, 'core')}")
    return lines


def _describe_range(seconds: Sequence[float]) -> str:
    low, middle, high = seconds
    return _duration(middle) + (f" ({_duration(low)} to {_duration(high)})" if low < high else "")


def _duration(seconds: float) -> str:
    from peekbench.progress.tally import duration  # noqa: PLC0415 - for a fast --help

    return duration(seconds)
