"""Contract checks for what must give the same whenever it is asked: data sources, analyzers and audits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from peekbench.data.loading import check_dataset, fingerprint, hash_rows
from peekbench.errors import ContractError
from peekbench.plugins.entries import AnalyzerEntry, AuditEntry, DataSourceEntry
from peekbench.plugins.protocols import Options
from peekbench.records.analysis import Analysis
from peekbench.records.data import Dataset, Folders
from peekbench.records.trials import Context

if TYPE_CHECKING:
    import pandas as pd


def check_data_source(entry: DataSourceEntry, options: Options, folders: Folders) -> None:
    """It gives valid rows, the same ones every time.

    Raises
    ------
    ContractError
        Where it returns no data set, or other rows when asked again.
    DataError
        Where no design could draw from the rows.
    """
    first, again = (entry.load(options=options, folders=folders) for _ in range(2))
    if not isinstance(first, Dataset):
        raise ContractError(f"{entry.name} returned a {type(first).__name__}; return peekbench.Dataset")
    check_dataset(first, entry.name)
    if fingerprint(first) != fingerprint(again):
        raise ContractError(f"{entry.name} gives other rows, or another order, when asked again; sort them, seed it")


def check_analyzer(entry: AnalyzerEntry, options: Options, results: pd.DataFrame) -> None:
    """It returns an analysis, the same every time, and leaves the results table alone.

    Raises
    ------
    ContractError
        Where it does not.
    """
    before = results.copy(deep=True)
    first, again = (entry.analyze(results, options=options) for _ in range(2))
    if not isinstance(first, Analysis):
        raise ContractError(f"{entry.name} returned a {type(first).__name__}; return peekbench.Analysis")
    if repr(first) != repr(again):
        raise ContractError(f"{entry.name} concludes something else when asked again; take the seed from its options")
    if not before.equals(results):
        raise ContractError(f"{entry.name} changes the results table; work on a copy")


def check_audit(entry: AuditEntry, options: Options, tasks: Mapping[str, Dataset], context: Context) -> None:
    """It returns an analysis, the same every time, and leaves the tasks' rows alone.

    Raises
    ------
    ContractError
        Where it does not.
    """
    before = {name: hash_rows(data.inputs, data.labels, data.class_names) for name, data in tasks.items()}
    first, again = (entry.audit(tasks, options=options, context=context) for _ in range(2))
    if not isinstance(first, Analysis):
        raise ContractError(f"{entry.name} returned a {type(first).__name__}; return peekbench.Analysis")
    if repr(first) != repr(again):
        raise ContractError(f"{entry.name} concludes something else when asked again; draw from context.seed")
    if before != {name: hash_rows(data.inputs, data.labels, data.class_names) for name, data in tasks.items()}:
        raise ContractError(f"{entry.name} changes the tasks' rows; work on copies")
