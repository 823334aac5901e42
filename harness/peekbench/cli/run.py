"""Commands that do an experiment's work, or prepare it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from peekbench.cli.app import (
    FAILED,
    INTERRUPTED,
    IncompleteOption,
    ReportsOption,
    SpecArgument,
    StoreOption,
    WorkersOption,
    app,
    fail,
    load,
    make_console,
    report_on,
)
from peekbench.errors import PeekbenchError

if TYPE_CHECKING:
    from peekbench.execution.pilot import Timing
    from peekbench.spec.experiment import ExperimentSpec


@app.command()
def run(
    spec: SpecArgument,
    store: StoreOption = None,
    reports: ReportsOption = Path("reports"),
    workers: WorkersOption = None,
    allow_incomplete: IncompleteOption = False,
) -> None:
    """Run a spec, or what of it is not done yet, and report.

    Example: peekbench run specs/quickstart.yaml --workers 2
    """
    from peekbench.cli.progress import make_progress
    from peekbench.execution.runner import run as execute
    from peekbench.execution.runner import store_path
    from peekbench.formatting import pluralize

    console = make_console()
    experiment = load(spec, workers)
    path = store or store_path(experiment)
    try:
        with make_progress(console) as progress:
            summary = execute(experiment, store=path, progress=progress)
    except KeyboardInterrupt:
        again = f"peekbench run {spec}" + (f" --store {store}" if store else "")
        fail(f"interrupted; what is done is in {path}. To go on: {again}", INTERRUPTED)
    if not summary.finished and not summary.failed:
        console.print(f"nothing to do: all {summary.planned:,} trials are in {path}", highlight=False, markup=False)
    for plugin in summary.changed_code:
        typer.echo(
            f"caution: the code of the plugin {plugin} has changed since trials in {path} were made, and what is "
            "stored is not made again; to measure the new code, give the spec another name or move the store away",
            err=True,
        )
    report_on(path, reports, console, allow_incomplete or experiment.report.allow_incomplete or summary.failed > 0)
    if summary.failed:
        fail(
            f"{pluralize(summary.failed, 'trial')} failed; the report says which, {path} has every traceback. "
            "Run the spec again to try them once more",
            FAILED,
        )


@app.command()
def plan(
    spec: SpecArgument,
    pilot: Annotated[bool, typer.Option(help="Time one trial of each method at each design point.")] = True,
    power: Annotated[bool, typer.Option("--power", help="Also forecast how small a bias the design detects.")] = False,
    workers: WorkersOption = None,
) -> None:
    """Say how much work a spec is, before doing it: trials, fits, time, disk; with --power also what it can show.

    Example: peekbench plan specs/quickstart.yaml --power
    """
    from peekbench.data.preflight import describe_tasks
    from peekbench.execution.planning import measure
    from peekbench.formatting import pluralize

    experiment = load(spec, workers)
    tasks = describe_tasks(experiment)
    num_classes = {name: len(task["class_names"]) for name, task in tasks.items()}
    size = measure(experiment, {name: max(1, number) for name, number in num_classes.items()})
    typer.echo(
        f"{experiment.name}: {pluralize(size.trials, 'trial')}, {pluralize(size.fits, 'fit')}, "
        f"{size.bytes / 1e6:,.0f} MB of disk"
    )
    timing = _time_pilot(experiment) if pilot else None
    if power:
        _forecast(experiment, num_classes, timing)
    if timing is not None and timing.failures:
        raise typer.Exit(FAILED)


def _forecast(experiment: ExperimentSpec, num_classes: Mapping[str, int], timing: Timing | None) -> None:
    from peekbench.execution.planning import planned_design
    from peekbench.report import render_tables
    from peekbench.results.analyze import forecast

    design = planned_design(experiment, num_classes, {} if timing is None else timing.seconds)
    console = make_console()
    for analysis in forecast(design, experiment.analyses):
        for warning in analysis.warnings:
            typer.echo(f"caution: {warning}", err=True)
        render_tables(analysis.tables, console)


def _time_pilot(experiment: ExperimentSpec) -> Timing:
    from peekbench.cli.progress import duration
    from peekbench.execution.pilot import time_pilot
    from peekbench.formatting import pluralize

    timing = time_pilot(experiment)
    for failure in timing.failures:
        typer.echo(f"a pilot trial failed: {failure.trial}: {failure.error}", err=True)
    for (method, num_train, num_test), seconds in timing.seconds.items():
        typer.echo(f"  {method}, num_train {num_train}, num_test {num_test}: {seconds:.3f} s a trial")
    workers = int(getattr(experiment.executor.options, "workers", 1))
    typer.echo(
        f"time: about {duration(timing.total / workers)} with {pluralize(workers, 'worker')}, "
        "from one timed trial of each method at each design point"
    )
    return timing


@app.command()
def validate(
    specs: Annotated[list[Path], typer.Argument(metavar="SPEC...", help="YAML files.")],
    data: Annotated[bool, typer.Option(help="Load the tasks' data and check that there are enough rows.")] = True,
) -> None:
    """Check specs: settings, plugins, options, and that the data suffice for the design.

    Example: peekbench validate specs/*.yaml
    """
    from peekbench.data.preflight import check_tasks
    from peekbench.formatting import pluralize
    from peekbench.spec.analysis_only import is_analysis_only, load_analysis_only

    bad = 0
    for path in specs:
        try:
            if is_analysis_only(path):
                named = [analysis.use for analysis in load_analysis_only(path).analyses]
                analyses = pluralize(len(named), "analysis", "analyses")
                typer.echo(f"{path}: good, {analyses} of scores that are there already: {', '.join(named)}")
                continue
            experiment = load(path)
            if data:
                check_tasks(experiment)
        except PeekbenchError as error:
            place = "" if str(path) in str(error) else f"{path}: "
            typer.echo(f"peekbench: {place}{error}", err=True)
            bad += 1
            continue
        designs = [experiment.design_of(task) for task in experiment.tasks]
        draws = sum(design.repeats(num_test) for design in designs for _, num_test in design.points())
        trials = draws * len(experiment.methods)
        tasks, methods = pluralize(len(experiment.tasks), "task"), pluralize(len(experiment.methods), "method")
        typer.echo(f"{path}: good, {tasks}, {methods}, {pluralize(trials, 'trial')}")
    if bad:
        raise typer.Exit(2)


@app.command()
def prefetch(
    specs: Annotated[list[Path], typer.Argument(metavar="SPEC...", help="YAML files.")],
) -> None:
    """Download all data and models of specs, so that they run without a network.

    Example: peekbench prefetch specs/quickstart.yaml && HF_HUB_OFFLINE=1 peekbench run specs/quickstart.yaml
    """
    from peekbench.execution.prefetch import prefetch as fetch

    for path in specs:
        for line in fetch(load(path)):
            typer.echo(line)


@app.command()
def lock(
    spec: SpecArgument,
    newest: Annotated[
        bool, typer.Option("--newest", help="Look for the newest versions, instead of those in use here.")
    ] = False,
) -> None:
    """Write SPEC's lock file: the revisions that its data and models have, for the same numbers elsewhere.

    Example: peekbench lock specs/hub.yaml
    """
    from tempfile import TemporaryDirectory

    from peekbench.records.data import Folders
    from peekbench.spec.experiment import load_spec
    from peekbench.spec.lockfile import lock_path, make_lock, write_lock

    experiment = load_spec(spec, locked=False)
    with TemporaryDirectory() as empty:
        folders = Folders(spec=experiment.folder, cache=Path(empty)) if newest else experiment.folders()
        content = make_lock(experiment, folders)
    if not content:
        typer.echo(f"{spec}: nothing to lock: no task or method loads what changes by itself")
        return
    write_lock(content, lock_path(spec))
    for group in content.values():
        for name, entry in group.items():
            typer.echo(f"{name}: " + ", ".join(f"{option} {value}" for option, value in entry["pinned"].items()))
    typer.echo(f"written: {lock_path(spec)}")
