"""Contract checks of an entry by its name: all outcomes, one after the other, or as tests of pytest."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from peekbench.errors import ContractError, PeekbenchError, PluginError, SpecError
from peekbench.plugins import registry
from peekbench.plugins.entries import TaskGroupEntry
from peekbench.plugins.hookspecs import KINDS
from peekbench.plugins.local_code import is_code, join_name, locate_code, split_name
from peekbench.records.data import Dataset, SourceRef
from peekbench_testing.executors import EXECUTOR_CHECKS, executor_to_check
from peekbench_testing.methods import METHOD_CHECKS, method_to_check
from peekbench_testing.observers import OBSERVER_CHECKS, observer_to_check
from peekbench_testing.pure_entries import (
    ANALYSIS_CHECKS,
    AUDIT_CHECKS,
    FORMAT_CHECKS,
    SOURCE_CHECKS,
    analysis_to_check,
    audit_to_check,
    format_to_check,
    source_to_check,
)
from peekbench_testing.runner import CheckOutcome, Checks, run_checks

if TYPE_CHECKING:
    import pandas as pd

Data: TypeAlias = "Dataset | SourceRef | pd.DataFrame | None"


@dataclass(frozen=True, slots=True)
class Contract:
    """The checks of a kind of entries."""

    checks: Checks
    """Checks in the order in which they are done."""
    make: Callable[..., AbstractContextManager[Any]]
    """Function of the name of an entry, options, data and, for methods, a time limit: makes the argument of a check."""
    num_required: int = 1
    """Number of first checks on which all others depend."""
    data: str = ""
    """What can be given to check on: "task", "results", or nothing."""


CONTRACTS: Mapping[str, Contract] = {
    "method": Contract(METHOD_CHECKS, method_to_check, num_required=2, data="task"),
    "data source": Contract(SOURCE_CHECKS, source_to_check),
    "analysis": Contract(ANALYSIS_CHECKS, analysis_to_check, data="results"),
    "audit": Contract(AUDIT_CHECKS, audit_to_check, data="task"),
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
    registry.check_known(use)
    plugin, name = split_name(use)
    offers = registry.load(plugin).offers
    kinds = [kind for kind in KINDS if name in offers[kind.name]]
    if not kinds:
        names = sorted(join_name(plugin, other) for entries in offers.values() for other in entries)
        if is_code(plugin):
            raise registry.explain_missing_function(use, names)
        remedy = registry.suggest(use) or f"{plugin} offers: {', '.join(names)}"
        raise PluginError(f"no entry {use!r}; {remedy}")
    for kind in kinds:
        entry = offers[kind.name][name]
        if isinstance(entry, TaskGroupEntry):
            members = ", ".join(join_name(plugin, member) for member in entry.members)
            raise PluginError(f"{use!r} is a group of data sources; check its members one by one: {members}")
    checked = [kind.name for kind in kinds if kind.name in CONTRACTS]
    if not checked:
        raise PluginError(
            f"{use!r} is one of the {kinds[0].plural}, which have no contract checks; checked are entries of the kinds "
            f"{', '.join(CONTRACTS)}"
        )
    return checked


def iterate_checks(
    kind: str, use: str, options: Mapping[str, Any], data: Data = None, timeout: float | None = None
) -> Iterator[CheckOutcome]:
    """Do all checks of an entry of a kind, as `find_kinds` returns it, one after the other."""
    contract, use = CONTRACTS[kind], locate_code(use, Path.cwd())
    given = "" if data is None else "task" if isinstance(data, Dataset | SourceRef) else "results"
    if given and given != contract.data:
        raise SpecError(f"{use} is of the kind {kind}, which is not checked on a {given}; omit the {given}")
    if timeout is not None and kind != "method":
        raise SpecError(f"{use} is of the kind {kind}, and `timeout` limits the calls of methods; omit it")
    arguments = (use, options, data) if timeout is None else (use, options, data, timeout)
    with contract.make(*arguments) as subject:
        yield from run_checks(contract.checks, subject, contract.num_required)


def check_entry(
    use: str, options: Mapping[str, Any] | None = None, *, data: Data = None, timeout: float | None = None
) -> list[CheckOutcome]:
    """Do all contract checks of an entry.

    Methods and audits are prepared first, for example their models are downloaded to the cache. Files that they write
    to `context.folders.cache` are deleted after the checks. An observer that keeps its data elsewhere, such as on a
    server, is sent the runs of the checks, which are named 'sample'.

    Parameters
    ----------
    use
        Name of a method, a data source, an executor, an analysis, an audit, an observer or a report format in specs,
        `plugin.thing`.
    options
        Options as in a spec. Relative paths start at the current folder.
    data
        What to check on, by default synthetic data: at least 120 rows or their data source for a method or an audit, a
        results table for an analysis, as `peekbench.load_results` returns it. If a method loads the data of its task
        again (`load_dataset(task.source)`), it gets these rows.
    timeout
        Seconds that each fit and each prediction of a method may take; by default 300.

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
    outcomes = (iterate_checks(kind, use, options or {}, data, timeout) for kind in find_kinds(use))
    return [outcome for of_kind in outcomes for outcome in of_kind]


