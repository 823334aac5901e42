"""The command line; the only place that prints or exits.

Exit statuses: 0 success, 2 an error that the user can fix, 3 failed trials, and 128 plus the number of the signal that
ended the command, such as 130 for Ctrl-C. Commands import their modules when they run, so that `peekbench --help` is
fast.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from peekbench.cli import analyze, app, output, run, show, store
from peekbench.errors import PeekbenchError, PluginWarning
from peekbench.streams import protect_streams

__all__ = ["analyze", "app", "main", "run", "run_command", "show", "store"]


SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals of Ctrl-C, of batch systems, and of a terminal that closes."""
SHUTDOWN_SECONDS = 3.0
"""Time in which a command ends after a signal; it ignores further signals until then."""


def _interrupt_on_signals() -> list[int]:
    """Let signals end this process in the same way as Ctrl-C, and those that follow at once not disturb its end.

    Returns
    -------
    list of int
        Numbers of the signals received so far.
    """
    received: list[int] = []
    last = 0.0

    def interrupt(number: int, frame: object) -> None:
        nonlocal last
        received.append(number)
        if len(received) == 1 or time.monotonic() - last > SHUTDOWN_SECONDS:
            last = time.monotonic()
            raise KeyboardInterrupt

    _handle_signals(interrupt)
    return received


def _handle_signals(handler: Callable[[int, object], object] | signal.Handlers) -> None:
    for number in SIGNALS:
        # `nohup` and shells ignore signals on purpose for the commands that they start in the background.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


@contextmanager
def _plain_plugin_warnings() -> Iterator[None]:
    """Print warnings about broken plugins in one line, without a place in the source code."""
    show_other = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: object) -> None:
        if issubclass(category, PluginWarning):
            output.echo(f"peekbench: warning: {message}", err=True)
        else:
            show_other(message, category, *place)  # type: ignore[arg-type]

    warnings.showwarning = show  # type: ignore[assignment]
    try:
        yield
    finally:
        warnings.showwarning = show_other


def run_command() -> int:
    """Run the command of `sys.argv` and return its exit status."""
    try:
        with _plain_plugin_warnings():
            app.app()
    except PeekbenchError as error:
        output.echo(f"peekbench: {error}", err=True)
        return output.ERROR
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else output.SUCCESS
    return output.SUCCESS


def main() -> None:
    """Run the command `peekbench` and end the process."""
    protect_streams()
    atexit.register(_handle_signals, signal.SIG_IGN)  # the interpreter restores other handlers before it ends
    received = _interrupt_on_signals()
    try:
        status = output.exit_status(run_command())
    except KeyboardInterrupt:
        status = output.INTERRUPTED
    if status == output.INTERRUPTED and received:
        status = 128 + received[0]
    _handle_signals(lambda *_: os._exit(status))  # the command has ended; what is left can take long, such as threads
    sys.exit(status)
