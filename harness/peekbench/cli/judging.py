"""Commands that say what came out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from peekbench.cli.application import IncompleteOption, ReportsOption, app, make_console, report_on, say_written


@app.command()
def analyze(
    path: Annotated[Path, typer.Argument(help="A store, a CSV or Parquet file, or a folder mM/nN/MODEL/TASK/.")],
    analyses: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--analysis", metavar="PLUGIN.THING", help="Instead of summary and permutation; repeatable."),
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
    from peekbench.analysis import analyze as analyse
    from peekbench.analysis import planned_trials
    from peekbench.report import render_text, report_of_table, write_report
    from peekbench.results import load_results

    results = load_results(path)
    found = analyse(results, analyses, allow_incomplete=allow_incomplete, planned=planned_trials(path))
    report = report_of_table(path, results, found)
    console = make_console()
    render_text(report, console)
    if reports is not None:
        say_written(console, write_report(report, reports))


@app.command()
def report(
    run_: Annotated[str, typer.Argument(metavar="RUN", help="A run's name, or the path of its store.")],
    reports: ReportsOption = Path("reports"),
    allow_incomplete: IncompleteOption = False,
    svg: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="FILE", help="Also draw the top of the report as a picture."),
    ] = None,
) -> None:
    """Report a run again from its store.

    Example: peekbench report quickstart
    """
    from peekbench.execute import RUNS

    path = Path(run_) if Path(run_).is_file() else RUNS / f"{run_}.sqlite"
    report_on(path, reports, make_console(), allow_incomplete, svg)