class NamedCheck:
    """One check of an entry; calling it raises a `ContractError` if the check fails.

    All checks of an entry are done when the first outcome is needed.
    """

    def __init__(self, compute: Callable[[], Iterable[CheckOutcome]], outcomes: dict[str, CheckOutcome], name: str):
        self._compute, self._outcomes, self._name = compute, outcomes, name

    def __call__(self) -> None:
        """Raise a `ContractError` if the check fails, and skip the test if it was not run."""
        if not self._outcomes:
            self._outcomes.update({outcome.name: outcome for outcome in self._compute()})
        outcome = self._outcomes[self._name]
        if not outcome.was_run:
            import pytest  # noqa: PLC0415 - needed by tests only

            pytest.skip(outcome.message)
        if not outcome.passed:
            raise ContractError(f"{outcome.message}\n\n{outcome.traceback}")


def parametrize_with_checks(
    use: str, options: Mapping[str, Any] | None = None, *, timeout: float | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Parametrize a test with all contract checks of an entry, so that each check is a test of its own.

    The test has the argument `check`, a function without arguments. The first call does all checks, which share
    fits and runs. With pytest-xdist, use ``--dist loadscope``, so that one process does them.

    Parameters
    ----------
    use
        Name of the entry in specs; see `check_entry`.
    options
        Options as in a spec.
    timeout
        Seconds that each fit and each prediction of a method may take; by default 300.

    Returns
    -------
    Callable
        Decorator of a test.

    Raises
    ------
    PluginError
        If no plugin has such an entry, or entries of its kind are not checked.
    PeekbenchError
        If pytest is not installed.

    Examples
    --------
    The second test of this example is `test_contract[controls.null-fits-and-predicts-with-unlabeled-inputs]`.

    >>> from peekbench_testing import parametrize_with_checks
    >>> @parametrize_with_checks("controls.null")
    ... def test_contract(check):
    ...     check()
    """
    try:
        import pytest  # noqa: PLC0415 - needed by tests only
    except ImportError as error:
        raise PeekbenchError("parametrize_with_checks needs pytest; install it with `pip install pytest`") from error
    parameters: list[Any] = []
    for kind in find_kinds(use):
        outcomes: dict[str, CheckOutcome] = {}
        compute = partial(iterate_checks, kind, use, options or {}, timeout=timeout)
        for name in CONTRACTS[kind].checks:
            words = re.sub(r"[^\w]+", "-", name)  # so that it can be typed after `pytest` and `-k`
            parameters.append(pytest.param(NamedCheck(compute, outcomes, name), id=f"{use}-{words}"))
    return pytest.mark.parametrize("check", parameters)
