"""Contract checks for what must give the same whenever it is asked: data sources and analyzers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peekbench.data import check, fingerprint
from peekbench.entries import AnalyzerEntry, DataSourceEntry
from peekbench.errors import ContractError
from peekbench.protocols import Options
from peekbench.records import Analysis, Dataset, Folders

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
    check(first, entry.name)
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
