"""The application that commands are registered with, and the options and helpers that commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, Optional

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from peekbench.report import Report
    from peekbench.spec.experiment import ExperimentSpec

FAILED, INTERRUPTED = 3, 130
"""Exit statuses."""

app = typer.Typer(
    name="peekbench",
    help="Measure whether adapting to the unlabeled test texts inflates a method's score.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

SpecArgument = Annotated[Path, typer.Argument(metavar="SPEC", help="YAML spec of an experiment.")]
StoreOption = Annotated[
    Optional[Path],  # noqa: UP045 - typer evaluates the annotation
    typer.Option("--store", metavar="FILE", help="Store of the run. Default: runs/NAME.sqlite."),
]
ReportsOption = Annotated[Path, typer.Option("--reports", metavar="FOLDER", help="Folder for reports.")]
WorkersOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--workers", min=1, help="Override the executor's option `workers`. It changes no number."),
]
IncompleteOption = Annotated[
    bool, typer.Option("--allow-incomplete", help="Analyze the complete trials if trials are missing.")
]


def make_console() -> Console:
    """Return a console that writes to the standard output."""
    from rich.console import Console  # noqa: PLC0415 - for a fast --help

    return Console()


def load(path: Path, workers: int | None = None) -> ExperimentSpec:
    """Load a spec, with another number of workers if one is given."""
    from peekbench.spec.experiment import load_spec  # noqa: PLC0415 - for a fast --help

    spec = load_spec(path)
    return spec if workers is None else spec.with_executor_options(workers=workers)


def run_path(run: str) -> Path:
    """Return the path of a run that is given by its name or by its path."""
    from peekbench.execution.runner import RUNS  # noqa: PLC0415 - for a fast --help

    return Path(run) if Path(run).exists() else RUNS / f"{run}.sqlite"


def print_written(console: Console, paths: Sequence[Path]) -> None:
    """Print the paths of written files."""
    for path in paths:
        console.print(f"written: {path}", markup=False, highlight=False, soft_wrap=True)


def show_report(report: Report, folder: Path | None) -> None:
    """Print a report, and write its files if a folder is given."""
    from peekbench.report import render_text, write_report  # noqa: PLC0415 - for a fast --help

    console = make_console()
    render_text(report, console)
    if folder is not None:
        print_written(console, write_report(report, folder))


def report_run(
    path: Path, reports: Path, console: Console, *, allow_incomplete: bool, pictures: Path | None = None
) -> None:
    """Print the report of a run and write its files."""
    from peekbench.report import render_summary, render_text, report_of_run, write_pictures, write_report  # noqa: PLC0415 - for a fast --help

    report = report_of_run(path, allow_incomplete=allow_incomplete)
    render_text(report, console)
    written = write_report(report, reports / report.name)
    if pictures is not None:
        written += write_pictures(report, pictures)
    print_written(console, written)
    render_summary(report, console)


def fail(message: str, status: int) -> NoReturn:
    """Print an error message and exit."""
    typer.echo(f"peekbench: {message}", err=True)
    raise typer.Exit(status)
