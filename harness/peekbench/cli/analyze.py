"""Commands that analyze scores and data, and report the results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from peekbench.api.inputs import find_run, find_scores
from peekbench.cli.options import (
    IncompleteOption,
    ReportsOption,
    RunArgument,
    TableFlags,
    take_records,
)
from peekbench.cli.reports import (
    FailOnOption,
    FormatOption,
    Printer,
    ReportOptions,
    apply_gate,
    check_formats,
    parse_gate,
    report_run,
    show_report,
)
from peekbench.report import report_of_comparison
from peekbench.report.facts.reports import report_of_table
from peekbench.results.analyze import AnalysisOptions
from peekbench.results.analyze import analyze as analyze_scores

FilesOption = Annotated[
    Path | None,
    typer.Option("--reports", metavar="FOLDER", help="Write the report's files into FOLDER/NAME."),
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
    run_: RunArgument,
    printer: Printer,
    options: ReportOptions,
    reports: ReportsOption = Path("reports"),
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
        list[str],
        typer.Argument(metavar="RUN...", help="Names, specs or stores of runs, or tables of scores."),
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
