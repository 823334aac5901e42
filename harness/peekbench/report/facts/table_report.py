"""Builds the report of a table of scores that another tool produced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peekbench.formatting import pluralize
from peekbench.records.report import Extension, MethodFacts, Report
from peekbench.report.facts.run_facts import check_results, make_command
from peekbench.report.facts.run_report import add_analyses, extension_of, methods_in_words, read_content
from peekbench.results.columns import TRIAL
from peekbench.results.recorded_looks import next_earlier
from peekbench.store.files import is_store

if TYPE_CHECKING:
    import pandas as pd

    from peekbench.records.data import TableOptions
    from peekbench.results.analyze import AnalysisOptions, Analyzed


def report_of_table(
    scores: Analyzed, name: str = "", *, spec: Path | None = None, typed: AnalysisOptions | None = None
) -> Report:
    """Return a report on a table of scores that another tool produced, or on a part of the scores of a run.

    Parameters
    ----------
    scores
        The scores with their analyses, as `peekbench.results.analyze.analyze` returns them.
    name
        Name of the report; by default the name of the file without its suffix.
    spec
        Spec of the analyses, if the command names one.
    typed
        Options of the command that makes the report; by default those with which the scores were analyzed.

    Returns
    -------
    Report
        Verdicts, tables and figures of the analyses.

    Examples
    --------
    >>> import pandas as pd
    >>> from peekbench.results.analyze import AnalysisOptions, analyze
    >>> scores = pd.DataFrame({"task": ["trec"], "method": ["lsa"], "extra": [0.7], "test": [0.72]})
    >>> report_of_table(analyze(scores, AnalysisOptions(["permutation"], origin="scores.csv"))).headline
    '1 method on 1 task, 1 trial, from scores.csv'
    """
    results, columns = scores.complete_rows, scores.table.columns
    num_judged = int(results.drop_duplicates("method")["control"].eq("").sum())
    methods = methods_in_words(num_judged, results["method"].nunique() - num_judged)
    tasks = pluralize(results["task"].nunique(), "task")
    trials = pluralize(len(results[list(TRIAL)].drop_duplicates()), "trial")
    provenance = {"source": scores.origin}
    details: dict[str, Any] = {"source": scores.origin}
    if columns:
        provenance["columns"] = str(columns)
        details["columns"] = columns.as_json()
    typed = typed or scores.options
    make = _command_of(scores.source, typed, spec)
    command = make(typed.table)
    if command:
        provenance["command"] = command
    if scores.source is not None and is_store(scores.source):
        extension = extension_of(scores.source)
    else:
        extension = extend_table(results, replace(typed.table, earlier=scores.options.table.earlier), make)
    report = Report(
        name=name or Path(scores.origin).stem,
        headline=f"{methods} on {tasks}, {trials}, from {scores.origin}",
        warnings=columns.warnings,
        provenance=provenance,
        details=details,
        methods=tuple(MethodFacts(str(method)) for method in results["method"].unique()),
        subjects=scores.subjects(),
        extension=extension,
        command=command,
    )
    report = add_analyses(
        report, [*scores.analyses, *check_results(results, scores.analyses, is_run=extension.of == "run")]
    )
    return replace(report, read_run=partial(read_content, report, scores, {}))


def _command_of(source: Path | None, typed: AnalysisOptions, spec: Path | None) -> Callable[[TableOptions], str]:
    """Return a function from options of a table to the command that makes the report; none reads a data frame."""
    if source is None:
        return lambda _: ""
    uses = [str(use) for use in typed.analyses]
    return partial(make_command, "analyze", [source], uses, spec=spec, allow_incomplete=typed.allow_incomplete)


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
