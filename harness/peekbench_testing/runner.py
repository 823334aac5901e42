"""Runs contract checks: outcomes, and results that several checks use."""

from __future__ import annotations

import random
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from peekbench.errors import ContractError, PeekbenchError
from peekbench.execution.determinism import ProcessState, one_thread_pools, preserve_global_generators
from peekbench.plugins.boundary import describe_exception
from peekbench_testing.conditions import TimeLimitError

T = TypeVar("T")
HERE = Path(__file__).resolve().parent
"""Folder of the checks, which are no place of an error of a plugin."""
Checks: TypeAlias = Mapping[str, Callable[[Any], str | None]]
"""Checks by name. A check raises an exception if it fails, and returns None, or a note to print if it passes."""
GENERATORS = "a global generator, `random`, `numpy.random` or torch's"
SEED = 20_001  # no seed of a fit, because a method that seeds a generator with it would change nothing


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

    After each check, the global generators and the state of the process are restored as far as possible, so that a
    check does not depend on the others.

    Parameters
    ----------
    checks
        Checks by name.
    subject
        Argument of each check.
    num_required
        Number of first checks on which all others depend. If one of them fails, the others are not run. After a call
        that takes longer than the time limit, no check is run.
    """

    def __init__(self, checks: Checks, subject: object, num_required: int = 0) -> None:
        self._checks, self._subject = checks, subject
        self._required = set(list(checks)[:num_required])
        self._failed = ""

    def __iter__(self) -> Iterator[CheckOutcome]:
        """Do all checks, one after the other."""
        return map(self.run, self._checks)

    def run(self, name: str) -> CheckOutcome:
        """Do one check; an exception that is not a `ContractError` fails it, too."""
        if self._failed and name not in self._required:
            reason = f"not run, because another check failed: {self._failed}"
            return CheckOutcome(name, False, reason, was_run=False)
        with one_thread_pools(), preserve_global_generators(), preserved_state():
            outcome, is_over_limit = _run(name, self._checks[name], self._subject)
        if is_over_limit:
            self._failed = name
            self._required.clear()  # they would wait as long
        elif name in self._required and not outcome.passed:
            self._failed = self._failed or name
        return outcome


@contextmanager
def preserved_state() -> Iterator[None]:
    """Restore the environment, the working folder, warning filters and settings of numpy after the block."""
    state = ProcessState()
    try:
        with warnings.catch_warnings(), np.printoptions():
            yield
    finally:
        state.restore()


def _run(name: str, check: Callable[[Any], str | None], subject: object) -> tuple[CheckOutcome, bool]:
    """Run a check, and return its outcome, and whether a call took longer than the time limit."""
    try:
        note = check(subject)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # also SystemExit, which fails a trial in a run, too
        message = str(error) if isinstance(error, PeekbenchError) else f"it raised {describe_exception(error, HERE)}"
        is_explained = isinstance(error, ContractError) or (isinstance(error, PeekbenchError) and not error.__cause__)
        lines = [] if is_explained else traceback.format_exception(error)
        outcome = CheckOutcome(name, False, message, "".join(lines))
        return outcome, isinstance(error, TimeLimitError)
    return CheckOutcome(name, True, note or ""), False


class Attempt:
    """The value that a function returned, or the exception that it raised."""

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._error: Exception | None = None
        try:
            self._value = compute()
        except TimeLimitError:
            raise
        except Exception as error:
            self._error, self._place = error, error.__traceback__

    def result(self) -> Any:
        """Return the value, or raise the exception."""
        if self._error is not None:
            raise self._error.with_traceback(self._place)
        return self._value


class Memo:
    """Results that several checks use: each is computed once, and an exception is raised at each call."""

    def __init__(self) -> None:
        self._attempts: dict[str, Attempt] = {}

    def share(self, name: str, compute: Callable[[], T]) -> T:
        """Return the result of this name."""
        if name not in self._attempts:
            self._attempts[name] = Attempt(compute)
        value: T = self._attempts[name].result()
        return value


def call_with_seed(function: Callable[[], T]) -> T:
    """Seed the global generators, call a function, and refuse a change of the generators."""
    torch: Any = sys.modules.get("torch")
    torch_state = torch and torch.get_rng_state()
    with preserve_global_generators():
        random.seed(SEED)
        np.random.seed(SEED)
        if torch:
            torch.manual_seed(SEED)
        before = _read_generators(torch)
        try:
            value = function()
            after = _read_generators(torch)
        finally:
            if torch:
                torch.set_rng_state(torch_state)
    if changed := [name for name, state in before.items() if after[name] != state]:
        raise ContractError(
            f"it changes the state of {' and '.join(changed)}; use a generator of its own, such as "
            "numpy.random.default_rng(context.seed), or torch.random.fork_rng() around torch's"
        )
    return value


def _read_generators(torch: Any) -> dict[str, str]:
    """Return the state of each generator in a form that can be compared."""
    numpy_state: Any = np.random.get_state()
    _, keys, *rest = numpy_state
    states = {"random": repr(random.getstate()), "numpy.random": f"{keys.tobytes()} {rest}"}
    return states | ({"torch": str(torch.get_rng_state().tolist())} if torch else {})
