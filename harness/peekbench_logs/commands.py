"""The command `import`."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated

import typer

from peekbench.cache import atomic_write
from peekbench.cli.analyze import FilesOption, Printer, analyze
from peekbench.cli.output import TableFlags, note, take_records
from peekbench.errors import PeekbenchError
from peekbench.formatting import pluralize
from peekbench_logs.tables import import_logs


@take_records
def import_scores(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="Tool that wrote the logs: lm-eval or inspect.")],
    printer: Printer,
    arms: Annotated[
        list[str],
        typer.Option(
            "--arm",
            metavar="ARM=LOG",
            help="Log of an arm: extra=PATH; repeatable. Several logs of an arm are paired in their order.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="CSV file to write.")],
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC", help="Metric or scorer; repeatable. Default: each task's only one."),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(metavar="TASK", help="Task to import; repeatable. Default: all."),
    ] = None,
    method: Annotated[str, typer.Option(help="Label of the method.")] = "method",
    region: Annotated[
        float | None,
        typer.Option(metavar="WIDTH", min=0, help="Largest bias that is negligible; losses need one."),
    ] = None,
    reports: FilesOption = None,
) -> None:
    """Make a table of scores from the logs of other tools, with one row for each text, arm and log, and analyze it.

    Example: peekbench import lm-eval --arm extra=logs/extra --arm test=logs/test -o scores.csv
    """
    printer.start()
    logs = []
    for argument in arms:
        arm, separator, path = argument.partition("=")
        if not separator:
            raise PeekbenchError(f"--arm {argument}: there is no '='; write --arm extra=PATH")
        if not Path(path).exists():
            raise PeekbenchError(f"--arm {argument}: no such file or folder")
        logs.append((arm, Path(path)))
    imported = import_logs(tool, logs, metrics=metric or (), tasks=task or (), method=method)
    table = imported.table
    try:
        with atomic_write(output) as temporary:
            table.to_csv(temporary, index=False, lineterminator="\n", encoding="utf-8")
    except OSError as error:
        raise PeekbenchError(f"cannot write {output}: {error.strerror or error}; choose another file") from error
    counts = (
        pluralize(table["task"].nunique(), "task"),
        pluralize(len(table[["task", "text"]].drop_duplicates()), "text"),
    )
    note(f"written: {output} ({', '.join(counts)}, arms {', '.join(table['arm'].unique())})")
    for text in imported.notes:
        note(text)
    if "subsample" in table:
        note(f"Each arm has {table['subsample'].nunique()} logs; they are paired in the order in which they are given.")
    inspect.unwrap(analyze)([str(output)], TableFlags(region=region), printer, reports=reports)
