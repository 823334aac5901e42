"""Displays of the progress of a run: live on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from peekbench.execution.observers import Progress
from peekbench.formatting import duration, pluralize
from peekbench.progress.tally import Tally
from peekbench.records.runs import Capacity
from peekbench.records.trials import Trial, TrialFailure

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from peekbench.plugins.work_protocols import Outcome
    from peekbench.spec.experiment import ExperimentSpec

SECONDS_BETWEEN_LINES = 15.0
SECONDS_UNTIL_HEARTBEAT = 120.0
MAX_NAME = 40  # characters of a run's name beside the progress bar


class Display(Progress):
    """Keeps the tally of a run, as a context in which the run takes place."""

    def __init__(self) -> None:
        self.name = self.capacity = ""
        self.tally: Tally | None = None
        self.started = time.monotonic()

    def start(self, spec: ExperimentSpec, pending: Sequence[Trial], done: int) -> None:
        """Start a tally."""
        methods = tuple(method.name for method in spec.methods)
        self.tally = Tally(methods, tuple(arm.name for arm in spec.arms), pending, done)
        self.name = spec.name
        self.update()

    def prepare(self, method: str) -> None:
        """Note that a method is being prepared."""
        self.note(f"preparing {method}")

    def warn(self, message: str) -> None:
        """Note a warning about the data."""
        self.note(f"warning: {message}")

    def show_capacity(self, capacity: Capacity) -> None:
        """Remember the number of machines and workers."""
        self.capacity = f"{pluralize(capacity.workers, 'worker')} on {pluralize(capacity.hosts, 'node')}"

    def advance(self, outcome: Outcome) -> None:
        """Count the outcome of a trial."""
        assert self.tally is not None
        self.tally.add(outcome)
        self.update()

    def stop(self, method: str, num_trials: int) -> None:
        """Note that the other trials of a method are not tried."""
        assert self.tally is not None
        self.tally.stop(num_trials)
        trials = pluralize(num_trials, "other trial is", "other trials are")
        self.note(f"{method}: its first trials all failed in the same way; its {trials} not tried")
        self.update()

    def note(self, line: str) -> None:
        """Show a line of text."""

    def update(self) -> None:
        """Show the tally."""

    def count(self) -> str:
        """Return how many trials are handled and failed."""
        assert self.tally is not None
        failed = f", {self.tally.failed:,} failed" if self.tally.failed else ""
        return f"{self.tally.handled:,} of {pluralize(self.tally.planned, 'trial')}{failed}"

    def __enter__(self) -> Self:
        """Return the display."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Do nothing."""


class LiveProgress(Display):
    """Live display with a progress bar and a table of mean scores."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        columns = (BarColumn(bar_width=None), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Bar(TextColumn("{task.description}"), *columns, console=console, expand=True)
        self._live = Live(console=console, refresh_per_second=4, get_renderable=self._render, transient=True)

    def note(self, line: str) -> None:
        """Print a line above the display."""
        self._live.console.print(line, markup=False, highlight=False)

    def update(self) -> None:
        """Show the number of trials, at first with the display itself."""
        assert self.tally is not None
        if not self._bar.task_ids:
            name = Text(self.name)
            name.truncate(MAX_NAME, overflow="ellipsis")
            self._bar.add_task(escape(name.plain))
            self._live.start()
        self._bar.update(self._bar.task_ids[0], completed=self.tally.handled, total=self.tally.planned)

    def _render(self) -> RenderableType:
        if self.tally is None:
            return ""
        table = Table("method", *self.tally.arms, title="mean score so far", title_justify="left", box=None)
        for column in table.columns[1:]:
            column.justify = "right"
        for row in self.tally.mean_scores():
            table.add_row(*map(escape, row))
        lines: list[RenderableType] = [table]
        if self.tally.failed:
            lines.append(f"[red]{self.tally.failed} failed[/], first failure: {escape(self.tally.first_failure)}")
        return Group(*lines, self._bar, ", ".join(filter(None, [self.tally.pace(), self.capacity])))

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Replace the display by a line on what was done."""
        self._live.stop()
        if self.tally is not None:
            self.note(f"{self.count()}, in {duration(time.monotonic() - self.started)}")


class LineProgress(Display):
    """Progress as one line every few seconds, for logs."""

    def __init__(self, write: Callable[[str], None], *, seconds: float = SECONDS_BETWEEN_LINES) -> None:
        super().__init__()
        self._write = write
        self._seconds = seconds
        self._last = self._last_advance = time.monotonic()

    def note(self, line: str) -> None:
        """Write a line."""
        self._write(line)

    def start(self, spec: ExperimentSpec, pending: Sequence[Trial], done: int) -> None:
        """Show the size of the run."""
        super().start(spec, pending, done)
        self.note(f"{spec.name}: {pluralize(len(pending) + done, 'trial')}, {done:,} already done")

    def show_capacity(self, capacity: Capacity) -> None:
        """Show the number of machines and workers."""
        super().show_capacity(capacity)
        self.note(f"now working: {self.capacity}")

    def advance(self, outcome: Outcome) -> None:
        """Show the first failure, and at intervals how far the run is."""
        super().advance(outcome)
        assert self.tally is not None
        if isinstance(outcome, TrialFailure) and self.tally.failed == 1:
            self.note(f"first failure: {self.tally.first_failure}")
        now = self._last_advance = time.monotonic()
        if now - self._last >= self._seconds or self.tally.handled == self.tally.planned:
            self._last = now
            self.note(", ".join(filter(None, [self.count(), self.tally.pace()])))

    def wait(self) -> None:
        """Show every two minutes that the run continues while no trial finishes."""
        now = time.monotonic()
        if now - max(self._last, self._last_advance) >= SECONDS_UNTIL_HEARTBEAT:
            self._last = now
            idle = duration(now - self._last_advance)
            self.note(f"{self.count()}; no trial has finished for {idle}, still running")


def make_progress(console: Console, *, is_live: bool = True) -> LiveProgress | LineProgress:
    """Return a live display if the console is a terminal, and otherwise, or without `is_live`, lines."""
    if console.is_terminal and is_live:
        return LiveProgress(console)
    return LineProgress(lambda line: console.print(line, markup=False, highlight=False, soft_wrap=True))
