"""The application that commands are registered with, and what several of them share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, Optional

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from peekbench.spec.experiment import ExperimentSpec

FAILED, INTERRUPTED = 3, 130

app = typer.Typer(
    name="peekbench",
    help="Does a method score higher because the unlabeled text it adapts to was the test set's?",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

SpecArgument = Annotated[Path, typer.Argument(metavar="SPEC", help="YAML file of the experiment.")]
StoreOption = Annotated[
    Optional[Path],  # noqa: UP045 - typer reads it at run time
    typer.Option("--store", metavar="FILE", help="The run's store; by default runs/NAME.sqlite."),
]
ReportsOption = Annotated[Path, typer.Option("--reports", metavar="FOLDER", help="Where reports are written.")]
WorkersOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--workers", min=1, help="Overrules the executor's `workers`; the numbers stay the same."),
]
IncompleteOption = Annotated[
    bool, typer.Option("--allow-incomplete", help="Analyze a design with holes; the report says so.")
]


def make_console() -> Console:
    from rich.console import Console

    return Console()


def load(path: Path, workers: int | None = None) -> ExperimentSpec:
    from peekbench.spec.experiment import load_spec

    spec = load_spec(path)
    return spec if workers is None else spec.with_executor_options(workers=workers)


def run_path(run: str) -> Path:
    """A run by its name, or whatever the path names."""
    from peekbench.execution.runner import RUNS

    return Path(run) if Path(run).exists() else RUNS / f"{run}.sqlite"


def say_written(console: Console, paths: list[Path]) -> None:
    for path in paths:
        console.print(f"written: {path}", markup=False, highlight=False, soft_wrap=True)


def report_on(
    path: Path, reports: Path, console: Console, allow_incomplete: bool, pictures: Path | None = None
) -> None:
    from peekbench.report import draw_pictures, render_in_short, render_text, report_of_run, write_report

    made, formats = report_of_run(path, allow_incomplete=allow_incomplete)
    render_text(made, console)
    written = write_report(made, reports / made.name, formats)
    if pictures is not None:
        written += draw_pictures(made, pictures)
    say_written(console, written)
    render_in_short(made, console)


def fail(message: str, status: int) -> NoReturn:
    typer.echo(f"peekbench: {message}", err=True)
    raise typer.Exit(status)
