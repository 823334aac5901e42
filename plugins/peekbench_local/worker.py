"""A worker process: `Worker` starts and supervises it in the main process, and the worker itself runs `serve`.

A worker is a new interpreter that imports only this module. It never imports the user's main module, so a run can be
started from a script without a main guard, from standard input, or from a notebook.
"""

from __future__ import annotations

import ctypes
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

from peekbench import PeekbenchError
from peekbench.plugins import THREADS_VARIABLE, Outcome
from peekbench.records import WorkItem
from peekbench.streams import protect_streams

Work: TypeAlias = Callable[[WorkItem], Sequence[Outcome]]

SHUTDOWN_TIMEOUT = 2.0  # seconds that a worker has to exit after its pipe has closed
EXIT_TIMEOUT = 1.0  # seconds that an idle worker has to run exit handlers at the end of a run
BATCH_WINDOW = 0.05  # seconds of work in one message, and so at most lost per worker if a run is killed
READY = "ready"
PR_SET_PDEATHSIG = 1  # of Linux's prctl


class Worker:
    """A worker process with its own pipe and at most a few queued items, so a crash tells which items it held.

    Parameters
    ----------
    pickled
        The work, pickled.
    threads
        CPU threads that a fit in this worker may use.

    Raises
    ------
    PeekbenchError
        If the operating system starts no process.
    """

    def __init__(self, pickled: bytes, threads: int) -> None:
        try:
            self._connection, worker_end = Pipe()
            with worker_end:  # only the worker keeps that end, so its death closes the pipe
                self._process = _start_interpreter(worker_end.fileno(), threads)
        except OSError as error:
            raise PeekbenchError(
                f"cannot start a worker process: {error}; use fewer workers, or the executor option `in_process: true`"
            ) from error
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
        except Exception as error:  # it died while sending, or a method wrote to the pipe
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

    def join(self) -> int | None:
        """Wait for a process whose pipe has closed, and end all processes that it has started.

        Returns
        -------
        int or None
            Its exit status, negative for a signal; None if it closed its pipe but did not exit, and was killed.
        """
        status: int | None
        try:
            status = self._process.wait(SHUTDOWN_TIMEOUT)
        except subprocess.TimeoutExpired:
            status = None
        self.kill()
        return status

    def stop(self) -> None:
        """Let the process exit if it is idle; kill it if it works or does not exit."""
        if not self.items:
            self._connection.close()  # which ends `serve`
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(EXIT_TIMEOUT)
        self.kill()

    def kill(self) -> None:
        """Kill the process and all processes that it has started."""
        self._process.kill()
        self._process.wait()
        with suppress(ProcessLookupError, PermissionError):  # usually no process of its group is left
            os.killpg(self._process.pid, signal.SIGKILL)
        self._connection.close()


def _start_interpreter(descriptor: int, threads: int) -> subprocess.Popen[bytes]:
    path = [str(folder) for folder in sys.path]
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing
    code = f"import sys; sys.path[:] = {path!r}; from peekbench_local.worker import serve; "
    return subprocess.Popen(  # noqa: S603 - our own code
        [sys.executable, *flags, "-c", f"{code}serve({descriptor}, {os.getpid()})"],
        stdin=subprocess.DEVNULL,
        env={**os.environ, THREADS_VARIABLE: str(threads)},
        pass_fds=[descriptor],
        process_group=0,  # so that Ctrl-C reaches only the main process, and `kill` ends child processes of methods
    )


def serve(descriptor: int, parent: int) -> None:
    """Do the items that the main process sends, until it closes the pipe or dies; runs in the worker.

    Parameters
    ----------
    descriptor
        File descriptor of the worker's end of the pipe.
    parent
        Process ID of the main process.
    """
    _end_with_parent(parent)
    os.set_inheritable(descriptor, False)
    connection: Connection[Any, Any] = Connection(descriptor)
    os.register_at_fork(after_in_child=connection.close)  # the messages of a process that a method forks are not ours
    with suppress(OSError):
        os.dup2(2, 1)  # what methods print must not mix with a report
    protect_streams()  # a method that prints does not fail if the reader of the output has closed the pipe
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
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a SystemExit must not end the run as if it had succeeded
            return outcomes, num_done, _make_picklable(error)
    return outcomes, len(items), None


def _end_with_parent(parent: int) -> None:
    """Let Linux kill this process when the main process dies, even in the middle of a fit.

    The signal is sent when the thread that started this process ends, which is the thread of the run.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before
        os._exit(1)


def _make_picklable(error: BaseException) -> Exception:
    """Return the error with its traceback as a note, or a RuntimeError with its text if it cannot be pickled."""
    if not isinstance(error, Exception):
        return RuntimeError("".join(traceback.format_exception(error)))
    error.add_note("in a worker process:\n" + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - pickled in this process
    except Exception:
        return RuntimeError("".join(traceback.format_exception(error)))
    return error
