"""Progress and time limits of checks, which `peekbench check` shows and sets."""

from __future__ import annotations

import faulthandler
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

SHUTDOWN_TIMEOUT = 30.0
"""Seconds that code which is not Python has to end after the time limit."""


class TimeLimitError(BaseException):
    """A check has reached its time limit; no `Exception`, so that a method does not catch it."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What happens at the start of a check, and how long it may take."""

    announce: Callable[[str, int, int], None]
    """Function of a check's name, its position from 1 on, and the number of checks."""
    time_limit: float
    """Seconds for each check."""


_watch: ContextVar[Watch | None] = ContextVar("_watch", default=None)


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Watch all checks in the block, which must be in the main thread.

    Parameters
    ----------
    watch
        What to do.
    """
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


@contextmanager
def watched(name: str, position: int, num_checks: int) -> Iterator[None]:
    """Announce a check and limit its time, if checks are watched.

    Parameters
    ----------
    name
        Name of the check.
    position
        Its position from 1 on.
    num_checks
        Number of checks.

    Raises
    ------
    TimeLimitError
        If Python code takes too long. If other code does, the process ends after `SHUTDOWN_TIMEOUT` seconds more, and
        prints where it was.
    """
    watch = _watch.get()
    if watch is None:
        yield
        return
    watch.announce(name, position, num_checks)

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        raise TimeLimitError(
            f"it did not end within {watch.time_limit:g} s; look for a loop or a call that does not end, or give slow "
            "code more time with --time-limit SECONDS"
        )

    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, watch.time_limit)
    with suppress(AttributeError, OSError, ValueError):  # no standard error
        faulthandler.dump_traceback_later(
            watch.time_limit + SHUTDOWN_TIMEOUT, exit=True, file=sys.__stderr__ or sys.stderr
        )
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
