"""Outcomes of checks, and the loop that runs checks one after the other."""

from __future__ import annotations

import decimal
import os
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from peekbench.errors import ContractError, PeekbenchError
from peekbench.execution.determinism import ProcessState, one_thread_pools, preserve_global_generators
from peekbench.plugins.exceptions import describe_exception, find_place
from peekbench.testing.watch import TimeLimitError, watched

SubjectT = TypeVar("SubjectT")


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
    problem: str = ""
    """The same for all checks that fail in the same way; empty if the check passed, or if it is the message."""
    traceback: str = ""
    """Traceback of the exception that failed the check; empty if the check passed."""
    was_run: bool = True
    """False for a check that was not run, and so did not pass, because its outcome would repeat an earlier failure."""
    is_timeout: bool = False
    """Whether the check was ended at a time limit."""


def run_checks(
    checks: Mapping[str, Callable[[SubjectT], str | None]], subject: SubjectT, num_required: int = 0
) -> Iterator[CheckOutcome]:
    """Run checks one after the other, as a worker runs fits: BLAS and OpenMP have one thread.

    After each check, the global generators and the state of the process are restored as far as possible, so that a
    check does not depend on the others.

    Parameters
    ----------
    checks
        Checks by name. A check returns None, or a warning.
    subject
        Argument of each check.
    num_required
        Number of first checks on which all others depend. If one of them fails, the others are not run.

    Yields
    ------
    CheckOutcome
        Outcome of each check. An exception that is not a `ContractError` fails the check, too.
    """
    failed = ""
    for number, (name, check) in enumerate(checks.items()):
        if failed and number >= num_required:
            yield not_run(name, failed)
            continue
        with one_thread_pools(), preserve_global_generators(), preserved_state():
            outcome = _run(name, check, subject, (number + 1, len(checks)))
        if outcome.is_timeout:
            failed, num_required = name, 0
        elif number < num_required and not outcome.passed:
            failed = failed or name
        yield outcome


def not_run(name: str, failed: str) -> CheckOutcome:
    """Return the outcome of a check that is not run because another one has failed."""
    return CheckOutcome(name, False, f"not run, because another check failed: {failed}", was_run=False)


@contextmanager
def preserved_state() -> Iterator[None]:
    """Restore what a method may have changed: environment, working folder, signal handlers, warning filters and others.

    What cannot be restored, such as threads, remains.
    """
    state, mask = ProcessState(), os.umask(0)
    os.umask(mask)
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    try:
        with warnings.catch_warnings(), decimal.localcontext(), np.printoptions():
            yield
    finally:
        state.restore()
        os.umask(mask)
        for number, handler in handlers.items():
            if handler is not None and signal.getsignal(number) != handler:
                signal.signal(number, handler)


def _run(
    name: str, check: Callable[[SubjectT], str | None], subject: SubjectT, position: tuple[int, int]
) -> CheckOutcome:
    try:
        with watched(name, *position):
            warning = check(subject)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # also SystemExit, which fails a trial in a run, too
        cause = error.__cause__ if isinstance(error, ContractError) and error.__cause__ else error
        text = "".join(traceback.format_exception(error))
        is_timeout = isinstance(error, TimeLimitError)
        return CheckOutcome(name, False, _describe(error), _describe(cause), text, is_timeout=is_timeout)
    return CheckOutcome(name, True, warning or "")


def _describe(error: BaseException) -> str:
    if isinstance(error, TimeLimitError):
        return f"{error} ({find_place(error) or 'in a library, or in another process'})"
    return str(error) if isinstance(error, PeekbenchError) else f"it raised {describe_exception(error)}"
