"""Commands that analyze scores and data, and write the report: its files, its text, and the exit status."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, get_args

import typer

from peekbench.api.inputs import find_run, find_scores
from peekbench.cli.output import (
    ERROR,
    GATED,
    IncompleteOption,
    ReportsOption,
    RunArgument,
    TableFlags,
    be_quiet,
    echo,
    fail,
    keep_results_apart,
    make_console,
    note,
    take_records,
)
from peekbench.errors import PeekbenchError
from peekbench.formatting import pluralize
from peekbench.plugins.names import OF_FEW, Code, find_nearest, locate_code
from peekbench.plugins.registry import check_format
from peekbench.records import Report
from peekbench.records.report import Analysis
from peekbench.records.verdicts import Decision
from peekbench.report import render_text, report_of_comparison, report_of_run, write_report
from peekbench.report.facts.reports import report_of_table
from peekbench.report.facts.run_facts import make_command
from peekbench.report.render.files import folder_name
from peekbench.report.render.json_report import render_json
from peekbench.report.render.sentences import decision_of
from peekbench.results.analyze import AnalysisOptions
from peekbench.results.analyze import analyze as analyze_scores
from peekbench.store.files import RUNS

FormatOption = Annotated[
    list[str] | None, typer.Option("--format", metavar="FORMAT", help="Format to write, such as html; repeatable.")
]


@dataclass(frozen=True, slots=True)
class Printer:
    """Prints reports to the standard output, as options choose."""

    full: Annotated[bool, typer.Option("--full", help="Print the whole report instead of one screen.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False
    json: Annotated[bool, typer.Option("--json", help="Print report.json; everything else goes to stderr.")] = False

    def start(self) -> None:
        """Check the options, and leave the standard output to reports: what plugins print goes to the standard error.

        With `--quiet`, there are no notes and warnings.
        """
        given = [name for name in ("full", "quiet", "json") if getattr(self, name)]
        if len(given) > 1:
            raise PeekbenchError(f"{' and '.join(f'--{name}' for name in given)} exclude each other; give one of them")
        keep_results_apart()
        be_quiet(self.quiet)

    def write_and_print(self, report: Report, folder: Path | None, *, again: str = "") -> None:
        """Write the files of a report, then print it, so that the files do not depend on the terminal.

        Without a folder, no files are written; `again` is the command that prints the whole report.
        """
        closing: list[str] = []
        try:
            if folder is None:
                report = replace(report, formats=())
            else:
                closing += [f"Report: {file}" for file in write_report(report, folder)[:1]]
        except PeekbenchError:
            self._print(report, [])
            raise
        more = f"All tables: {again} --full"
        if not again:
            more = "All tables: add --full"
            if folder is None:
                more += ", or --reports FOLDER to write it to files"
        if not self.full:
            closing.append(more)
        self._print(report, closing)

    def _print(self, report: Report, closing: Sequence[str]) -> None:
        if self.json:
            echo(render_json(report), end="")
        elif not self.quiet:
            render_text(report, make_console(), closing, full=self.full)


def show_report(report: Report, folder: Path | None, printer: Printer) -> None:
    """Print a report. If a folder is given, write the report's files into a folder of it that has the report's name."""
    printer.write_and_print(report, None if folder is None else folder / folder_name(report.name))


def check_formats(formats: Sequence[str]) -> tuple[str, ...]:
    """Return formats with the code that they name; refuse those that do not exist before anything is analyzed."""
    return tuple(check_format(locate_code(name, Path.cwd())) for name in formats)


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Options of `peekbench report`: what a report contains instead of what the spec says."""

    allow_incomplete: IncompleteOption = False
    analyses: Annotated[
        list[str] | None,
        typer.Option("--analysis", metavar="ANALYSIS", help="Analysis to do instead of those of the spec; repeatable."),
    ] = None
    formats: FormatOption = None


def report_run(
    path: Path,
    reports: Path | None,
    printer: Printer,
    options: ReportOptions,
    code: Collection[Code] = (),
    on_analysis: Callable[[Analysis], None] | None = None,
) -> Report:
    """Write the files of a run's report, print it, and return it. Of code in the store, only `code` is imported."""
    formats = check_formats(options.formats or ())
    analyses = options.analyses or ()
    report = report_of_run(
        path, allow_incomplete=options.allow_incomplete, analyses=analyses, given=code, on_analysis=on_analysis
    )
    report = replace(report, formats=formats or report.formats)
    run = str(path)
    if path == RUNS / f"{path.stem}.sqlite":
        run = path.stem
    again = make_command("report", [run], analyses, allow_incomplete=options.allow_incomplete)
    folder = None if reports is None else reports / report.name
    printer.write_and_print(report, folder, again=again)
    return report


