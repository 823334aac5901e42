"""The command line; the only place that prints or exits.

Exit statuses: 0 success, 2 an error that the user can fix, 3 failed trials, 130 interrupted. Commands import their
modules when they run, so that `peekbench --help` is fast.
"""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from peekbench.cli import analyze, app, output, run, show, store
from peekbench.errors import PeekbenchError, PluginWarning
from peekbench.streams import protect_streams

__all__ = ["analyze", "app", "main", "run", "show", "store"]


@contextmanager
def _interrupt_on_sigterm() -> Iterator[None]:
    """Let SIGTERM, which batch systems send, end a run in the same way as Ctrl-C."""

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


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


def main() -> None:
    """Run the command `peekbench`."""
    protect_streams()
    try:
        with _interrupt_on_sigterm(), _plain_plugin_warnings():
            app.app()
    except PeekbenchError as error:
        output.echo(f"peekbench: {error}", err=True)
        status = output.ERROR
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else output.SUCCESS
    sys.exit(output.exit_status(status))
