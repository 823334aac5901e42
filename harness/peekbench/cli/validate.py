"""The command that checks specs, and fixes the versions of their data and models."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from peekbench.api.inputs import find_spec, load
from peekbench.cli.output import echo, fail, make_console, warn
from peekbench.data.loading import with_sizes
from peekbench.data.preflight import describe_rows, describe_tasks, warn_of_data
from peekbench.errors import PeekbenchError
from peekbench.execution.planning import estimate_size
from peekbench.execution.preparation import check_files, download_all
from peekbench.formatting import pluralize
from peekbench.records.data import Folders
from peekbench.spec.experiment import DEFAULT_ANALYSES, ExperimentSpec, load_spec
from peekbench.spec.lockfile import lock_path, make_lock, write_lock

UNREAD = {"train": 1000, "test": 1000}
"""Rows of official splits that are not read."""


def validate(
    specs: Annotated[list[Path], typer.Argument(metavar="SPEC...", help="YAML specs.")],
    data: Annotated[bool, typer.Option(help="Load the tasks' data and check the number of rows.")] = True,
    download: Annotated[
        bool, typer.Option("--download", help="Download all data and models, so that runs need no network.")
    ] = False,
    texts: Annotated[
        bool,
        typer.Option(
            "--texts",
            help="Describe the texts as the design draws them: lengths, tokens, duplicates between train, extra and "
            "test.",
        ),
    ] = False,
    lock: Annotated[
        bool,
        typer.Option(
            "--lock",
            help="Write the revisions of data and models to a lock file beside the spec, for equal results elsewhere.",
        ),
    ] = False,
    newest: Annotated[
        bool, typer.Option("--newest", help="With --lock: the newest versions, instead of those in use here.")
    ] = False,
) -> None:
    """Check specs: options, libraries, models on this machine, and whether the data suffice for the design.

    Example: peekbench validate specs/*.yaml
    """
    if newest and not lock:
        fail("--newest chooses the versions that --lock writes; add --lock", 2)
    num_invalid = 0
    for path in specs:
        try:
            if lock:
                _lock(path, newest=newest)
            for warning in _validate(path, with_data=data, download=download):
                warn(f"{path}: {warning}")
            if texts:
                _describe_texts(with_sizes(load(path)))
        except PeekbenchError as error:
            place = "" if str(path) in str(error) else f"{path}: "
            echo(f"peekbench: {place}{error}", err=True)
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
    rows, warnings = [], []
    if with_data:
        experiment = with_sizes(experiment)
        facts = describe_tasks(experiment)
        if any(
            analysis.use not in DEFAULT_ANALYSES or analysis.options.model_fields_set
            for analysis in experiment.analyses
        ):
            from peekbench.results.analyze import check_analyses  # noqa: PLC0415 - others validate without pandas

            check_analyses(experiment, facts)
        rows = [f"  {line}" for line in describe_rows(experiment)]
        warnings = list(warn_of_data(experiment, facts))
    else:  # numbers of trials and fits do not depend on the rows of official splits
        experiment = experiment.with_sizes({task.name: UNREAD for task in experiment.tasks})
    size = estimate_size(experiment, dict.fromkeys((task.name for task in experiment.tasks), 1))
    work = f"{pluralize(size.trials, 'trial')}, {pluralize(size.fits, 'fit')}"
    tasks, methods = pluralize(len(experiment.tasks), "task"), pluralize(len(experiment.methods), "method")
    for line in [f"{path}: OK: {tasks}, {methods}, {work}", *rows]:
        echo(line)
    return warnings


def _describe_texts(experiment: ExperimentSpec) -> None:
    from peekbench.data.texts import describe_texts  # noqa: PLC0415 - others validate without numpy
    from peekbench.report import copy_tables, render_tables, text_tables  # noqa: PLC0415 - others validate without numpy

    facts = describe_tasks(experiment)
    tables = text_tables({task.name: describe_texts(experiment, task) for task in experiment.tasks})
    render_tables([*tables, *copy_tables(facts)], make_console())


def _lock(path: Path, *, newest: bool) -> None:
    """Write the lock file of a spec."""
    experiment = load_spec(find_spec(path), locked=False)
    with TemporaryDirectory() as empty:
        folders = Folders(spec=experiment.folder, cache=Path(empty)) if newest else experiment.folders()
        content = make_lock(experiment.pinnable(), folders)
    if not content:
        echo(f"{path}: nothing to lock: no task or method loads a revision from the Hub")
        return
    write_lock(content, lock_path(path))
    for group in content.values():
        for name, entry in group.items():
            echo(f"{name}: " + ", ".join(f"{option} {value}" for option, value in entry.pinned.items()))
    echo(f"written: {lock_path(path)}")
