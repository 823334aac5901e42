"""Contract checks of an entry by its name: all outcomes, one after the other, or as tests of pytest."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias
from unittest import SkipTest

from peekbench.errors import ContractError, PluginError, SpecError
from peekbench.plugins import registry
from peekbench.plugins.entries import TaskGroupEntry
from peekbench.plugins.names import join_name, locate_code, split_name
from peekbench.records.data import Dataset, SourceRef
from peekbench_testing.executors import EXECUTOR_CHECKS, executor_to_check
from peekbench_testing.methods import METHOD_CHECKS, method_to_check
from peekbench_testing.observers import OBSERVER_CHECKS, observer_to_check
from peekbench_testing.pure_entries import (
    ANALYSIS_CHECKS,
    FORMAT_CHECKS,
    SOURCE_CHECKS,
    analysis_to_check,
    format_to_check,
    source_to_check,
)
from peekbench_testing.runner import CheckOutcome, CheckRun, Checks

if TYPE_CHECKING:
    import pandas as pd

Data: TypeAlias = "Dataset | SourceRef | pd.DataFrame | None"


@dataclass(frozen=True, slots=True)
class Contract:
    """The checks of a kind of entries."""

    checks: Checks
    """Checks in the order in which they are done."""
    make: Callable[..., AbstractContextManager[Any]]
    """Function of the name of an entry, options and data: makes the argument of a check."""
    num_required: int = 1
    """Number of first checks on which all others depend."""
    data: str = ""
    """What can be given to check on: "task", "results", or nothing."""


CONTRACTS: Mapping[str, Contract] = {
    "method": Contract(METHOD_CHECKS, method_to_check, num_required=3, data="task"),
    "data source": Contract(SOURCE_CHECKS, source_to_check),
    "analysis": Contract(ANALYSIS_CHECKS, analysis_to_check, data="results"),
    "executor": Contract(EXECUTOR_CHECKS, executor_to_check),
    "observer": Contract(OBSERVER_CHECKS, observer_to_check),
    "report format": Contract(FORMAT_CHECKS, format_to_check),
}
"""Contracts by kind."""


def find_kinds(use: str) -> list[str]:
    """Return the kinds of the entries with a name that can be checked.

    Parameters
    ----------
    use
        `plugin.thing`, or the plugin's name alone.

    Raises
    ------
    PluginError
        If no plugin has such an entry, or only one that cannot be checked.
    """
    use = locate_code(use, Path.cwd())
    found = registry.find_all(use)
    for entry in found.values():
        if isinstance(entry, TaskGroupEntry):
            members = ", ".join(join_name(split_name(use)[0], member) for member in entry.members)
            raise PluginError(f"{use!r} is a group of data sources; check its members one by one: {members}")
    checked = [kind for kind in found if kind in CONTRACTS]
    if not checked:
        raise PluginError(
            f"{use!r} is of the kind {next(iter(found))}, which has no contract checks; checked are entries of the "
            f"kinds {', '.join(CONTRACTS)}"
        )
    return checked


@contextmanager
def open_checks(kind: str, use: str, options: Mapping[str, Any], data: Data = None) -> Iterator[CheckRun]:
    """Prepare an entry of a kind, as `find_kinds` returns it, for its checks."""
    contract, use = CONTRACTS[kind], locate_code(use, Path.cwd())
    given = ""
    if data is not None:
        given = "task" if isinstance(data, Dataset | SourceRef) else "results"
    if given and given != contract.data:
        raise SpecError(f"{use} is of the kind {kind}, which is not checked on a {given}; omit the {given}")
    with contract.make(use, options, data) as subject:
        yield CheckRun(contract.checks, subject, contract.num_required)


def iterate_checks(kind: str, use: str, options: Mapping[str, Any], data: Data = None) -> Iterator[CheckOutcome]:
    """Do all checks of an entry of a kind, one after the other."""
    with open_checks(kind, use, options, data) as checks:
        yield from checks


def check_entry(use: str, options: Mapping[str, Any] | None = None, *, data: Data = None) -> list[CheckOutcome]:
    """Do all contract checks of an entry.

    Methods are prepared first, for example their models are downloaded to the cache. Files that they write to
    `context.folders.cache` are deleted after the checks. An observer that keeps its data elsewhere, such as on a
    server, is sent the runs of the checks, which are named 'sample'.

    Parameters
    ----------
    use
        Name of a method, a data source, an executor, an analysis, an observer or a report format in specs,
        `plugin.thing`.
    options
        Options as in a spec. Relative paths start at the current folder.
    data
        What to check on, by default synthetic data: at least 120 rows or their data source for a method, a
        results table for an analysis, as `peekbench.load_results` returns it. If a method loads the data of its task
        again (`load_dataset(task.source)`), it gets these rows.

    Returns
    -------
    list of CheckOutcome
        Outcomes in the order of the checks. A check that an executor of its kind does not need has passed, with a
        message that says why it was skipped.

    Raises
    ------
    PluginError, SpecError
        If there is no such entry, the options are invalid, or it is not checked on such data.
    DataError
        If the dataset has too few rows, is malformed or unavailable, or the entry cannot be prepared.

    Examples
    --------
    >>> outcomes = check_entry("controls.null")
    >>> outcomes[0].name
    'fits and predicts without unlabeled inputs'
    >>> all(outcome.passed for outcome in outcomes)
    True
    """
    outcomes = (iterate_checks(kind, use, options or {}, data) for kind in find_kinds(use))
    return [outcome for of_kind in outcomes for outcome in of_kind]


class ContractTests:
    """All contract checks of an entry as tests of pytest: subclass it and name the entry.

    With pytest-xdist, use ``--dist loadscope``, so that one process does all checks of a class.

    Raises
    ------
    PluginError
        If no plugin has such an entry, or entries of its kind are not checked.

    Examples
    --------
    A test of this example is `TestNull::test_fits_and_predicts_with_unlabeled_inputs`.

    >>> from peekbench_testing import ContractTests
    >>> class TestNull(ContractTests):
    ...     use = "controls.null"
    """

    use: ClassVar[str]
    """Name of the entry in specs; see `check_entry`."""
    options: ClassVar[Mapping[str, Any]] = {}
    """Options as in a spec."""
    _prepared: ClassVar[ExitStack]
    runs: ClassVar[Mapping[str, CheckRun]]
    """The checks by kind, once the entry is prepared."""

    def __init_subclass__(cls) -> None:
        """Make each check of the entry a test."""
        super().__init_subclass__()
        for kind in find_kinds(cls.use):
            for name in CONTRACTS[kind].checks:
                words = re.sub(r"\W+", "_", name)
                setattr(cls, f"test_{words}", _make_test(kind, name))

    @classmethod
    def setup_class(cls) -> None:
        """Prepare the entry; pytest calls this before the first test."""
        cls._prepared = ExitStack()
        cls.runs = {
            kind: cls._prepared.enter_context(open_checks(kind, cls.use, cls.options)) for kind in find_kinds(cls.use)
        }

    @classmethod
    def teardown_class(cls) -> None:
        """Delete what the checks wrote; pytest calls this after the last test."""
        cls._prepared.close()


def _make_test(kind: str, name: str) -> Callable[[ContractTests], None]:
    def test(self: ContractTests) -> None:
        outcome = self.runs[kind].run(name)
        if not outcome.was_run:
            raise SkipTest(outcome.message)  # pytest skips the test
        if not outcome.passed:
            raise ContractError(f"{outcome.message}\n\n{outcome.traceback}".rstrip())

    return test
