"""Commands that run an experiment, or prepare a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
)
from peekbench.cli.gate import FailOnOption, Gate
from peekbench.cli.output import echo, warn
from peekbench.cli.reports import FullOption, JsonOption, Printer, QuietOption
from peekbench.errors import PeekbenchError
from peekbench.formatting import pluralize

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
    fail_on: FailOnOption = None,
    full: FullOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run specs, or resume their runs, and write the reports.

    Example: peekbench run specs/quickstart.yaml --workers 2
    """
    from peekbench.cli.run_specs import RunOptions, run_specs  # noqa: PLC0415 - for a fast --help

    gate = Gate.parse(fail_on)
    printer = Printer.choose(full=full, quiet=quiet, as_json=as_json)
    options = RunOptions(reports, store, workers, allow_incomplete, keep_going, allow_changed_code, printer, gate)
    run_specs(specs, options)


@app.command()
def validate(
    specs: SpecsArgument,
    data: Annotated[bool, typer.Option(help="Load the tasks' data and check the number of rows.")] = True,
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
    from peekbench.execution.planning import measure  # noqa: PLC0415 - for a fast --help
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
    size = measure(experiment, dict.fromkeys((task.name for task in experiment.tasks), 1))
    work = f"{pluralize(size.trials, 'trial')}, {pluralize(size.fits, 'fit')}"
    tasks, methods = pluralize(len(experiment.tasks), "task"), pluralize(len(experiment.methods), "method")
    return [f"{path}: OK: {tasks}, {methods}, {work}", *splits], warnings


@app.command()
def prefetch(specs: SpecsArgument) -> None:
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
