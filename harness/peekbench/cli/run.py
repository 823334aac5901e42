"""Commands that run an experiment, or prepare a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from peekbench.cli.app import (
    ChangedCodeOption,
    IncompleteOption,
    KeepGoingOption,
    ReportsOption,
    SpecArgument,
    StoreOption,
    WorkersOption,
    app,
    load,
    load_any,
)
from peekbench.cli.output import FAILED, echo, make_console, warn
from peekbench.cli.plugin_option import PluginOption
from peekbench.cli.reports import FullOption, JsonOption, Printer, QuietOption
from peekbench.errors import PeekbenchError
from peekbench.formatting import pluralize

if TYPE_CHECKING:
    from peekbench.execution.pilot import Timing
    from peekbench.spec.experiment import ExperimentSpec

RunnableArgument = Annotated[Path, typer.Argument(metavar="SPEC", help="Spec, or the name or store of a run.")]
MAX_ERROR = 500  # characters of the error of a pilot trial
SpecsArgument = Annotated[list[Path], typer.Argument(metavar="SPEC...", help="YAML specs.")]


@app.command()
def run(
    specs: Annotated[list[Path], typer.Argument(metavar="SPEC...", help="YAML specs, run one after the other.")],
    store: StoreOption = None,
    reports: ReportsOption = Path("reports"),
    workers: WorkersOption = None,
    allow_incomplete: IncompleteOption = False,
    keep_going: KeepGoingOption = False,
    allow_changed_code: ChangedCodeOption = False,
    full: FullOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    plugin: PluginOption = None,
) -> None:
    """Run specs, or resume their runs, and write the reports.

    Example: peekbench run specs/quickstart.yaml --workers 2
    """
    from peekbench.cli.run_specs import RunOptions, run_specs  # noqa: PLC0415 - for a fast --help

    printer = Printer.choose(full=full, quiet=quiet, as_json=as_json)
    run_specs(specs, RunOptions(reports, store, workers, allow_incomplete, keep_going, allow_changed_code, printer))


@app.command()
def plan(
    spec: RunnableArgument,
    pilot: Annotated[bool, typer.Option(help="Time one trial of each method at each design point.")] = True,
    power: Annotated[bool, typer.Option("--power", help="Forecast how small a bias the design can detect.")] = False,
    workers: WorkersOption = None,
    plugin: PluginOption = None,
) -> None:
    """Estimate the work of a spec before a run: trials, fits, disk space and time.

    Example: peekbench plan specs/quickstart.yaml --power
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
    timing = _time_pilot(experiment) if pilot else None
    if power:
        _forecast(experiment, num_classes, timing)
    if timing is not None and timing.failures:
        raise typer.Exit(FAILED)


def _forecast(experiment: ExperimentSpec, num_classes: Mapping[str, int], timing: Timing | None) -> None:
    from peekbench.execution.planning import planned_design  # noqa: PLC0415 - for a fast --help
    from peekbench.report import render_tables  # noqa: PLC0415 - for a fast --help
    from peekbench.results.analyze import forecast  # noqa: PLC0415 - for a fast --help

    design = planned_design(experiment, num_classes, {} if timing is None else timing.seconds)
    console = make_console()
    for analysis in forecast(design, experiment.analyses):
        for warning in analysis.warnings:
            warn(warning)
        render_tables(analysis.tables, console)


def _time_pilot(experiment: ExperimentSpec) -> Timing:
    from peekbench.execution.pilot import time_pilot  # noqa: PLC0415 - for a fast --help
    from peekbench.formatting import pluralize, shorten  # noqa: PLC0415 - for a fast --help
    from peekbench.progress.displays import make_progress  # noqa: PLC0415 - for a fast --help
    from peekbench.progress.tally import duration  # noqa: PLC0415 - for a fast --help

    with make_progress(make_console(err=True)) as progress:
        timing = time_pilot(experiment, progress)
    failed = {failure.trial.method: failure for failure in reversed(timing.failures)}
    for failure in failed.values():
        error = shorten(" ".join(failure.error.split()), MAX_ERROR)
        echo(f"a pilot trial failed: {failure.trial}: {error}", err=True)
    for (method, num_train, num_test), seconds in timing.seconds.items():
        echo(f"  {method}, num_train {num_train}, num_test {num_test}: {seconds:.3f} s per trial")
    for method in failed:
        echo(f"  {method}: time unknown, because its pilot failed")
    if timing.seconds:
        workers = int(getattr(experiment.executor.options, "workers", None) or 1)
        echo(
            f"time{' of the other methods' if failed else ''}: about {duration(timing.total / workers)} with "
            f"{pluralize(workers, 'worker')}, estimated from one trial of each method at each design point"
        )
    if failed:
        echo(
            "peekbench: correct the methods whose pilot failed; a run would stop them after their first trials",
            err=True,
        )
    return timing


