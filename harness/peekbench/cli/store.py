"""Commands that copy and check the store of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from peekbench.cli.app import RunArgument, app, fail, run_path
from peekbench.cli.output import echo


@app.command()
def backup(
    run: RunArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to create.")],
) -> None:
    """Copy the store of a run with all its trials into one file, also while the run is going on.

    Example: peekbench backup quickstart /mnt/backup/quickstart.sqlite
    """
    from peekbench.store.maintenance import back_up  # noqa: PLC0415 - for a fast --help

    back_up(run_path(run), file)
    echo(f"written: {file}")


@app.command("check-store")
def check(run: RunArgument) -> None:
    """Check the store of a run: the file, checksums, and the scores, computed again from the predictions.

    The exit status is 2 if anything is wrong.

    Example: peekbench check-store quickstart
    """
    from peekbench.formatting import pluralize  # noqa: PLC0415 - for a fast --help
    from peekbench.store.maintenance import check_store  # noqa: PLC0415 - for a fast --help

    path = run_path(run)
    outcome = check_store(path)
    for problem in outcome.problems:
        echo(f"{path}: {problem}", err=True)
    if outcome.problems:
        fail(f"{path}: the store is damaged; restore a copy, or move it away and run the spec again", 2)
    echo(f"{path}: OK: {pluralize(outcome.trials, 'trial')}, {pluralize(outcome.arms, 'arm')}")
