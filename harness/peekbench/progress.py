"""Displays of the progress of a run: live on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.text import Text

from peekbench.formatting import duration, pluralize, shorten, visible_lines
from peekbench.records.runs import Capacity, RunStarted, TrialFinished

SECONDS_BETWEEN_LINES = 15.0
SECONDS_UNTIL_HEARTBEAT = 120.0
MAX_NAME = 40  # characters of a run's name beside the progress bar
MAX_ERROR = 500  # characters of the first failure
MIN_SECONDS = 3.0  # after the first trial, before the first estimate


class PrintableConsole(Console):
    """A console that escapes the control characters of everything that it prints, except its own."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable with control characters escaped."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible_lines(text), style, control)


class Tally:
    """Counts and times of a run so far."""

    def __init__(self, run: RunStarted) -> None:
        self.name = run.name
        self.planned = run.planned
        """Trials of the run, those of earlier sessions included, without those that are not tried."""
        self.handled = run.stored
        """Trials that are done or failed."""
        self.tried = self.failed = 0
        self.first_failure = ""
        self.started = time.monotonic()
        """Time of the first outcome, before which workers start and load libraries; at first, of the start."""

    def add(self, event: TrialFinished) -> None:
        """Count a trial."""
        if not self.tried:
            self.started = time.monotonic()
        self.tried += 1
        self.handled += 1
        if event.failed:
            self.failed += 1
            error = " ".join(shorten(event.error, MAX_ERROR).split())
            self.first_failure = self.first_failure or f"{event.trial}: {error}"

    def pace(self) -> str:
        """Return the rate and the remaining time as text, once there are enough trials to tell."""
        elapsed = time.monotonic() - self.started
        is_complete = self.handled == self.planned
        if self.tried < 2 or elapsed < MIN_SECONDS:
            if is_complete:
                return ""
            return "estimating the time left"
        rate = (self.tried - 1) / elapsed
        words = f"{rate:.1f} trials/s"
        if rate < 0.1:
            words = f"{duration(1 / rate)} per trial"
        if is_complete:
            return words
        return f"{words}, about {duration((self.planned - self.handled) / rate)} left"

    def __str__(self) -> str:
        """Return how many trials are handled and failed."""
        count = f"{self.handled:,} of {pluralize(self.planned, 'trial')}"
        if self.failed:
            count += f", {self.failed:,} failed"
        return count


class Display:
    """An observer that shows a run, as a context in which the run takes place; see `execution.observers.Observers`."""

    tally: Tally | None = None
    """None until the run starts."""
    capacity = ""

    def note(self, line: str) -> None:
        """Show a line of text."""

    def run_started(self, run: RunStarted) -> None:
        """Start a tally."""
        self.tally = Tally(run)

    def show_capacity(self, capacity: Capacity) -> None:
        """Remember the number of machines and workers."""
        self.capacity = f"{pluralize(capacity.workers, 'worker')} on {pluralize(capacity.hosts, 'node')}"

    def trial_finished(self, event: TrialFinished) -> None:
        """Count a trial, and show the first failure."""
        assert self.tally is not None
        self.tally.add(event)
        if event.failed and self.tally.failed == 1:
            self.note(f"first failure: {self.tally.first_failure}")

    def stop(self, method: str, num_trials: int) -> None:
        """Note that the other trials of a method are not tried."""
        assert self.tally is not None
        self.tally.planned -= num_trials
        trials = pluralize(num_trials, "other trial is", "other trials are")
        self.note(f"{method}: its first trials all failed; its {trials} not tried")

    def __enter__(self) -> Self:
        """Return the display."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Do nothing."""


class LiveProgress(Display):
    """Live display with a progress bar."""

    def __init__(self, console: Console) -> None:
        columns = (BarColumn(bar_width=None), MofNCompleteColumn(), TimeElapsedColumn())
        texts = [TextColumn("{task.description}"), TextColumn("{task.fields[state]}")]
        self._bar = Progress(texts[0], *columns, texts[1], console=console, expand=True, transient=True)
        self._started = time.monotonic()

    def note(self, line: str) -> None:
        """Print a line above the display."""
        self._bar.console.print(line, markup=False, highlight=False)

    def run_started(self, run: RunStarted) -> None:
        """Start the display."""
        super().run_started(run)
        name = Text(run.name)
        name.truncate(MAX_NAME, overflow="ellipsis")
        self._bar.add_task(escape(name.plain), total=run.planned, completed=run.stored, state="")
        self._bar.start()

    def trial_finished(self, event: TrialFinished) -> None:
        """Show how far the run is."""
        super().trial_finished(event)
        assert self.tally is not None
        state = ", ".join(filter(None, [self.tally.pace(), self.capacity]))
        task = self._bar.task_ids[0]
        self._bar.update(task, completed=self.tally.handled, total=self.tally.planned, state=state)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Replace the display by a line on what was done."""
        self._bar.stop()
        if self.tally is not None:
            self.note(f"{self.tally}, in {duration(time.monotonic() - self._started)}")


class LineProgress(Display):
    """Progress as one line every few seconds, for logs."""

    def __init__(self, write: Callable[[str], None], *, seconds: float = SECONDS_BETWEEN_LINES) -> None:
        self._write = write
        self._seconds = seconds
        self._last = self._last_trial = time.monotonic()

    def note(self, line: str) -> None:
        """Write a line."""
        self._write(line)

    def run_started(self, run: RunStarted) -> None:
        """Show the size of the run."""
        super().run_started(run)
        self._last = self._last_trial = time.monotonic()  # what was prepared before counts as no wait for a trial
        self.note(f"{run.name}: {pluralize(run.planned, 'trial')}, {run.stored:,} already done")

    def show_capacity(self, capacity: Capacity) -> None:
        """Show the number of machines and workers."""
        super().show_capacity(capacity)
        self.note(f"now working: {self.capacity}")

    def trial_finished(self, event: TrialFinished) -> None:
        """Show at intervals how far the run is."""
        super().trial_finished(event)
        assert self.tally is not None
        now = self._last_trial = time.monotonic()
        if now - self._last >= self._seconds or self.tally.handled == self.tally.planned:
            self._last = now
            self.note(", ".join(filter(None, [str(self.tally), self.tally.pace()])))

    def wait(self) -> None:
        """Show every two minutes that the run continues while no trial finishes."""
        now = time.monotonic()
        if now - max(self._last, self._last_trial) >= SECONDS_UNTIL_HEARTBEAT:
            self._last = now
            idle = duration(now - self._last_trial)
            self.note(f"{self.tally}; no trial has finished for {idle}, still running")


def make_display(console: Console, *, is_live: bool = True) -> LiveProgress | LineProgress:
    """Return a live display if the console is a terminal, and otherwise, or without `is_live`, lines."""
    if console.is_terminal and is_live:
        return LiveProgress(console)
    return LineProgress(lambda line: console.print(line, markup=False, highlight=False, soft_wrap=True))