BIASED, FAILED_CONTROLS = "biased", "controls failed"
DECISIONS = (BIASED, *get_args(Decision), FAILED_CONTROLS)
"""Names that `--fail-on` takes."""
FailOnOption = Annotated[
    str | None,
    typer.Option(
        "--fail-on", metavar="DECISIONS", help="End with status 4 if a verdict is one of these: biased,inconclusive."
    ),
]


def parse_gate(text: str | None) -> frozenset[str]:
    """Parse the value of `--fail-on`; without one, no decision ends the command. Spaces can be hyphens.

    Examples
    --------
    >>> sorted(parse_gate("biased,no-signal"))
    ['biased', 'no signal']
    """
    if text is None:
        return frozenset()
    names = [name.strip().lower().replace("-", " ") for name in text.split(",")]
    for name in names:
        if name not in DECISIONS:
            near = find_nearest(name, DECISIONS, OF_FEW) or BIASED
            raise PeekbenchError(
                f"--fail-on: no decision is called {name!r}; did you mean {near}? Decisions are {', '.join(DECISIONS)}"
            )
    return frozenset(names)


def apply_gate(gate: frozenset[str], report: Report) -> None:
    """End the command with the status `GATED` if the verdict of the first analysis on a method or control is in a gate.

    A table cannot exempt a method: one that it calls a control is judged as a method too. Without a verdict that could
    be in the gate, the status is `ERROR`.
    """
    if not gate:
        return
    leads = [lead for lead, *_ in report.judged if lead.effect == "bias"]
    if not leads:
        fail(f"--fail-on: {report.name} has no verdict on a bias; use an analysis that reaches verdicts", ERROR)
    decisions = []
    for lead in leads:
        if lead.control:
            decisions.append((lead.method, f"controls {lead.decision}"))
        if not lead.control or report.extension.of == "table":
            decisions.append((lead.method, decision_of(lead)))
    found = [f"{method} is {each}" for method, each in decisions if gate & {each, each.partition(" ")[0]}]
    if found:
        fail(f"--fail-on: {', '.join(found)}", GATED)
    note(f"--fail-on: passed ({pluralize(len(leads), 'verdict')})")


FilesOption = Annotated[
    Path | None, typer.Option("--reports", metavar="FOLDER", help="Write the report's files into FOLDER/NAME.")
]


@take_records
def analyze(
    scores: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Name, spec or store of a run; table of scores, or one for each task; or folder of tables "
            "mM/nN/MODEL/TASK/.",
        ),
    ],
    table: TableFlags,
    printer: Printer,
    analyses: Annotated[
        list[str] | None,
        typer.Option(
            "--analysis",
            metavar="ANALYSIS",
            help="Analysis to do, also with options: '{use: summary, options: {level: 0.9}}'; repeatable.",
        ),
    ] = None,
    reports: FilesOption = None,
    allow_incomplete: IncompleteOption = False,
    formats: FormatOption = None,
    fail_on: FailOnOption = None,
) -> None:
    """Analyze the scores of a run or of any other tool.

    Example: peekbench analyze accuracies.csv
    """
    gate = parse_gate(fail_on)
    chosen = check_formats(formats or ())
    if formats and reports is None:
        reports = Path("reports")
    printer.start()
    options = AnalysisOptions(analyses or (), table.read(), allow_incomplete)
    first, *others = map(find_scores, scores)
    source: Path | list[Path] = first
    if others:
        source = [first, *others]
    report = report_of_table(analyze_scores(source, options))
    report = replace(report, formats=chosen or report.formats)
    show_report(report, reports, printer)
    apply_gate(gate, report)


@take_records
def report(
    run_: RunArgument, printer: Printer, options: ReportOptions, reports: ReportsOption = Path("reports")
) -> None:
    """Write the report of a run again, from its store.

    Example: peekbench report quickstart
    """
    printer.start()
    store, code = find_run(run_)
    report_run(store, reports, printer, options, code)


@take_records
def compare(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Names, specs or stores of runs, or tables of scores.")
    ],
    table: TableFlags,
    printer: Printer,
    reports: FilesOption = None,
    allow_incomplete: IncompleteOption = False,
) -> None:
    """Rank the methods of one or several runs by their uncontaminated score, that of the arm extra.

    Example: peekbench compare quickstart

    Example: peekbench compare runs/before.sqlite runs/after.sqlite
    """
    printer.start()
    paths = [find_scores(run) for run in runs]
    show_report(report_of_comparison(paths, allow_incomplete=allow_incomplete, table=table.read()), reports, printer)
