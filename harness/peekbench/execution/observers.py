"""Tells a display and the observers of a spec what happens in a run. Observers can neither fail nor hold up the run.

Each observer has a thread of its own, which makes all its calls in order, so a slow one delays only itself. Threads are
told of events through queues. The thread of the run never waits for them before it has ended.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from peekbench.errors import PeekbenchError
from peekbench.formatting import pluralize
from peekbench.plugins.boundary import describe_exception
from peekbench.plugins.work_protocols import Outcome
from peekbench.records.runs import ArmScores, RunFinished, RunStarted, RunStatus, TrialFinished
from peekbench.records.trials import TrialFailure
from peekbench.spec.components import ObserverSpec
from peekbench.spec.experiment import ExperimentSpec, canonical

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from peekbench.records.data import Folders
    from peekbench.records.report import Analysis
    from peekbench.records.runs import Capacity
    from peekbench.store.reader import Store

END_SECONDS = 60.0
"""Time that observers have after the end of a run, before it ends without them."""
INTERRUPT_SECONDS = 5.0
"""The same after an interrupt, which batch systems follow with a kill."""


class _Thread(threading.Thread):
    """Calls one observer. A daemon, so that it cannot keep the process alive."""

    def __init__(self, spec: ObserverSpec, folders: Folders) -> None:
        super().__init__(name=f"observer {spec.use}", daemon=True)
        self._spec = spec
        self._folders = folders
        self._events: SimpleQueue[tuple[str, object] | None] = SimpleQueue()
        self._place = "its start"
        self._is_abandoned = False
        self.problem = ""
        """Why the observer is not called any more, in a sentence; empty while it works."""

    def run(self) -> None:
        """Make the observer, and call it until there are no more events or it fails."""
        try:
            observer = self._spec.entry.observe(options=self._spec.options, folders=self._folders)
            while (item := self._events.get()) is not None and not self._is_abandoned:
                event, argument = item
                self._place = event
                if method := getattr(observer, event, None):
                    method(argument)
        except BaseException as error:  # SystemExit of an observer must not end anything else
            self._fail(_describe(error))

    def send(self, event: str, argument: object) -> None:
        """Let the observer know of an event, unless it has failed."""
        if not self.problem:
            self._events.put((event, argument))

    def end(self) -> None:
        """Let the thread end after the last event."""
        self._events.put(None)

    def wait(self, deadline: float, seconds: float) -> None:
        """Wait until the observer has handled all events, at most until a time of `time.monotonic`."""
        self.join(max(0.0, deadline - time.monotonic()))
        if self.is_alive():
            self._is_abandoned = True
            waiting = pluralize(self._events.qsize(), "event")
            self._fail(f"it was still busy {seconds:g} s after the end of the run, with {waiting} waiting")

    def _fail(self, reason: str) -> None:
        self.problem = self.problem or (
            f"observer {self._spec.use} failed at {self._place}: {reason}. It is not called again; the results of the "
            "run do not depend on it. Correct its options or its plugin, or remove it from `observers` in the spec"
        )


def _describe(error: BaseException) -> str:
    if isinstance(error, PeekbenchError):
        return " ".join(str(error).split()).rstrip(".")
    return describe_exception(error)


class Observers:
    """All who are told what happens in one run, as a context in which the run and its report take place.

    A display is told at once, in the thread of the run. It has any of the methods of an observer, and `note`,
    `stop`, `show_capacity` and `wait` for what is of interest only at that moment.

    Parameters
    ----------
    display
        Shows the progress.
    specs
        Observers of the run's spec.
    warn
        Receives one sentence on each observer that fails.
    """

    def __init__(
        self, display: object = None, specs: Sequence[ObserverSpec] = (), warn: Callable[[str], None] = lambda _: None
    ) -> None:
        self._display = display
        self._specs = specs
        self._warn = warn
        self._threads: list[_Thread] = []
        self._planned = self._stored = self._finished = self._failed = 0
        self._report: Path | None = None

    def start(self, spec: ExperimentSpec, store: Store, planned: int, stored: int) -> None:
        """Start the observers, and tell them of the run."""
        self._planned, self._stored = planned, stored
        self._threads = [_Thread(observer, spec.folders()) for observer in self._specs]
        for thread in self._threads:
            thread.start()
        event = RunStarted(store.store_id(), spec.name, canonical(spec), store.path.absolute(), planned, stored)
        self._send("run_started", event)

    def advance(self, outcome: Outcome) -> None:
        """Tell of a stored trial."""
        self._failed += isinstance(outcome, TrialFailure)
        self._finished += not isinstance(outcome, TrialFailure)
        number = self._stored + self._finished + self._failed
        self._send("trial_finished", _trial_finished(outcome, number, self._planned))

    def note(self, text: str) -> None:
        """Show a sentence on the run."""
        self._show("note", text)

    def warn(self, message: str) -> None:
        """Show what makes the results of the run doubtful."""
        self.note(f"warning: {message}")

    def show_capacity(self, capacity: Capacity) -> None:
        """Show the machines and workers that do the work at present."""
        self._show("show_capacity", capacity)

    def stop(self, method: str, num_trials: int) -> None:
        """Show that the other trials of a method are not tried, because its first ones failed."""
        self._show("stop", method, num_trials)

    def wait(self) -> None:
        """Show, about once a second, that no trial has finished since the last report; warn of failed observers."""
        self._show("wait")
        self._warn_of_failures()

    def analysis_finished(self, analysis: Analysis) -> None:
        """Tell of an analysis."""
        self._send("analysis_finished", analysis)

    def report_written(self, folder: Path) -> None:
        """Remember the folder with the report's files, if there are any."""
        if folder.is_dir():
            self._report = folder.absolute()

    def _show(self, event: str, *arguments: object) -> None:
        if method := getattr(self._display, event, None):
            method(*arguments)

    def _send(self, event: str, argument: object) -> None:
        for thread in self._threads:
            thread.send(event, argument)
        self._show(event, argument)
        self._warn_of_failures()

    def _warn_of_failures(self) -> None:
        """Warn of observers that have failed since the last call, and forget them."""
        failed = [thread for thread in self._threads if thread.problem]
        self._threads = [thread for thread in self._threads if thread not in failed]
        for thread in failed:
            self._warn(thread.problem)

    def __enter__(self) -> Self:
        """Return the observers."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Tell the observers that the run has ended, and wait for them, for a limited time.

        An interrupt while it waits ends the waiting, and nothing else.
        """
        status: RunStatus = "finished"
        reason, seconds = "", END_SECONDS
        if isinstance(error, KeyboardInterrupt):
            status, seconds = "interrupted", INTERRUPT_SECONDS
        elif error is not None:
            status, reason = "failed", _describe(error)
        elif self._failed:
            status = "failed"
        counts = (self._planned, self._stored, self._finished, self._failed)
        self._send("run_finished", RunFinished(status, *counts, self._report, reason))
        for thread in self._threads:
            thread.end()
        deadline = time.monotonic() + seconds
        with suppress(KeyboardInterrupt):
            for thread in self._threads:
                thread.wait(deadline, seconds)
        self._warn_of_failures()


def _trial_finished(outcome: Outcome, number: int, planned: int) -> TrialFinished:
    if isinstance(outcome, TrialFailure):
        return TrialFinished(outcome.trial, number, planned, {}, outcome.error or "unknown error")
    arms = {
        arm.arm: ArmScores(dict(arm.scores), dict(arm.metrics), arm.fit_seconds, arm.predict_seconds)
        for arm in outcome.arms
    }
    return TrialFinished(outcome.trial, number, planned, arms)
