"""Contract checks as tests of pytest, one for each check."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from peekbench.errors import ContractError, PeekbenchError
from peekbench.testing.entries import CHECK_NAMES, find_kinds, iterate_checks
from peekbench.testing.outcomes import CheckOutcome


class Contract:
    """The checks of one entry, which are all done when the first outcome is needed.

    Parameters
    ----------
    kind
        Kind of the entry.
    use
        Name of the entry in specs.
    options
        Options as in a spec.
    """

    def __init__(self, kind: str, use: str, options: Mapping[str, Any]) -> None:
        self._arguments = kind, use, options
        self._outcomes: dict[str, CheckOutcome] = {}

    def require(self, name: str) -> None:
        """Raise a `ContractError` if a check fails, and skip the test if it was not run."""
        if not self._outcomes:
            self._outcomes = {outcome.name: outcome for outcome in iterate_checks(*self._arguments)}
        outcome = self._outcomes[name]
        if not outcome.was_run:
            import pytest  # noqa: PLC0415 - needed by tests only

            pytest.skip(outcome.message)
        if not outcome.passed:
            raise ContractError(f"{outcome.message}\n\n{outcome.traceback}")


class NamedCheck:
    """One check of an entry; calling it raises a `ContractError` if the check fails.

    Parameters
    ----------
    contract
        All checks of the entry.
    name
        Name of the check.
    """

    def __init__(self, contract: Contract, name: str) -> None:
        self._contract, self._name = contract, name

    def __call__(self) -> None:
        """Do the check."""
        self._contract.require(self._name)


def parametrize_with_checks(
    use: str, options: Mapping[str, Any] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Parametrize a test with all contract checks of an entry, so that each check is a test of its own.

    The test has the argument `check`, a function without arguments. The first call does all checks, which share
    fits and runs. With pytest-xdist, use ``--dist loadscope``, so that one process does them.

    Parameters
    ----------
    use
        Name of a method, a data source, an executor, an analysis, an audit, an observer or a report format in specs,
        `plugin.thing`.
    options
        Options as in a spec.

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

    >>> from peekbench.testing import parametrize_with_checks
    >>> @parametrize_with_checks("controls.null")
    ... def test_contract(check):
    ...     check()
    """
    try:
        import pytest  # noqa: PLC0415 - needed by tests only
    except ImportError as error:
        raise PeekbenchError("parametrize_with_checks needs pytest; install it with `pip install pytest`") from error
    contracts = {kind: Contract(kind, use, options or {}) for kind in find_kinds(use)}
    parameters: Iterable[Any] = [
        pytest.param(NamedCheck(contract, name), id=f"{use}-{_join_words(name)}")
        for kind, contract in contracts.items()
        for name in CHECK_NAMES[kind]
    ]
    return pytest.mark.parametrize("check", parameters)


def _join_words(name: str) -> str:
    """Return the name of a check without spaces, so that it can be typed after `pytest` and `-k`."""
    return re.sub(r"[^\w]+", "-", name)