@app.command()
def validate(
    specs: SpecsArgument,
    data: Annotated[bool, typer.Option(help="Load the tasks' data and check the number of rows.")] = True,
    plugin: PluginOption = None,
) -> None:
    """Check specs: options, plugins, models on this machine, and whether the data suffice for the design.

    Example: peekbench validate specs/*.yaml
    """
    num_invalid = 0
    for path in specs:
        try:
            lines, warnings = _validate(path, data)
            for line in lines:
                echo(line)
            for warning in warnings:
                warn(f"{path}: {warning}")
        except PeekbenchError as error:
            place = "" if str(path) in str(error) else f"{path}: "
            echo(f"peekbench: {place}{error}", err=True)
            num_invalid += 1
    if num_invalid:
        raise typer.Exit(2)


def _validate(path: Path, data: bool) -> tuple[list[str], list[str]]:
    """Check one spec. Return a summary of it with a line on each task with official splits, and warnings."""
    from peekbench.data.data_warnings import expected_overlaps, warn_of_data  # noqa: PLC0415 - for a fast --help
    from peekbench.data.preflight import describe_splits, describe_tasks  # noqa: PLC0415 - for a fast --help
    from peekbench.execution.prefetch import check_files  # noqa: PLC0415 - for a fast --help
    from peekbench.spec.analysis_only import is_analysis_only, load_analysis_only  # noqa: PLC0415 - for a fast --help

    if path.is_file() and is_analysis_only(path):  # a pipe can be read only once
        names = [analysis.use for analysis in load_analysis_only(path).analyses]
        analyses = pluralize(len(names), "analysis", "analyses")
        return [f"{path}: OK: {analyses} of existing scores: {', '.join(names)}"], []
    experiment = load(path)
    check_files(experiment)
    splits, warnings = [], []
    if data:
        facts = describe_tasks(experiment)
        splits = [f"  {line}" for line in describe_splits(experiment)]
        warnings = list(warn_of_data(experiment, facts, expected_overlaps(experiment)))
    designs = [experiment.design_of(task) for task in experiment.tasks]
    draws = sum(design.repeats(num_test) for design in designs for _, num_test in design.points())
    trials = draws * len(experiment.methods)
    tasks, methods = pluralize(len(experiment.tasks), "task"), pluralize(len(experiment.methods), "method")
    return [f"{path}: OK: {tasks}, {methods}, {pluralize(trials, 'trial')}", *splits], warnings


@app.command()
def prefetch(specs: SpecsArgument, plugin: PluginOption = None) -> None:
    """Download all data and models of specs, so that runs need no network.

    Example: peekbench prefetch specs/quickstart.yaml && HF_HUB_OFFLINE=1 peekbench run specs/quickstart.yaml
    """
    from peekbench.execution.prefetch import prefetch as fetch  # noqa: PLC0415 - for a fast --help

    for path in specs:
        for line in fetch(load(path)):
            echo(line)


@app.command()
def lock(
    spec: SpecArgument,
    newest: Annotated[
        bool, typer.Option("--newest", help="Look for the newest versions, instead of those in use here.")
    ] = False,
    plugin: PluginOption = None,
) -> None:
    """Write the lock file of SPEC, with the revisions of its data and models, for equal numbers elsewhere.

    Example: peekbench lock specs/hub.yaml
    """
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - for a fast --help

    from peekbench.cli.inputs import find_spec  # noqa: PLC0415 - for a fast --help
    from peekbench.records.data import Folders  # noqa: PLC0415 - for a fast --help
    from peekbench.spec.experiment import load_spec  # noqa: PLC0415 - for a fast --help
    from peekbench.spec.lockfile import lock_path, make_lock, write_lock  # noqa: PLC0415 - for a fast --help

    experiment = load_spec(find_spec(spec), locked=False)
    with TemporaryDirectory() as empty:
        folders = Folders(spec=experiment.folder, cache=Path(empty)) if newest else experiment.folders()
        content = make_lock(experiment.pinnable(), folders)
    if not content:
        echo(f"{spec}: nothing to lock: no task, method or audit loads anything that can change")
        return
    write_lock(content, lock_path(spec))
    for group in content.values():
        for name, entry in group.items():
            echo(f"{name}: " + ", ".join(f"{option} {value}" for option, value in entry["pinned"].items()))
    echo(f"written: {lock_path(spec)}")
