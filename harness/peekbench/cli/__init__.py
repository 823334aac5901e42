"""The command line; the only place that prints or exits.

Exit statuses: 0 success, 2 an error that the user can fix, 3 failed trials, 4 a verdict that `--fail-on` names, and 128
plus the number of the signal that ended the command, such as 130 for Ctrl-C. The module of a command
is imported when it runs, so that `peekbench --help` is fast.
"""

from __future__ import annotations

import atexit
import gc
import math
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from peekbench.cli import app, output
from peekbench.errors import PeekbenchError, PluginWarning
from peekbench.standard_streams import protect_streams

__all__ = ["main", "run_command"]

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals of Ctrl-C, of batch systems, and of a terminal that closes."""
SHUTDOWN_SECONDS = 3.0
"""Time in which a command ends after a signal; it ignores further signals until then."""
GARBAGE_THRESHOLD = 50_000
"""New objects after which the interpreter looks for garbage: its own 700 look for it hundreds of times in imports."""


class _Interrupt(KeyboardInterrupt):
    """Ends a command after a signal.

    A class of its own, because `python -m peekbench` exits with the status of SIGINT after a plain KeyboardInterrupt
    that passed through `exec`, which the standard library uses to make data classes, even if it was caught.
    """


class _Signals:
    """Lets signals end this process in the same way as Ctrl-C, and those that follow at once not disturb its end."""

    def __init__(self) -> None:
        self.received: list[int] = []
        self._last = -math.inf
        self._is_running = True

    def start(self) -> None:
        """Handle signals from now on."""
        _handle_signals(self._interrupt)

    def _interrupt(self, number: int, frame: object) -> None:
        self.received.append(number)
        if self._is_running and time.monotonic() - self._last > SHUTDOWN_SECONDS:
            self._last = time.monotonic()
            raise _Interrupt

    def stop(self) -> None:
        """Let signals interrupt nothing more."""
        self._is_running = False


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
            output.note(f"peekbench: warning: {message}")
        else:
            show_other(message, category, *place)  # type: ignore[arg-type]

    warnings.showwarning = show  # type: ignore[assignment]
    try:
        yield
    finally:
        warnings.showwarning = show_other


def run_command() -> int:
    """Run the command of `sys.argv` and return its exit status."""
    output.be_quiet(False)
    try:
        with _plain_plugin_warnings():
            app.app()
    except PeekbenchError as error:
        output.echo(output.describe_error(error, sys.argv[1:]), err=True)
        return output.ERROR
    except MemoryError:
        output.echo("peekbench: the memory is full; close other programs, raise its limit, or use less data", err=True)
        return output.ERROR
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else output.SUCCESS
    return output.SUCCESS


def main() -> None:
    """Run the command `peekbench` and end the process."""
    gc.set_threshold(GARBAGE_THRESHOLD)
    protect_streams()
    atexit.register(_handle_signals, signal.SIG_IGN)  # the interpreter restores other handlers before it ends
    signals = _Signals()
    try:
        signals.start()
        status = output.exit_status(run_command())
        signals.stop()
    except KeyboardInterrupt:
        status = output.INTERRUPTED
        signals.stop()
    if status == output.INTERRUPTED and signals.received:
        status = 128 + signals.received[0]
    _handle_signals(lambda *_: os._exit(status))  # the command has ended; what is left can take long, such as threads
    gc.freeze()  # the interpreter would search all objects for garbage, a sixth of the time of a short command
    sys.exit(status)
