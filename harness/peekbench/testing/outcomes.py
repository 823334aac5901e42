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

from peekbench.errors import ContractError
from peekbench.execution.determinism import ProcessState, one_thread_pools, preserve_global_generators

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
    """Problem and remedy, with the arm in which it occurs; if the check was skipped, why; otherwise empty."""
    problem: str = ""
    """The same for all checks that fail in the same way; empty if the check passed, or if it is the message."""
    traceback: str = ""
    """Traceback of the exception that failed the check; empty if the check passed."""


def run_checks(checks: Mapping[str, Callable[[SubjectT], None]], subject: SubjectT) -> Iterator[CheckOutcome]:
    """Run checks one after the other, as a worker runs fits: BLAS and OpenMP have one thread.

    After each check, the global generators and the state of the process are restored as far as possible, so that a
    check does not depend on the others.

    Parameters
    ----------
    checks
        Checks by name.
    subject
        Argument of each check.

    Yields
    ------
    CheckOutcome
        Outcome of each check. An exception that is not a `ContractError` fails the check, too.
    """
    for name, check in checks.items():
        with one_thread_pools(), preserve_global_generators(), preserved_state():
            outcome = _run(name, check, subject)
        yield outcome


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


def _run(name: str, check: Callable[[SubjectT], None], subject: SubjectT) -> CheckOutcome:
    try:
        check(subject)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # also SystemExit, which fails a trial in a run, too
        cause = error.__cause__ if isinstance(error, ContractError) and error.__cause__ else error
        text = "".join(traceback.format_exception(error))
        return CheckOutcome(name, False, _describe(error), _describe(cause), text)
    return CheckOutcome(name, True)


def _describe(error: BaseException) -> str:
    return str(error) if isinstance(error, ContractError) else f"it raised {type(error).__name__}: {error}"
