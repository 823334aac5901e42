"""The command that checks specs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from peekbench.api.inputs import load
from peekbench.cli.output import describe_error, echo, warn
from peekbench.data.loading import with_sizes
from peekbench.data.preflight import describe_tasks, warn_of_data
from peekbench.errors import PeekbenchError
from peekbench.execution.fit_plans import count_work
from peekbench.execution.hosts import check_files, download_all
from peekbench.formatting import pluralize
from peekbench.spec.experiment import DEFAULT_ANALYSES
from peekbench.store.files import RUNS

UNREAD = {"train": 1000, "test": 1000}
"""Rows of official splits that are not read."""


def validate(
    specs: Annotated[list[Path], typer.Argument(metavar="SPEC...", help="YAML specs.")],
    data: Annotated[bool, typer.Option(help="Load the tasks' data and check the number of rows.")] = True,
    download: Annotated[
        bool, typer.Option("--download", help="Download all data and models, so that runs need no network.")
    ] = False,
) -> None:
    """Check specs: options, libraries, models on this machine, and whether the data suffice for the design.

    Example: peekbench validate specs/*.yaml
    """
    num_invalid = 0
    for path in specs:
        try:
            for warning in _validate(path, with_data=data, download=download):
                warn(f"{path}: {warning}")
        except PeekbenchError as error:
            place = "" if str(path) in str(error) else f"{path}: "
            echo(describe_error(error, ["run", str(path)], place), err=True)
            num_invalid += 1
    if num_invalid:
        raise typer.Exit(2)


def _validate(path: Path, *, with_data: bool, download: bool) -> list[str]:
    """Check one spec, print a summary of it with lines on tasks, and return warnings."""
    experiment = load(path)
    if download:
        for line in download_all(experiment):
            echo(line)
    check_files(experiment)
    warnings: list[str] = []
    if with_data:
        store = RUNS / f"{experiment.name}.sqlite"
        if store.is_file():
            from peekbench.execution.resuming import StoredRun  # noqa: PLC0415 - it needs numpy

            stored = StoredRun.read(store)
            resumed = stored.keep_looks(with_sizes(stored.pin(experiment)))
            stored.refuse_changes(resumed, describe_tasks(resumed))
        experiment = with_sizes(experiment)
        facts = describe_tasks(experiment)
        if any(
            analysis.use not in DEFAULT_ANALYSES or analysis.options.model_fields_set
            for analysis in experiment.analyses
        ):
            from peekbench.results.analyze import check_analyses  # noqa: PLC0415 - others validate without pandas

            check_analyses(experiment)
        warnings += warn_of_data(experiment, facts)
    else:  # numbers of trials and fits do not depend on the rows of official splits
        experiment = experiment.with_sizes({task.name: UNREAD for task in experiment.tasks})
    size = count_work(experiment)
    work = f"{pluralize(size.trials, 'trial')}, {pluralize(size.fits, 'fit')}"
    tasks, methods = pluralize(len(experiment.tasks), "task"), pluralize(len(experiment.methods), "method")
    echo(f"{path}: OK: {tasks}, {methods}, {work}")
    return warnings
