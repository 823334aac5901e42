"""Keeps one worker process at work: starts it, enforces its limits, and says which trial it was at when it died."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from peekbench import PeekbenchError
from peekbench.plugins import Outcome
from peekbench.records import Host, WorkItem
from peekbench_workers.crashes import Crash, find_suspects
from peekbench_workers.process import WorkerProcess
from peekbench_workers.reports import Report, drop_trials
from peekbench_workers.serve import READY, Answer, Batch, Prepare

MAX_FAILED_STARTS = 3  # consecutive failures after which the run ends
CHECK_INTERVAL = 0.25
"""Seconds between checks of the limits."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How worker processes are started and supervised."""

    work: bytes
    """The work, pickled."""
    threads: int = 1
    """CPU threads that a fit may use."""
    time_limit: float | None = None
    """Seconds that a trial may take."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Further environment variables."""
    host: str = ""
    """Name of this machine, for failures of trials."""


class Supervisor:
    """Supervises one worker process, which it starts when there is work, and again after it has died.

    Parameters
    ----------
    settings
        How worker processes are started.
    """

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._process: WorkerProcess | None = None
        self._is_ready = False
        self._failed_starts = 0
        self._items: Sequence[WorkItem] = ()
        self._batch = 0
        self._num_received = 0

    @property
    def is_busy(self) -> bool:
        """Whether the worker has items."""
        return bool(self._items)

    @property
    def connection(self) -> Connection[Any, Any]:
        """Pipe of the process, which becomes readable when the worker sends something or dies."""
        return self._running().connection

    def _running(self) -> WorkerProcess:
        if self._process is None:
            settings = self._settings
            self._process = WorkerProcess(settings.work, settings.threads, settings.environment)
            self._is_ready = False
        return self._process

    def prepare(self) -> Host:
        """Prepare this machine in the worker process; see `peekbench.plugins.Work.prepare`.

        Raises
        ------
        PeekbenchError
            If the machine cannot do the work, or the process dies.
        """
        process = self._running()
        try:
            answer = READY if self._is_ready else process.receive()
            if answer == READY:
                self._is_ready = True
                process.send(Prepare())
                answer = process.receive()
        except EOFError:
            reason = process.join()
            self._close()
            raise PeekbenchError(f"the worker process that prepares {self._settings.host} died with {reason}") from None
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Host)
        return answer

    def send(self, items: Sequence[WorkItem]) -> None:
        """Send items; the worker must have none left."""
        self._items = items
        self._batch += 1
        self._num_received = 0
        self._running().send(Batch(self._batch, items))

    def receive(self) -> Report | None:
        """Receive the worker's next message, or its death. Return None if it has only started.

        Raises
        ------
        PeekbenchError
            If worker processes cannot start.
        """
        process = self._running()
        try:
            return self._interpret(process.receive())
        except EOFError:
            return self._report_death()

    def _interpret(self, message: Any) -> Report | None:
        """Return the report of a message; None if the worker says that it has started."""
        if message == READY:
            self._is_ready = True
            self._failed_starts = 0
            return None
        # An exception without an answer: the work cannot be unpickled.
        answer = message if isinstance(message, Answer) else Answer((), 0, is_end=True, error=message)
        self._num_received += len(answer.outcomes)
        rest = drop_trials(self._items, answer.outcomes)
        self._items = () if answer.is_end else rest
        returned = rest if answer.is_end else ()
        return Report(answer.outcomes, answer.is_end, returned, answer.num_items, error=answer.error)

    def check(self) -> Report | None:
        """Return a report if the worker has died or its trial takes too long, which ends it; otherwise None."""
        if self._process is None or not self._items:
            return None
        if self._process.is_dead:
            return self.receive()
        limit = self._settings.time_limit
        num_done, seconds = self._process.current.read(self._batch)
        if limit is None or seconds <= limit:
            return None
        return self._end_worker(self._process, limit, num_done)

    def _end_worker(self, process: WorkerProcess, limit: float, num_done: int) -> Report:
        """Kill the process, and report what it has sent before.

        Parameters
        ----------
        process
            The process.
        limit
            The time limit.
        num_done
            Number of finished trials of the batch when the next one was found to take too long. If this trial has ended
            nevertheless, before the process was killed, no trial is the cause.
        """
        process.kill()
        outcomes: list[Outcome] = []
        while True:
            try:
                report = self._interpret(process.receive())
            except EOFError:
                break
            if report is None:
                continue
            outcomes += report.outcomes
            if report.is_end:  # it has just finished
                self._close()
                return Report(outcomes, True, report.rest, report.num_done, None, report.error)
        if num_done != process.current.read(self._batch)[0]:
            self._close()
            rest, self._items = self._items, ()
            return Report(outcomes, True, rest)
        death = self._report_death(f"it took longer than the time limit of {limit:g} s")
        return Report(outcomes, True, death.rest, death.num_done, death.crash)

    def _report_death(self, exceeded: str = "") -> Report:
        """Return the unfinished items of a worker that died, and the trial that it was working on.

        Parameters
        ----------
        exceeded
            Why the worker was killed; empty if it died by itself.
        """
        process = self._running()
        reason = exceeded or process.join()
        num_noted, _ = process.current.read(self._batch)
        self._close()
        items, self._items = self._items, ()
        if not self._is_ready:  # no trial had started, so none is the cause
            self._failed_starts += 1
            if self._failed_starts >= MAX_FAILED_STARTS:
                raise PeekbenchError(
                    f"worker processes cannot start: {self._failed_starts} consecutive ones ended before any trial "
                    f"started ({reason}); see their error output above"
                )
            return Report(rest=items)
        crash = Crash(reason, tuple(items), is_final=bool(exceeded), host=self._settings.host)
        crash, rest = find_suspects(crash, num_noted - self._num_received)
        return Report(rest=rest, crash=crash)

    def _close(self) -> None:
        """Forget the process, which has ended."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def stop(self) -> None:
        """End the process: at once if it works, otherwise after its exit handlers."""
        if self._process is not None:
            self._process.stop(is_idle=not self._items)
            self._close()
