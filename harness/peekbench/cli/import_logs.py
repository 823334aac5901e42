"""Command that imports the logs of other tools."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated, Optional

import typer

from peekbench.cli.app import app
from peekbench.cli.output import echo
from peekbench.errors import PeekbenchError
from peekbench.formatting import pluralize


@app.command("import")
def import_(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="Tool that wrote the logs: lm-eval or inspect.")],
    arms: Annotated[
        list[str],
        typer.Option(
            "--arm",
            metavar="ARM=LOG",
            help="Log of an arm: extra=PATH; repeatable. Several logs of an arm, such as one for each training seed, "
            "are paired with those of the other arms in the order in which they are given.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="CSV file to write.")],
    metric: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer evaluates the annotation
        typer.Option(
            help="Metric or scorer to import; repeatable, for tasks with others. Default: each task's only one."
        ),
    ] = None,
    task: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer evaluates the annotation
        typer.Option(help="Task to import; repeatable. Default: all tasks of the logs."),
    ] = None,
    method: Annotated[str, typer.Option(help="Label of the method.")] = "method",
) -> None:
    """Make a table of scores from the logs of other tools, with one row for each text, arm and log.

    Example: peekbench import lm-eval --arm extra=logs/extra --arm test=logs/test -o scores.csv
    """
    from peekbench.cache import atomic_write  # noqa: PLC0415 - for a fast --help
    from peekbench.results.logs import import_logs  # noqa: PLC0415 - for a fast --help

    logs = []
    for argument in arms:
        arm, separator, path = argument.partition("=")
        if not separator:
            raise PeekbenchError(f"--arm {argument}: there is no '='; write --arm extra=PATH")
        if not Path(path).exists():
            raise PeekbenchError(f"--arm {argument}: no such file or folder")
        logs.append((arm, Path(path)))
    table = import_logs(tool, logs, metrics=metric or (), tasks=task or (), method=method)
    try:
        with atomic_write(output) as temporary:
            table.to_csv(temporary, index=False, lineterminator="\n", encoding="utf-8")
    except OSError as error:
        raise PeekbenchError(f"cannot write {output}: {error.strerror or error}; choose another file") from error
    tasks, texts = pluralize(table["task"].nunique(), "task"), len(table[["task", "text"]].drop_duplicates())
    echo(f"written: {output} ({tasks}, {pluralize(texts, 'text')}, arms {', '.join(table['arm'].unique())})")
    if "subsample" in table:
        echo(f"Each arm has {table['subsample'].nunique()} logs; they are paired in the order in which they are given.")
    echo(f"To analyze it: peekbench analyze {quote(str(output))}")
