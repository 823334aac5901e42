"""A worker process: starts an interpreter, sends it requests, and ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from peekbench import PeekbenchError
from peekbench.plugins import THREADS_VARIABLE
from peekbench_workers.current_trial import CurrentTrial

SHUTDOWN_TIMEOUT = 2.0  # seconds that a worker has to exit after its pipe has closed
EXIT_TIMEOUT = 1.0  # seconds that an idle worker has to run exit handlers at the end of a run


class WorkerProcess:
    """An interpreter that does the work of a run, with a pipe of its own.

    Parameters
    ----------
    pickled
        The work, pickled.
    threads
        CPU threads that a fit in this worker may use.
    environment
        Further environment variables of the process.

    Raises
    ------
    PeekbenchError
        If the operating system starts no process.
    """

    def __init__(self, pickled: bytes, threads: int, environment: Mapping[str, str]) -> None:
        variables = {**os.environ, THREADS_VARIABLE: str(threads), **environment}
        with ExitStack() as opened:
            try:
                self.current = opened.enter_context(closing(CurrentTrial()))
                """The trial that the worker is working on."""
                self.connection: Connection[Any, Any]
                self.connection, worker_end = Pipe()
                opened.enter_context(self.connection)
                with worker_end:  # only the worker keeps that end, so its death closes the pipe
                    self._process = _start_interpreter((worker_end.fileno(), self.current.descriptor), variables)
            except OSError as error:
                raise PeekbenchError(f"cannot start a worker process: {error}; use fewer workers") from error
            opened.pop_all()  # `close` closes them
        self.send(pickled)

    @property
    def is_dead(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def send(self, message: object) -> None:
        """Send a message. If the worker is dead, `receive` reports it."""
        with suppress(OSError):
            self.connection.send(message)

    def receive(self) -> Any:
        """Receive the next message.

        Raises
        ------
        EOFError
            If the worker has died.
        """
        if not self.connection.poll() and self.is_dead:
            raise EOFError  # a process that it forked may still hold the pipe open
        try:
            return self.connection.recv()
        except Exception as error:  # it died while sending, or a method wrote to the pipe
            raise EOFError from error

    def join(self) -> str:
        """Wait for a process whose pipe has closed, and end all processes that it has started.

        Returns
        -------
        str
            How it ended.
        """
        status: int | None
        try:
            status = self._process.wait(SHUTDOWN_TIMEOUT)
        except subprocess.TimeoutExpired:
            status = None
        self.kill()
        if status is None:
            return "it closed its connection to the main process"
        return f"signal {-status}" if status < 0 else f"exit status {status}"

    def stop(self, *, is_idle: bool) -> None:
        """Let the process exit if it is idle; kill it if it works or does not exit."""
        if is_idle:
            self.connection.close()  # which ends `serve`
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(EXIT_TIMEOUT)
        self.kill()

    def kill(self) -> None:
        """Kill the process and all processes of its group."""
        self._process.kill()
        self._process.wait()
        with suppress(ProcessLookupError, PermissionError):  # usually no process of its group is left
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Release the pipe and the shared memory of a process that has ended."""
        self.connection.close()
        self.current.close()


def _start_interpreter(descriptors: tuple[int, int], variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    path = [str(folder) for folder in sys.path]
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing
    pipe, memory = descriptors
    code = f"import sys; sys.path[:] = {path!r}; from peekbench_workers.serve import serve; "
    return subprocess.Popen(  # noqa: S603 - our own code
        [sys.executable, *flags, "-c", f"{code}serve({pipe}, {memory}, {os.getpid()})"],
        stdin=subprocess.DEVNULL,
        env=dict(variables),
        pass_fds=descriptors,
        process_group=0,  # so that Ctrl-C reaches only the main process, and `kill` ends child processes of methods
    )
