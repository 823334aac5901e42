"""Commands that copy and check the store of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from peekbench.api.inputs import find_run
from peekbench.cli.options import RunArgument
from peekbench.cli.output import echo, fail
from peekbench.formatting import pluralize
from peekbench.store.maintenance import back_up
from peekbench.store.maintenance import check_store as verify


def backup(
    run: RunArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to create.")],
) -> None:
    """Copy the store of a run with all its trials into one file, also while the run is going on.

    Example: peekbench backup quickstart /mnt/backup/quickstart.sqlite
    """
    store, _ = find_run(run)
    back_up(store, file)
    echo(f"written: {file}")


def check_store(run: RunArgument) -> None:
    """Check the store of a run: the file, checksums, and the scores, computed again from the predictions.

    The exit status is 2 if anything is wrong.

    Example: peekbench check-store quickstart
    """
    path, _ = find_run(run)
    outcome = verify(path)
    for problem in outcome.problems:
        echo(f"{path}: {problem}", err=True)
    if outcome.problems:
        fail(f"{path}: the store is damaged; restore a copy, or move it away and run the spec again", 2)
    echo(f"{path}: OK: {pluralize(outcome.trials, 'trial')}, {pluralize(outcome.arms, 'arm')}")
