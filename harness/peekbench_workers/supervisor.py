"""Keeps one worker process at work: starts it, enforces its limits, and says which trial it was at when it died."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from peekbench import PeekbenchError
from peekbench.plugins import Outcome
from peekbench.records import Host, WorkItem
from peekbench_workers.process import WorkerProcess
from peekbench_workers.reports import Crash, Report, drop_trials, find_trial
from peekbench_workers.serve import READY, Answer, Batch, Prepare

MAX_FAILED_STARTS = 3  # consecutive failures after which the run ends
CHECK_INTERVAL = 0.25
"""Seconds between checks of the limits."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a worker process."""

    seconds: float | None = None
    """Seconds that a trial may take."""
    memory: int | None = None
    """Bytes of memory that the process and those that it has started may hold."""

    def __bool__(self) -> bool:
        """Return whether there is a limit."""
        return self.seconds is not None or self.memory is not None


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How worker processes are started and supervised."""

    work: bytes
    """The work, pickled."""
    threads: int = 1
    """CPU threads that a fit may use."""
    limits: Limits = Limits()
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

    def prepare(self, data: Mapping[str, bytes]) -> Host:
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
                process.send(Prepare(data))
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

    def do(self, items: Sequence[WorkItem]) -> Report:
        """Do items, and wait for the end of the batch."""
        self.send(items)
        outcomes: list[Outcome] = []
        while True:
            ready = wait([self.connection], timeout=CHECK_INTERVAL)
            report = self.receive() if ready else self.check()
            if report is not None:
                outcomes += report.outcomes
                if report.is_end:
                    return Report(outcomes, True, report.rest, report.num_done, report.crash, report.error)

    def receive(self) -> Report | None:
        """Receive the worker's next message, or its death. Return None if it has only started.

        Raises
        ------
        PeekbenchError
            If worker processes cannot start.
        """
        process = self._running()
        try:
            message = process.receive()
        except EOFError:
            return self._report_death()
        if message == READY:
            self._is_ready = True
            self._failed_starts = 0
            return None
        if isinstance(message, Exception):  # the work cannot be unpickled
            return self._report(Answer((), 0, is_end=True, error=message))
        return self._report(message)

    def _report(self, answer: Answer) -> Report:
        self._num_received += len(answer.outcomes)
        rest = drop_trials(self._items, answer.outcomes)
        self._items = () if answer.is_end else rest
        returned = rest if answer.is_end else ()
        return Report(answer.outcomes, answer.is_end, returned, answer.num_items, error=answer.error)

    def check(self) -> Report | None:
        """Return a report if the worker has died or exceeds a limit, which ends it; otherwise None."""
        if self._process is None or not self._items:
            return None
        if self._process.is_dead:
            return self.receive()
        limits = self._settings.limits
        _, seconds = self._process.current.read(self._batch)
        if limits.seconds is not None and seconds > limits.seconds:
            return self._end_worker(f"it took longer than the time limit of {limits.seconds:g} s", is_final=True)
        if limits.memory is not None and self._process.memory() > limits.memory:
            return self._end_worker(f"it used more than the memory limit of {limits.memory / 1e9:g} GB", is_final=False)
        return None

    def _end_worker(self, reason: str, *, is_final: bool) -> Report:
        """Kill the process, and report what it has sent before."""
        process = self._running()
        process.kill()
        outcomes: list[Outcome] = []
        while True:
            try:
                report = self._report(process.receive())
            except EOFError:
                break
            outcomes += report.outcomes
            if report.is_end:  # it has just finished
                self._close()
                return Report(outcomes, True, report.rest, report.num_done, None, report.error)
        death = self._report_death(reason, is_final=is_final)
        return Report(outcomes, True, death.rest, death.num_done, death.crash)

    def _report_death(self, reason: str = "", *, is_final: bool = False) -> Report:
        """Return the unfinished items of a worker that died, and the trial that it was working on."""
        process = self._running()
        reason = reason or process.join()
        num_noted, _ = process.current.read(self._batch)
        self._close()
        items, self._items = self._items, ()
        if not self._is_ready:  # no trial had started, so none is the cause
            self._failed_starts += 1
            if self._failed_starts >= MAX_FAILED_STARTS:
                raise PeekbenchError(
                    f"worker processes cannot start: {self._failed_starts} consecutive ones ended with {reason} before "
                    "any trial started; see their error output above"
                )
            return Report(rest=items)
        crash, rest = self._find_suspects(items, num_noted - self._num_received, reason, is_final=is_final)
        return Report(rest=rest, crash=crash)

    def _find_suspects(
        self, items: Sequence[WorkItem], num_lost: int, reason: str, *, is_final: bool
    ) -> tuple[Crash, Sequence[WorkItem]]:
        """Return the crash, and the items that have nothing to do with it.

        If outcomes were lost that the worker had not sent yet, an earlier trial may have caused the crash as well.
        """
        running = find_trial(items, num_lost)
        if running is not None and (is_final or num_lost == 0):
            position, trial = running
            rest = [*items[:position], *items[position + 1 :]]
            return Crash(reason, (items[position],), trial, is_final, host=self._settings.host), rest
        end = len(items) if running is None else running[0] + 1
        return Crash(reason, tuple(items[:end]), host=self._settings.host), items[end:]

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
