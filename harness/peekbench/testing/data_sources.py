"""Contract checks of data sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from peekbench.cache import cache_folder
from peekbench.data.data_warnings import find_empty_texts
from peekbench.data.loading import check_dataset, find_absent_class, fingerprint, hash_rows
from peekbench.errors import ContractError, PeekbenchError
from peekbench.formatting import pluralize
from peekbench.plugins import registry
from peekbench.plugins.entries import DataSourceEntry
from peekbench.plugins.protocols import Options
from peekbench.records.data import Dataset, Folders
from peekbench.spec.components import TaskSpec, make_component
from peekbench.testing.attempt import Attempt
from peekbench.testing.declaration_checks import check_light_import
from peekbench.testing.outcomes import CheckOutcome, preserved_state, run_checks
from peekbench.testing.repeated_call import (
    RepeatedCall,
    by_name,
    check_generators,
    check_new_process,
    check_second_call,
    check_state,
)


@dataclass(frozen=True, slots=True)
class LoadedSource:
    """A data source with the rows that its first call gave."""

    use: str
    """Name of the data source in specs."""
    entry: DataSourceEntry
    """Entry of the data source."""
    loaded: Attempt
    """What it returned, or the exception that it raised."""
    folders: Folders
    """Folders of the call."""
    calls: RepeatedCall
    """Further calls."""


def check_data_source(use: str, options: Mapping[str, Any] | None = None) -> list[CheckOutcome]:
    """Do all contract checks of a data source.

    Parameters
    ----------
    use
        Name of the data source in specs, `plugin.source`.
    options
        Options as in a spec. Relative paths start at the current folder.

    Returns
    -------
    list of CheckOutcome
        Outcomes in the order of `SOURCE_CHECKS`.

    Raises
    ------
    PluginError, SpecError
        If there is no such data source, or the options are invalid.
    DataError
        If the data are unavailable.

    Examples
    --------
    >>> next(iter(SOURCE_CHECKS))
    'the rows are valid'
    >>> outcomes = check_data_source("tabular.regression", {"num_rows": 60})
    >>> all(outcome.passed for outcome in outcomes)
    True
    """
    return list(iterate_source_checks(use, options))


def iterate_source_checks(use: str, options: Mapping[str, Any] | None = None) -> Iterator[CheckOutcome]:
    """Do the checks of `check_data_source` one after the other.

    Parameters
    ----------
    use, options
        As for `check_data_source`.

    Yields
    ------
    CheckOutcome
        Outcomes in the order of `SOURCE_CHECKS`.
    """
    spec = make_component(TaskSpec, use, options)
    folders = Folders(spec=Path.cwd(), cache=cache_folder())
    return run_checks(SOURCE_CHECKS, load_source(spec.use, spec.entry, spec.options, folders), num_required=1)


def load_source(use: str, entry: DataSourceEntry, options: Options, folders: Folders) -> LoadedSource:
    """Load the rows of a data source to check.

    Parameters
    ----------
    use
        Name of the data source in specs.
    entry
        Its entry.
    options
        Options of the call.
    folders
        Folders of the call.

    Raises
    ------
    DataError
        If the data are unavailable.
    """
    calls = RepeatedCall(
        use=use,
        callee=entry.load,
        describe=_hash_source,
        arguments=(use, by_name(use, entry), options.model_dump(), folders),
        remedy="sort the rows and use a fixed seed",
    )
    with preserved_state():
        loaded = Attempt(partial(entry.load, options=options, folders=folders))
    if isinstance(loaded.error, PeekbenchError):  # no error of the source: the data are unavailable
        raise loaded.error
    return LoadedSource(use, entry, loaded, folders, calls)


def _hash_source(use: str, entry: DataSourceEntry | None, options: dict[str, Any], folders: Folders) -> str:
    entry = entry or registry.find(use, DataSourceEntry)
    dataset = entry.load(options=entry.options.model_validate(options), folders=folders)
    facts = dataset.kind, dataset.instruction, fingerprint(dataset), list(dataset.splits)
    return f"{hash_rows(dataset.inputs, dataset.labels, dataset.class_names)} {facts}"


def check_rows(source: LoadedSource) -> str | None:
    """Check that a data source returns valid rows. Return a warning about empty texts."""
    dataset = source.loaded.result()
    if not isinstance(dataset, Dataset):
        raise ContractError(f"it returned a {type(dataset).__name__}; return peekbench.Dataset")
    check_dataset(dataset, source.use)
    if absent := find_absent_class(dataset):
        raise ContractError(absent)
    empty = find_empty_texts(dataset)
    return f"warning: {pluralize(len(empty), 'empty text')}, the first in row {empty[0]}" if empty else None


def check_facts(source: LoadedSource) -> None:
    """Check that the facts of an entry agree with its rows, if it has facts."""
    if source.entry.facts is None:
        return
    dataset, facts = source.loaded.result(), source.entry.facts(source.folders)
    for name, known, actual in (
        ("num_classes", facts.num_classes, len(dataset.class_names)),
        ("num_rows", facts.num_rows, len(dataset.labels)),
        ("class_names", facts.class_names or None, tuple(dataset.class_names)),
        ("instruction", facts.instruction or None, dataset.instruction),
    ):
        if known is not None and known != actual:
            raise ContractError(f"facts.{name} is {known!r}, but the rows have {actual!r}; correct the facts")


def _of_calls(check: Callable[[RepeatedCall], None]) -> Callable[[LoadedSource], None]:
    return partial(_check_calls, check)


def _check_calls(check: Callable[[RepeatedCall], None], source: LoadedSource) -> None:
    check(source.calls)


SOURCE_CHECKS: Mapping[str, Callable[[LoadedSource], str | None]] = {
    "the rows are valid": check_rows,
    "facts agree with the rows": check_facts,
    "same rows at every call": _of_calls(check_second_call),
    "global random state is unused and unchanged": _of_calls(check_generators),
    "same rows in every process": _of_calls(check_new_process),
    "the state of the process is unchanged": _of_calls(check_state),
    "importing the plugin is fast": check_light_import,
}
"""Checks by their names, in the order in which they are done.

Examples
--------
>>> next(iter(SOURCE_CHECKS))
'the rows are valid'
"""
