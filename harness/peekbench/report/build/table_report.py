"""Builds the report of a table of scores that another tool produced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from peekbench.errors import PeekbenchError
from peekbench.formatting import pluralize
from peekbench.records.report import Analysis, Extension, MethodFacts, Report, RunContent, read_estimates
from peekbench.report.build.descriptions import check_results, make_command
from peekbench.report.build.run_report import add_analyses, extension_of, find_estimates_analysis, methods_in_words
from peekbench.results.analyze import Seen, run_analysis, with_region
from peekbench.results.columns import TRIAL
from peekbench.results.looks import next_earlier, read_looks
from peekbench.results.roles import ColumnUse
from peekbench.results.tidying import TidyTable
from peekbench.spec.components import AnalysisSpec
from peekbench.store.files import is_store

if TYPE_CHECKING:
    import pandas as pd

    from peekbench.records.data import TableOptions


def report_of_table(
    path: Path, results: pd.DataFrame, analyses: Sequence[Analysis], name: str = "", columns: ColumnUse | None = None
) -> Report:
    """Return a report on a table of scores that another tool produced.

    Parameters
    ----------
    path
        File of the scores.
    results
        Results table, as `peekbench.load_results` returns it; without incomplete trials if the analyses leave them out.
    analyses
        Analyses of the table, as `peekbench.analyze` returns them.
    name
        Name of the report; by default the name of the file without its suffix.
    columns
        What was done with the columns of the file.

    Returns
    -------
    Report
        Verdicts, tables and figures of the analyses.

    Examples
    --------
    >>> import pandas as pd
    >>> from pathlib import Path
    >>> from peekbench.results import tidy
    >>> scores = pd.DataFrame({"task": ["trec"], "method": ["lsa"], "extra": [0.7], "test": [0.72]})
    >>> report_of_table(Path("scores.csv"), tidy(scores, "scores.csv"), analyses=()).headline
    '1 method on 1 task, 1 trial, from scores.csv'
    """
    num_trials = len(results[list(TRIAL)].drop_duplicates())
    num_judged = int(results.drop_duplicates("method")["control"].eq("").sum())
    methods = methods_in_words(num_judged, results["method"].nunique() - num_judged)
    tasks = pluralize(results["task"].nunique(), "task")
    report = Report(
        name=name or path.stem,
        headline=f"{methods} on {tasks}, {pluralize(num_trials, 'trial')}, from {path}",
        warnings=columns.warnings if columns else (),
        provenance={"source": str(path), **({"columns": str(columns)} if columns else {})},
        details={"source": str(path), **({"columns": columns.as_json()} if columns else {})},
        methods=tuple(MethodFacts(str(method)) for method in results["method"].unique()),
        extension=extension_of(path) if is_store(path) else Extension(earlier=next_earlier(results, ())),
        command=make_command("analyze", [path]),
    )
    return add_analyses(report, [*analyses, *check_results(results, analyses, is_run=is_store(path))])


def extend_table(results: pd.DataFrame, options: TableOptions, make: Callable[[TableOptions], str]) -> Extension:
    """Return how to extend a table.

    Parameters
    ----------
    results
        Results table, as it was analyzed.
    options
        How the table was read.
    make
        Returns the command that makes the report with other options.
    """
    earlier = next_earlier(results, options.earlier_numbers)
    return Extension(make(replace(options, earlier=earlier)), earlier=earlier)


def read_table(report: Report, table: TidyTable, analyses: Sequence[AnalysisSpec]) -> RunContent:
    """Read the content of a table of scores.

    Parameters
    ----------
    report
        Report of the table.
    table
        The table, without incomplete trials if the analyses leave them out.
    analyses
        Analyses of the report, whose options the estimates share.
    """
    component = with_region(find_estimates_analysis(analyses), table.columns)
    analysis = run_analysis(component, table.results, (), Seen(read_looks(table.results), table.predictions))
    if not analysis.tables:
        raise PeekbenchError(f"{report.name} has no methods but controls, so there is nothing to export; add a method")
    return RunContent(
        report=report,
        results=table.results,
        estimates=read_estimates(analysis.tables[0]),
        num_planned=len(table.results.drop_duplicates(list(TRIAL))),
        summaries={analysis.use: analysis.entry.summary for analysis in analyses},
    )
