"""A worker process: `Worker` starts and supervises it in the main process, and the worker itself runs `serve`.

A worker is a new interpreter that imports only this module. It never imports the user's main module, so a run can be
started from a script without a main guard, from standard input, or from a notebook.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, TypeAlias, cast

from peekbench.plugins import THREADS_VARIABLE, Outcome
from peekbench.records import WorkItem

Work: TypeAlias = Callable[[WorkItem], Sequence[Outcome]]

SHUTDOWN_TIMEOUT = 5.0  # seconds that a worker has to exit after SIGTERM
BATCH_WINDOW = 0.05  # seconds of work in one message, and so at most lost per worker if a run is killed
READY = "ready"


class Worker:
    """A worker process with its own pipe and at most a few queued items, so a crash tells which items it held.

    Parameters
    ----------
    pickled
        The work, pickled.
    threads
        CPU threads that a fit in this worker may use.
    """

    def __init__(self, pickled: bytes, threads: int) -> None:
        self._connection, worker_end = Pipe()
        descriptor = worker_end.fileno()
        code = f"import sys; sys.path[:] = {sys.path!r}; from peekbench_local.worker import serve; serve({descriptor})"
        self._process = subprocess.Popen(  # noqa: S603 - our own code
            [sys.executable, "-c", code],
            stdin=subprocess.DEVNULL,
            env={**os.environ, THREADS_VARIABLE: str(threads)},
            pass_fds=[descriptor],
            process_group=0,  # so that Ctrl-C reaches only the main process, and `join` ends child processes of methods
        )
        worker_end.close()  # only the worker holds that end now, so its death closes the pipe
        self.items: Sequence[WorkItem] = ()
        self.is_ready = False
        """Whether it has started and unpickled the work."""
        self.batch_size = 1
        """Number of items that it finishes within `BATCH_WINDOW`."""
        self._sent_at = 0.0
        self._send(pickled)

    @property
    def connection(self) -> Connection[Any, Any]:
        """The main process's end of the pipe."""
        return self._connection

    @property
    def is_dead(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def send(self, items: Sequence[WorkItem]) -> None:
        """Send items; the worker must have none left."""
        self.items = items
        self._sent_at = time.monotonic()
        self._send(items)

    def _send(self, message: object) -> None:
        with suppress(OSError):  # the worker is dead, and `receive` will report it
            self._connection.send(message)

    def receive(self) -> tuple[Sequence[Outcome], Exception | None] | None:
        """Receive the worker's next message.

        Items that the worker has not started stay in `items`, for the caller to send again.

        Returns
        -------
        tuple or None
            Outcomes, and the error that ended the batch or None; instead None if the worker reports that it is ready.

        Raises
        ------
        EOFError
            If the worker has died.
        """
        if not self._connection.poll() and self.is_dead:
            raise EOFError  # a process that it forked may still hold the pipe open
        try:
            message = self._connection.recv()
        except OSError as error:  # it died while sending
            raise EOFError from error
        if message == READY:
            self.is_ready = True
            self._sent_at = time.monotonic()
            return None
        outcomes, num_done, ended_by = message
        is_slow = time.monotonic() - self._sent_at >= BATCH_WINDOW
        self.batch_size = max(1, num_done if is_slow else 2 * num_done)
        self.items = self.items[num_done:]
        return cast("Sequence[Outcome]", outcomes), ended_by

    def join(self) -> int:
        """Wait for the process, ending it first if it is idle, and end all processes that it has started.

        Returns
        -------
        int
            Its exit status; negative for a signal.
        """
        if not self.is_dead and not self.items:
            self._process.terminate()
        try:
            self._process.wait(SHUTDOWN_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
        status = self._process.wait()
        with suppress(ProcessLookupError, PermissionError):  # usually no process of its group is left
            os.killpg(self._process.pid, signal.SIGKILL)
        self._connection.close()
        return status

    def kill(self) -> None:
        """Kill the process immediately."""
        self._process.kill()
        self.join()


def serve(descriptor: int) -> None:
    """Do the items that the main process sends, until it closes the pipe or dies; runs in the worker.

    Parameters
    ----------
    descriptor
        File descriptor of the worker's end of the pipe.
    """
    connection: Connection[Any, Any] = Connection(descriptor)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        pickled = connection.recv()
        try:
            work: Work = pickle.loads(pickled)  # noqa: S301 - from the main process
        except Exception as error:
            connection.send(((), 0, _make_picklable(error)))
            return
        connection.send(READY)
        while True:
            connection.send(_work_on(connection.recv(), work))


def _work_on(items: Sequence[WorkItem], work: Work) -> tuple[list[Outcome], int, Exception | None]:
    """Do as many of the items as `BATCH_WINDOW` allows, and at least one."""
    outcomes: list[Outcome] = []
    started = time.monotonic()
    for num_done, item in enumerate(items):
        if num_done and time.monotonic() - started >= BATCH_WINDOW:
            return outcomes, num_done, None
        try:
            outcomes += work(item)
        except Exception as error:
            return outcomes, num_done, _make_picklable(error)
    return outcomes, len(items), None


def _make_picklable(error: Exception) -> Exception:
    """Return the error with its traceback as a note, or a RuntimeError with its text if it cannot be pickled."""
    error.add_note("in a worker process:\n" + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - pickled in this process
    except Exception:
        return RuntimeError("".join(traceback.format_exception(error)))
    return error
