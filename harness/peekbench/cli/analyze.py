"""Commands that say what came out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from peekbench.cli.app import (
    IncompleteOption,
    ReportsOption,
    SpecArgument,
    app,
    fail,
    load,
    make_console,
    report_on,
    run_path,
    say_written,
)

if TYPE_CHECKING:
    from peekbench.report import Report


@app.command()
def analyze(
    path: Annotated[Path, typer.Argument(help="A store, a CSV or Parquet file, or a folder mM/nN/MODEL/TASK/.")],
    analyses: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--analysis", metavar="PLUGIN.THING", help="Instead of summary and permutation; repeatable."),
    ] = None,
    spec: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--spec", metavar="SPEC", help="YAML file that says which analyses, of which scores."),
    ] = None,
    reports: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--reports", metavar="FOLDER", help="Also write report files into this folder."),
    ] = None,
    allow_incomplete: IncompleteOption = False,
) -> None:
    """Judge scores, of a run or of any other tool.

    Example: peekbench analyze accuracies.csv
    """
    from peekbench.report import render_text, report_of_table, write_report
    from peekbench.results.analyze import analyze as run_analyses
    from peekbench.results.analyze import planned_trials
    from peekbench.results.table import load_results
    from peekbench.spec.analysis_only import load_analysis_only

    asked = None if spec is None else load_analysis_only(spec)
    if asked is not None and analyses:
        fail("give either --spec or --analysis, not both", 2)
    results = load_results(path)
    planned = planned_trials(path)
    if asked is None:
        found = run_analyses(results, analyses, allow_incomplete=allow_incomplete, planned=planned)
        report = report_of_table(path, results, found)
    else:
        results = asked.only.of(results)
        may_have_holes = allow_incomplete or asked.report.allow_incomplete
        found = run_analyses(
            results, asked.analyses, allow_incomplete=may_have_holes, planned=asked.only.among(planned)
        )
        report = report_of_table(path, results, found, name=asked.name)
    console = make_console()
    render_text(report, console)
    if reports is not None:
        formats = () if asked is None else (asked.report.formats,)
        say_written(console, write_report(report, reports, *formats))


@app.command()
def audit(spec: SpecArgument, reports: ReportsOption = Path("reports")) -> None:
    """Examine the tasks' data, without a run, by the audits that SPEC names.

    Example: peekbench audit specs/audit_small.yaml
    """
    from peekbench.execution.audits import audit as examine
    from peekbench.execution.audits import prepare
    from peekbench.report import render_text, report_of_audits, write_report

    experiment = load(spec)
    known = prepare(experiment)
    made = report_of_audits(experiment, examine(experiment), known)
    console = make_console()
    render_text(made, console)
    say_written(console, write_report(made, reports / made.name / "audits", experiment.report.formats))


@app.command()
def report(
    run_: Annotated[str, typer.Argument(metavar="RUN", help="A run's name, or the path of its store.")],
    reports: ReportsOption = Path("reports"),
    allow_incomplete: IncompleteOption = False,
    pictures: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="FOLDER", help="Also draw it, as SVG: what a terminal shows first, and each figure."),
    ] = None,
) -> None:
    """Report a run again from its store.

    Example: peekbench report quickstart
    """
    report_on(run_path(run_), reports, make_console(), allow_incomplete, pictures)


RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="A run's name, its store, or a table of scores.")]
FilesOption = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--reports", metavar="FOLDER", help="Also write it as files into this folder."),
]


@app.command()
def compare(
    before: RunArgument, after: RunArgument, reports: FilesOption = None, allow_incomplete: IncompleteOption = False
) -> None:
    """Say what changed between two runs: settings, data, versions, boost and bias, verdicts.

    Example: peekbench compare runs/before.sqlite runs/after.sqlite
    """
    from peekbench.report import report_of_comparison

    made = report_of_comparison(run_path(before), run_path(after), allow_incomplete=allow_incomplete)
    _show(made, reports)


@app.command()
def leaderboard(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Names of runs, their stores, or tables of scores.")
    ],
    reports: FilesOption = None,
    allow_incomplete: IncompleteOption = False,
) -> None:
    """Rank the methods of one run or several by their honest score, that of extra, and say which of them tie.

    Example: peekbench leaderboard quickstart
    """
    from peekbench.report import report_of_ranking

    _show(report_of_ranking([run_path(run) for run in runs], allow_incomplete=allow_incomplete), reports)


def _show(made: Report, reports: Path | None) -> None:
    from peekbench.report import render_text, write_report

    console = make_console()
    render_text(made, console)
    if reports is not None:
        say_written(console, write_report(made, reports))
