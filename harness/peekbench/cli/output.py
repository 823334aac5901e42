"""Everything that commands print passes through this module.

Text from data, file names and errors cannot control the terminal, because `echo` and the console of `make_console`
escape control characters.
"""

from __future__ import annotations

import errno
import shlex
import sys
from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, NoReturn, TextIO

import typer

from peekbench.errors import PeekbenchError, ResultsError
from peekbench.formatting import shorten, visible_lines

if TYPE_CHECKING:
    from rich.console import Console

MAX_MESSAGE = 10_000  # characters of an error message or a warning
SUCCESS, ERROR, FAILED, GATED, INTERRUPTED = 0, 2, 3, 4, 130
"""Exit statuses: success, an error that the user can fix, failed trials, a verdict of `--fail-on`, interrupted."""
_is_quiet: ContextVar[bool] = ContextVar("_is_quiet", default=False)
_results: ContextVar[TextIO | None] = ContextVar("_results", default=None)
"""The standard output, while what others print goes to the standard error."""


def describe_error(error: PeekbenchError, arguments: Sequence[str]) -> str:
    """Return the message about an error of a command, with the complete command that works if the error knows it."""
    if not isinstance(error, ResultsError) or not error.arguments:
        return f"peekbench: {error}"
    given = list(arguments)
    while "--task" in error.arguments and "--task" in given:  # its tasks replace those that were chosen
        position = given.index("--task")
        del given[position : position + 2]
    return f"peekbench: {error.problem}:\n  {shlex.join(['peekbench', *given, *error.arguments])}"


def exit_status(status: int) -> int:
    """Return the exit status of a command, after its output is flushed.

    Parameters
    ----------
    status
        Status of the command's work.

    Returns
    -------
    int
        The same status, or `ERROR` if the work succeeded but its output is lost for another reason than a reader that
        closed the pipe.
    """
    sys.stdout.flush()
    problem = getattr(sys.stdout, "problem", None)
    if problem is None or problem.errno == errno.EPIPE:
        return status
    echo(
        f"peekbench: cannot write to the standard output: {problem.strerror}; output is missing there, but files and "
        "stores are complete. Redirect the output to another place",
        err=True,
    )
    return status or ERROR


def echo(text: str, *, err: bool = False, end: str = "\n") -> None:
    """Print text with its control characters escaped.

    Parameters
    ----------
    text
        Text to print.
    err
        Print to the standard error; long messages are shortened.
    end
        Text to print after it.
    """
    stream = sys.stderr if err else _results.get() or sys.stdout
    stream.write(visible_lines(shorten(text, MAX_MESSAGE) if err else text) + end)
    stream.flush()


def keep_results_apart() -> None:
    """Send what methods, observers and analyses print in this process to the standard error from now on.

    The standard output then has only what `echo` and consoles print. What worker processes print goes there anyway.
    """
    if _results.get() is None:
        _results.set(sys.stdout)
        sys.stdout = sys.stderr


def restore_stdout() -> None:
    """Undo `keep_results_apart`."""
    if (stdout := _results.get()) is not None:
        sys.stdout = stdout
        _results.set(None)


def be_quiet(quiet: bool = True) -> None:
    """Let `note` and `warn` print nothing from now on, or again if `quiet` is False."""
    _is_quiet.set(quiet)


def note(text: str) -> None:
    """Print what is neither a result nor an error to the standard error, unless `--quiet` is given."""
    if not _is_quiet.get():
        echo(text, err=True)


def warn(text: str) -> None:
    """Print a warning to the standard error, unless `--quiet` is given."""
    note(f"warning: {text}")


def fail(message: str, status: int) -> NoReturn:
    """Print an error message and exit."""
    echo(f"peekbench: {message}", err=True)
    raise typer.Exit(status)


def make_console(*, err: bool = False) -> Console:
    """Return a console that prints to the standard output, or error, and escapes control characters."""
    from peekbench.progress import PrintableConsole  # noqa: PLC0415 - few commands need rich

    return PrintableConsole(stderr=err, file=None if err else _results.get())
