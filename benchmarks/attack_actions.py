"""Exceptions and actions of the behaviors in `attack_behaviors`."""

from __future__ import annotations

import os
import resource
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any


class NoTextError(Exception):
    """An exception whose text cannot be formatted."""

    def __str__(self) -> str:
        """Raise an error."""
        raise RuntimeError("no text")


class NotAnError(BaseException):
    """An exception that is not an Exception."""


class UnpicklableError(Exception):
    """An exception that cannot be pickled."""

    def __init__(self) -> None:
        super().__init__(lambda: None)


class RaisesWhenDeleted:
    """An object whose deletion raises an error."""

    def __del__(self) -> None:
        """Raise an error."""
        raise RuntimeError("deleted")


def with_bad_notes() -> BaseException:
    """Return an exception whose notes are no list."""
    error = ValueError("unusual")
    error.__notes__ = 7  # type: ignore[assignment]
    return error


def chained() -> BaseException:
    """Return an exception with many causes."""
    error: BaseException = ValueError("first")
    for number in range(300):
        following = ValueError(f"link {number}")
        following.__cause__ = error
        error = following
    return error


def recurse(depth: int = 0) -> int:
    """Recurse without end."""
    return recurse(depth + 1) + 1


def fork_and(child: Callable[[], object]) -> None:
    """Fork, and run a function in the child process, which then returns from the fit."""
    process = os.fork()
    if process == 0:
        child()
    elif child is not sleep_long:
        os.waitpid(process, 0)


def sleep_long() -> None:
    """Sleep for longer than the attack takes."""
    time.sleep(600)


def fail() -> None:
    """Raise an error."""
    raise RuntimeError("raised")


def kill_parent() -> None:
    """Kill the main process in the middle of a fit."""
    os.kill(os.getppid(), signal.SIGKILL)
    sleep_long()


def stop_parent() -> None:
    """Stop the main process and let it continue."""
    os.kill(os.getppid(), signal.SIGSTOP)
    os.kill(os.getppid(), signal.SIGCONT)


def fork_pool() -> None:
    """Use processes as methods usually do."""
    with get_context("fork").Pool(2) as pool:
        pool.map(abs, [-1, -2])


def write_everywhere() -> None:
    """Write to every open file except the standard ones."""
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b"\0\0\0\4junk")
        except OSError:
            continue


def redirect_everywhere() -> None:
    """Replace every open file except the standard ones."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3, 64):
        if descriptor != null:
            os.dup2(null, descriptor)


KEPT: list[Any] = []


def exhaust_descriptors() -> None:
    """Open files until no more can be opened."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    KEPT.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(100))


def delete_working_directory() -> None:
    """Change to a directory and delete it."""
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    Path(folder).rmdir()


def delete_store() -> None:
    """Delete the store of the run and its companions."""
    for path in Path("runs").glob("*.sqlite*"):
        path.unlink()


def start_thread(target: Callable[[], object], *, daemon: bool) -> None:
    """Start a thread that the fit leaves behind."""
    threading.Thread(target=target, daemon=daemon).start()


def patch(module: Any, name: str) -> None:
    """Replace a function by one that fails."""
    setattr(module, name, lambda *arguments, **keywords: fail())
