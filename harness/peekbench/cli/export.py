"""Commands for other tools: export a run in their formats, and import their logs."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated, Optional

import typer

from peekbench.cli.app import IncompleteOption, RunArgument, app, run_path
from peekbench.cli.output import echo
from peekbench.errors import PeekbenchError
from peekbench.formatting import pluralize

EXPORTS = Path("exports")
FORMAT_NAMES = "csv, latex, text, every-eval-ever, ro-crate or croissant"


@app.command()
def export(
    run_: RunArgument,
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help=f"Format to write: {FORMAT_NAMES}.")],
    output: Annotated[
        Optional[Path],  # noqa: UP045 - typer evaluates the annotation
        typer.Option("--output", "-o", metavar="FOLDER", help="Folder to create. Default: exports/NAME/FORMAT."),
    ] = None,
    author: Annotated[str, typer.Option(help="Person or organization that publishes the results.")] = "",
    license_: Annotated[
        str, typer.Option("--license", metavar="URL", help="License of the results: a URL or an SPDX identifier.")
    ] = "",
    allow_incomplete: IncompleteOption = False,
) -> None:
    """Export a run for other tools: scores of the arm extra, biases and boosts with their intervals.

    Example: peekbench export quickstart --to latex
    """
    from peekbench.export import export_run  # noqa: PLC0415 - for a fast --help
    from peekbench.export.content import Publication  # noqa: PLC0415 - for a fast --help
    from peekbench.spec.lockfile import find_lock  # noqa: PLC0415 - for a fast --help
    from peekbench.store.writer import Store  # noqa: PLC0415 - for a fast --help

    store = run_path(run_)
    with Store.open(store, verified=False) as opened:
        name, folder = opened.spec()["name"], opened.folder()
    specs = [Path(run_), folder / f"{name}.yaml"]
    publication = Publication(author, license_, find_lock(specs))
    written = export_run(
        store,
        to,
        output or EXPORTS / name / to,
        publication=publication,
        allow_incomplete=allow_incomplete,
    )
    for path in written:
        echo(f"written: {path}")


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
