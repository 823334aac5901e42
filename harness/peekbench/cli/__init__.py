"""The command line; the only place that prints or exits.

Exit statuses: 0 all is well, 2 the user can mend it, 3 trials failed, 130 interrupted. Commands import what they need
when they run, so that `peekbench --help` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from peekbench.cli import analyze, app, run, show
from peekbench.errors import PeekbenchError

__all__ = ["analyze", "app", "main", "run", "show"]


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """Let SIGTERM, which batch systems send, end a run as Ctrl-C does."""
    import signal

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def main() -> None:
    """Entry point of the command `peekbench`."""
    try:
        with _terminated_like_interrupted():
            app.app()
    except PeekbenchError as error:
        typer.echo(f"peekbench: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
