"""Writes the files of a report, and prints the report in the form that the user chose."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from peekbench.cli.output import be_quiet, echo, keep_results_apart, make_console
from peekbench.cli.plugin_option import plugin_arguments
from peekbench.errors import PeekbenchError
from peekbench.formatting import pluralize

if TYPE_CHECKING:
    from peekbench.records import Report
    from peekbench.records.analysis import Analysis

FullOption = Annotated[bool, typer.Option("--full", help="Print the whole report instead of one screen.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print the report as JSON, as in report.json; everything else goes to stderr.")
]

MAX_BESIDE = 4
"""Files that a report names beside the first one."""

Form: TypeAlias = Literal["screen", "full", "quiet", "json"]


@dataclass(frozen=True, slots=True)
class Printer:
    """Prints reports to the standard output in one form."""

    form: Form = "screen"

    @classmethod
    def choose(cls, *, full: bool, quiet: bool, as_json: bool) -> Printer:
        """Return the printer for the options of a command, and leave the standard output to it.

        What plugins print goes to the standard error from now on. With `--quiet`, there are no notes and warnings.

        Raises
        ------
        PeekbenchError
            If the options exclude each other.
        """
        options: dict[Form, bool] = {"full": full, "quiet": quiet, "json": as_json}
        given: list[Form] = [form for form, is_given in options.items() if is_given]
        if len(given) > 1:
            raise PeekbenchError(f"{' and '.join(f'--{form}' for form in given)} exclude each other; give one of them")
        keep_results_apart()
        if quiet:
            be_quiet()
        return cls(*given)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing but errors is printed."""
        return self.form == "quiet"

    def write_and_print(
        self, report: Report, folder: Path | None, *, again: str = "", pictures: Path | None = None
    ) -> list[Path]:
        """Write the files of a report, then print it, so that the files do not depend on the terminal.

        Parameters
        ----------
        report
            Report to write and print.
        folder
            Folder of its files; None to write none.
        again
            Command that prints the whole report.
        pictures
            Folder for the screen and all figures as SVG; None to draw none.

        Returns
        -------
        list of Path
            Files that were written.
        """
        from peekbench.report import write_pictures, write_report  # noqa: PLC0415 - for a fast --help
        from peekbench.report.render.files import check_same_report  # noqa: PLC0415 - for a fast --help

        written: list[Path] = []
        if folder is None:
            report = replace(report, formats=())
        try:
            if folder is not None:
                check_same_report(report, folder)
                written += write_report(report, folder)
            drawn = [] if pictures is None else write_pictures(report, pictures)
        except PeekbenchError:
            self._print(report, [])
            raise
        more = f"All tables: {again} --full" if again else "All tables: add --full"
        more += "" if folder or again else ", or --reports FOLDER to write it to files"
        self._print(
            report, [*_list_files(written, folder), *_list_files(drawn, pictures, "Pictures"), more], [*written, *drawn]
        )
        return written

    def _print(self, report: Report, closing: Sequence[str], written: Sequence[Path] = ()) -> None:
        from peekbench.report import render_screen, render_summary, render_text  # noqa: PLC0415 - for a fast --help
        from peekbench.report.render.json_report import render_json  # noqa: PLC0415 - for a fast --help

        match self.form:
            case "json":
                echo(render_json(report), end="")
            case "screen":
                render_screen(report, make_console(), closing)
            case "full":
                console = make_console()
                render_text(report, console)
                for path in written:
                    console.print(f"written: {path}", markup=False, highlight=False, soft_wrap=True)
                render_summary(report, console)
            case "quiet":
                pass


def _list_files(paths: Sequence[Path], folder: Path | None, heading: str = "Report") -> list[str]:
    """Return a line that names the first of the files or folders in a folder, with the others beside it."""
    if not paths or folder is None:
        return []
    numbers = Counter(path.relative_to(folder).parts[0] for path in paths)
    files = [name for name in numbers if folder / name in paths]
    folders = [f"{name} ({pluralize(number, 'file')})" for name, number in numbers.items() if name not in files]
    first, *beside = files or folders
    others = beside if len(beside) <= MAX_BESIDE or not files else [pluralize(len(beside), "file")]
    others = [*others, *(folders if files else [])]
    return [f"{heading}: {folder / first}", *([f"{' ' * len(heading)}  and {', '.join(others)}"] if others else [])]


def show_report(report: Report, folder: Path | None, printer: Printer) -> None:
    """Print a report. If a folder is given, write the report's files into a folder of it that has the report's name."""
    from peekbench.report.render.files import folder_name  # noqa: PLC0415 - for a fast --help

    printer.write_and_print(report, None if folder is None else folder / folder_name(report.name))


def report_run(
    path: Path,
    reports: Path | None,
    printer: Printer,
    *,
    allow_incomplete: bool,
    analyses: Sequence[str] = (),
    formats: Sequence[str] = (),
    publication: tuple[str, str] = ("", ""),
    pictures: Path | None = None,
    on_analysis: Callable[[Analysis], None] | None = None,
) -> tuple[Report, list[Path]]:
    """Write the files of a run's report, in other formats if some are given, print it, and return both.

    The publication is an author and a license, for formats that state them.
    """
    from peekbench.plugins.report_formats import check_format  # noqa: PLC0415 - for a fast --help
    from peekbench.report import report_of_run  # noqa: PLC0415 - for a fast --help
    from peekbench.store.files import RUNS  # noqa: PLC0415 - for a fast --help

    for name in formats:
        check_format(name)
    report = report_of_run(path, allow_incomplete=allow_incomplete, analyses=analyses, on_analysis=on_analysis)
    author, license_ = publication
    report = replace(report, formats=tuple(formats) or report.formats, author=author, license=license_)
    run = path.stem if path.parent == RUNS and path.suffix == ".sqlite" else str(path)
    options = [part for use in analyses for part in ("--analysis", use)] + ["--allow-incomplete"] * allow_incomplete
    options += plugin_arguments()
    again = shlex.join(["peekbench", "report", run, *options])
    folder = None if reports is None else reports / report.name
    return report, printer.write_and_print(report, folder, again=again, pictures=pictures)
