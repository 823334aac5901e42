"""Runs contract checks of one subject, and keeps what several checks use."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from peekbench.errors import ContractError, PeekbenchError
from peekbench.execution.determinism import ProcessState, one_thread_pools, preserve_global_generators
from peekbench.plugins.boundary import describe_exception

T = TypeVar("T")
HERE = Path(__file__).resolve().parent
"""Folder of the checks, which are no place of an error of a plugin."""
Checks: TypeAlias = Mapping[str, Callable[[Any], str | None]]
"""Checks by name. A check raises an exception if it fails, and returns None, or a note to print if it passes."""


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """Outcome of one check.

    Examples
    --------
    >>> CheckOutcome("same seed, same predictions", passed=True).message
    ''
    """

    name: str
    """Name of the check, such as a key of `METHOD_CHECKS`."""
    passed: bool
    """Whether the check passed."""
    message: str = ""
    """Problem and remedy, with the arm in which it occurs; if the check was skipped or not run, why; a warning if it
    passed with one; otherwise empty."""
    traceback: str = ""
    """Traceback of an exception of other code; empty if the check passed, or the message explains its failure."""
    was_run: bool = True
    """False for a check that was not run, and so did not pass, because its outcome would repeat an earlier failure."""


class CheckRun:
    """Does checks of one subject, as a worker runs fits: BLAS and OpenMP have one thread.

    After each check, the global generators and the state of the process are restored, so that a check does not depend
    on the others.

    Parameters
    ----------
    checks
        Checks by name.
    subject
        Argument of each check.
    num_required
        Number of first checks on which all others depend. If one of them fails, the others are not run.
    """

    def __init__(self, checks: Checks, subject: object, num_required: int = 0) -> None:
        self._checks, self._subject = checks, subject
        self._required = list(checks)[:num_required]
        self._failed = ""

    def __iter__(self) -> Iterator[CheckOutcome]:
        """Do all checks, one after the other."""
        return map(self.run, self._checks)

    def run(self, name: str) -> CheckOutcome:
        """Do one check; an exception that is not a `ContractError` fails it, too."""
        if self._failed and name not in self._required:
            reason = f"not run, because another check failed: {self._failed}"
            return CheckOutcome(name, False, reason, was_run=False)
        state = ProcessState()
        try:
            with one_thread_pools(), preserve_global_generators():
                outcome = _run(name, self._checks[name], self._subject)
        finally:
            state.restore()
        if name in self._required and not outcome.passed:
            self._failed = self._failed or name
        return outcome


def _run(name: str, check: Callable[[Any], str | None], subject: object) -> CheckOutcome:
    try:
        note = check(subject)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # also SystemExit, which fails a trial in a run, too
        message = str(error) if isinstance(error, PeekbenchError) else f"it raised {describe_exception(error, HERE)}"
        is_explained = isinstance(error, ContractError) or (isinstance(error, PeekbenchError) and not error.__cause__)
        lines = [] if is_explained else traceback.format_exception(error)
        return CheckOutcome(name, False, message, "".join(lines))
    return CheckOutcome(name, True, note or "")


class Memo:
    """Results that several checks use."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def share(self, name: str, compute: Callable[[], T]) -> T:
        """Return the result of this name, which is computed at the first call."""
        if name not in self._values:
            self._values[name] = compute()
        value: T = self._values[name]
        return value
