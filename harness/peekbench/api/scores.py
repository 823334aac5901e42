"""Analyzes scores of other tools from Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

import pandas as pd

from peekbench.api.report_view import ReportView
from peekbench.api.run import Run
from peekbench.api.running import is_run, load_run
from peekbench.errors import ResultsError
from peekbench.plugins.similar_names import OF_FEW, find_nearest
from peekbench.records.data import TableKeywords, TableOptions
from peekbench.report.facts.table_report import report_of_table
from peekbench.results.analyze import AnalysisOptions
from peekbench.results.analyze import analyze as analyze_scores
from peekbench.results.read import python_messages


def analyze(
    scores: pd.DataFrame | str | Path | Run | Any,
    analyses: Sequence[str] | None = None,
    *,
    name: str = "",
    allow_incomplete: bool = False,
    **table: Unpack[TableKeywords],
) -> ReportView:
    """Analyze scores of any tool.

    Parameters
    ----------
    scores
        A data frame, a file or a folder with scores, in one of two forms: one row for each subsample with a column for
        each arm (base, extra, test), or one row for each arm of each subsample with a column of the arm. Only the task
        and the scores are required. With a column `text`, each row is about a single test text. Also a run, its name,
        its spec or its store.
    analyses
        Names of the analyses; by default those of the run's spec, or `summary` and `permutation`, and `summary.texts`
        if rows are about single texts of several runs.
    name
        Name of the report.
    allow_incomplete
        Analyze the complete trials if trials are missing. The report then has a warning.
    **table
        What the columns do not say themselves. `columns`: meaning of columns with names of their own, such as
        ``{"seed": "subsample"}``. `ignore`: columns that say nothing about the scores. `pair_by_order`: pair rows that
        have no number of the draw in the order in which they stand. `percent`: read scores as percentages.
        `independent_tasks`: different tasks have independent draws, although these have the same numbers. `region`:
        largest bias that is negligible, in the unit of the scores. `tasks`: tasks to read, by default all.
        `earlier`: subsamples per task at each earlier analysis of the table, if it was extended since.

    Returns
    -------
    ReportView
        Verdicts, tables and figures. A notebook shows them.

    Raises
    ------
    ResultsError
        If the table is malformed, a column is neither known nor mapped nor ignored, or trials are missing.
    SpecError
        If an analysis does not exist, or cannot analyze these scores.

    Examples
    --------
    >>> import pandas as pd, peekbench as pb
    >>> extra, test = [0.70, 0.71, 0.69, 0.70, 0.72, 0.71, 0.70], [0.75, 0.77, 0.74, 0.75, 0.77, 0.75, 0.76]
    >>> scores = pd.DataFrame({"dataset": "news", "seed": range(7), "extra": extra, "test": test})
    >>> report = pb.analyze(scores, ["summary"])
    >>> report.verdicts[0].decision
    'biased up'
    """
    if unknown := table.keys() - TableKeywords.__annotations__.keys():
        near = find_nearest(min(unknown), TableKeywords.__annotations__, OF_FEW)
        raise TypeError(f"analyze() has no argument {min(unknown)!r}" + (f"; did you mean {near!r}?" if near else ""))
    if isinstance(scores, str | Path) and is_run(scores):
        scores = load_run(scores)
    if isinstance(scores, Run):
        if given := [*table, *(["name"] if name else [])]:
            raise ResultsError(f"{scores.store} is the store of a run, whose columns are known; remove {given[0]}=")
        return scores.report(analyses, allow_incomplete=allow_incomplete)
    if not isinstance(scores, str | Path | pd.DataFrame):
        scores = _to_pandas(scores)
    if isinstance(scores, pd.DataFrame):
        name = name or "scores"
    options = AnalysisOptions(analyses or (), TableOptions(**table), allow_incomplete)
    with python_messages(options.table):
        return ReportView(report_of_table(analyze_scores(scores, options), name))


def _to_pandas(scores: Any) -> pd.DataFrame:
    """Return the data frame of another library, such as polars, as one of pandas."""
    table = scores.to_pandas() if hasattr(scores, "to_pandas") else None
    if not isinstance(table, pd.DataFrame):
        raise ResultsError(
            f"scores are a data frame, a path, or a run, not a {type(scores).__name__}; make one with "
            "pandas.DataFrame(scores), with the names of the columns"
        )
    return table
