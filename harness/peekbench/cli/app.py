"""The application that commands are registered with, and the options and helpers that commands share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, Optional

import typer

from peekbench.cli.output import echo, make_console
from peekbench.errors import PeekbenchError

if TYPE_CHECKING:
    from rich.console import Console

    from peekbench.report import Report
    from peekbench.spec.experiment import ExperimentSpec

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
KeepGoingOption = Annotated[
    bool, typer.Option("--keep-going", help="Try all trials of a method even if its first ten fail alike.")
]
ChangedCodeOption = Annotated[
    bool,
    typer.Option(
        "--allow-changed-code",
        help="Go on although the code of a method changed; the report separates old and new trials.",
    ),
]
IncompleteOption = Annotated[
    bool, typer.Option("--allow-incomplete", help="Analyze the complete trials if trials are missing.")
]


def load(path: Path, workers: int | None = None) -> ExperimentSpec:
    """Load a spec, with another number of workers if one is given."""
    from peekbench.cli.inputs import find_spec  # noqa: PLC0415 - for a fast --help
    from peekbench.spec.experiment import load_spec  # noqa: PLC0415 - for a fast --help

    return _set_workers(load_spec(find_spec(path)), workers)


def load_any(argument: Path, workers: int | None = None) -> ExperimentSpec:
    """Load a spec, or that of a run which is given by its name or its store."""
    from peekbench.cli.inputs import load_experiment  # noqa: PLC0415 - for a fast --help

    return _set_workers(load_experiment(argument), workers)


def _set_workers(spec: ExperimentSpec, workers: int | None) -> ExperimentSpec:
    return spec if workers is None else spec.with_executor_options(workers=workers)


def run_path(run: str) -> Path:
    """Return the store of a run that is given by its name, its spec or its store."""
    from peekbench.cli.inputs import find_store  # noqa: PLC0415 - for a fast --help

    return find_store(run)


def scores_path(source: str | Path) -> Path:
    """Return the store of a run, as `run_path` does, or the path of a file or folder of scores."""
    from peekbench.cli.inputs import find_scores  # noqa: PLC0415 - for a fast --help

    return find_scores(str(source))


def show_report(report: Report, folder: Path | None) -> None:
    """Print a report. If a folder is given, write the report's files into a folder of it that has the report's name."""
    from peekbench.report import render_summary  # noqa: PLC0415 - for a fast --help
    from peekbench.report.render.files import folder_name  # noqa: PLC0415 - for a fast --help

    console = make_console()
    write_and_print(report, None if folder is None else folder / folder_name(report.name), console)
    render_summary(report, console)


def report_run(
    path: Path,
    reports: Path,
    console: Console,
    *,
    allow_incomplete: bool,
    analyses: Sequence[str] = (),
    pictures: Path | None = None,
) -> None:
    """Write the files of a run's report and print it."""
    from peekbench.report import render_summary, report_of_run  # noqa: PLC0415 - for a fast --help

    report = report_of_run(path, allow_incomplete=allow_incomplete, analyses=analyses)
    write_and_print(report, reports / report.name, console, pictures)
    render_summary(report, console)


def write_and_print(report: Report, folder: Path | None, console: Console, pictures: Path | None = None) -> None:
    """Write the files of a report, then print it, so that the files do not depend on the terminal."""
    from peekbench.report import render_text, write_pictures, write_report  # noqa: PLC0415 - for a fast --help
    from peekbench.report.render.files import check_same_report  # noqa: PLC0415 - for a fast --help

    if folder is None:
        report = replace(report, formats=())
    try:
        if folder is not None:
            check_same_report(report, folder)
        written = [] if folder is None else write_report(report, folder)
        if pictures is not None:
            written += write_pictures(report, pictures)
    except PeekbenchError:
        render_text(report, console)
        raise
    render_text(report, console)
    for path in written:
        console.print(f"written: {path}", markup=False, highlight=False, soft_wrap=True)


def fail(message: str, status: int) -> NoReturn:
    """Print an error message and exit."""
    echo(f"peekbench: {message}", err=True)
    raise typer.Exit(status)
