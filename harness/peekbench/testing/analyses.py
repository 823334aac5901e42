"""Contract checks for analyses and audits, which must be pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from peekbench.data.loading import hash_rows
from peekbench.errors import ContractError
from peekbench.plugins.entries import AnalyzerEntry, AuditEntry
from peekbench.plugins.protocols import Options
from peekbench.records.analysis import Analysis
from peekbench.records.data import Dataset
from peekbench.records.trials import Context
from peekbench.results.analyze import Seen

if TYPE_CHECKING:
    import pandas as pd


def check_analyzer(entry: AnalyzerEntry, options: Options, results: pd.DataFrame) -> None:
    """Check that an analyzer returns the same analysis at every call and does not change the results table.

    Parameters
    ----------
    entry
        Entry of the analysis.
    options
        Options to call the analyzer with.
    results
        Results table, as `peekbench.load_results` returns it.

    Raises
    ------
    ContractError
        If the analyzer does something else.

    Examples
    --------
    >>> import pandas as pd, peekbench
    >>> def count(results, *, options):
    ...     table = peekbench.Table("Rows", (peekbench.Column("rows", "count"),), ((len(results),),))
    ...     return peekbench.Analysis("count", (table,))
    >>> entry = peekbench.AnalyzerEntry(name="count", analyze=count, summary="number of rows")
    >>> check_analyzer(entry, peekbench.Options(), pd.DataFrame({"score": [0.5, 0.6]}))
    """
    before = results.copy(deep=True)
    seen = Seen().keywords(entry)
    first, second = (entry.analyze(results, options=options, **seen) for _ in range(2))
    _check_same(entry.name, first, second, "take the seed from the options")
    if not before.equals(results):
        raise ContractError(f"{entry.name} changes the results table; work on a copy")


def check_audit(entry: AuditEntry, options: Options, tasks: Mapping[str, Dataset], context: Context) -> None:
    """Check that an audit returns the same analysis at every call and does not change the tasks' rows.

    Parameters
    ----------
    entry
        Entry of the audit.
    options
        Options to call the audit with.
    tasks
        Rows of each task, by the task's name.
    context
        Seed, number of threads and folders.

    Raises
    ------
    ContractError
        If the audit does something else.

    Examples
    --------
    >>> from pathlib import Path
    >>> import peekbench
    >>> from peekbench.plugins import AuditEntry
    >>> def nothing(tasks, *, options, context):
    ...     return peekbench.Analysis("nothing")
    >>> entry = AuditEntry(name="nothing", audit=nothing, summary="finds nothing")
    >>> context = peekbench.Context(seed=0, threads=1, folders=peekbench.Folders(spec=Path(), cache=Path()))
    >>> check_audit(entry, peekbench.Options(), {"words": peekbench.testing.sample_texts()}, context)
    """
    before = _hash_tasks(tasks)
    first, second = (entry.audit(tasks, options=options, context=context) for _ in range(2))
    _check_same(entry.name, first, second, "take the seed from context.seed")
    if before != _hash_tasks(tasks):
        raise ContractError(f"{entry.name} changes the tasks' rows; work on copies")


def _check_same(name: str, first: object, second: object, remedy: str) -> None:
    if not isinstance(first, Analysis):
        raise ContractError(f"{name} returned a {type(first).__name__}; return peekbench.Analysis")
    if repr(first) != repr(second):
        raise ContractError(f"{name} returns another analysis at the second call; {remedy}")


def _hash_tasks(tasks: Mapping[str, Dataset]) -> dict[str, str]:
    return {name: hash_rows(data.inputs, data.labels, data.class_names) for name, data in tasks.items()}
