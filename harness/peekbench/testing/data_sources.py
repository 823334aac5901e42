"""Contract check for data sources."""

from __future__ import annotations

from peekbench.data.loading import check_dataset, fingerprint
from peekbench.errors import ContractError
from peekbench.plugins.entries import DataSourceEntry
from peekbench.plugins.protocols import Options
from peekbench.records.data import Dataset, Folders


def check_data_source(entry: DataSourceEntry, options: Options, folders: Folders) -> None:
    """Check that a data source gives valid rows, the same ones at every call.

    Parameters
    ----------
    entry
        Entry of the data source.
    options
        Options to load the rows with.
    folders
        Folders of the spec file and of the cache.

    Raises
    ------
    ContractError
        If the source returns something else than a `Dataset`, or other rows at the second call.
    DataError
        If the rows are invalid.

    Examples
    --------
    >>> from pathlib import Path
    >>> import peekbench
    >>> def load(*, options, folders):
    ...     return peekbench.Dataset(["sunny", "rainy"] * 20, [0, 1] * 20, ("good", "bad"))
    >>> entry = peekbench.DataSourceEntry(name="weather", load=load, summary="weather reports")
    >>> check_data_source(entry, peekbench.Options(), peekbench.Folders(spec=Path(), cache=Path()))
    """
    first, second = (entry.load(options=options, folders=folders) for _ in range(2))
    if not isinstance(first, Dataset):
        raise ContractError(f"{entry.name} returned a {type(first).__name__}; return peekbench.Dataset")
    check_dataset(first, entry.name)
    if fingerprint(first) != fingerprint(second):
        raise ContractError(
            f"{entry.name} gives other rows, or another order, at the second call; sort the rows and use a fixed seed"
        )
