"""Progress of a run: a live display on a terminal, plain lines elsewhere."""

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
from peekbench.formatting import pluralize
from peekbench.progress.tally import Tally, duration
from peekbench.records.hosts import Capacity
from peekbench.records.trials import Trial, TrialFailure

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from peekbench.plugins.work_protocols import Outcome
    from peekbench.spec.experiment import ExperimentSpec

SECONDS_BETWEEN_LINES = 15.0
SECONDS_UNTIL_HEARTBEAT = 120.0
MAX_NAME = 40  # characters of a run's name beside the progress bar


class LiveProgress(Progress):
    """Live display with a progress bar and a table of mean scores."""

    def __init__(self, console: Console) -> None:
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            expand=True,
        )
        self._tally: Tally | None = None
        self._capacity = ""
        self._started = time.monotonic()
        self._live = Live(console=console, refresh_per_second=4, get_renderable=self._render, transient=True)

    def start(self, spec: ExperimentSpec, pending: Sequence[Trial], done: int) -> None:
        """Start to show a run with its pending trials and the number of trials that are already done."""
        self._tally = new_tally(spec, pending, done)
        name = Text(spec.name)
        name.truncate(MAX_NAME, overflow="ellipsis")
        self._bar.add_task(escape(name.plain), total=self._tally.planned, completed=done)
        self._live.start()

    def prepare(self, method: str) -> None:
        """Show that a method is being prepared."""
        self._live.console.print(f"preparing {method}", markup=False, highlight=False)

    def warn(self, message: str) -> None:
        """Show a warning about the data."""
        self._live.console.print(f"warning: {message}", markup=False, highlight=False)

    def show_capacity(self, capacity: Capacity) -> None:
        """Show the number of machines and workers."""
        self._capacity = describe_capacity(capacity)

    def advance(self, outcome: Outcome) -> None:
        """Show the outcome of a trial."""
        assert self._tally is not None
        self._tally.add(outcome)
        self._bar.update(self._bar.task_ids[0], completed=self._tally.handled)

    def stop(self, method: str, num_trials: int) -> None:
        """Show that the other trials of a method are not tried."""
        assert self._tally is not None
        self._tally.stop(method, num_trials)
        self._live.console.print(describe_stop(method, num_trials), markup=False, highlight=False)
        self._bar.update(self._bar.task_ids[0], total=self._tally.planned)

    def _render(self) -> RenderableType:
        if self._tally is None:
            return ""
        table = Table("method", *self._tally.arms, title="mean score so far", title_justify="left", box=None)
        for column in table.columns[1:]:
            column.justify = "right"
        for method in self._tally.methods:
            table.add_row(escape(method), *(self._tally.mean_score(method, arm) for arm in self._tally.arms))
        lines: list[RenderableType] = [table]
        if self._tally.failed:
            lines.append(f"[red]{self._tally.failed} failed[/], first failure: {escape(self._tally.first_failure)}")
        details = ", ".join(filter(None, [self._tally.pace(), self._capacity]))
        return Group(*lines, self._bar, details)

    def __enter__(self) -> Self:
        """Return the progress itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Replace the display by a line on what was done."""
        self._live.stop()
        if self._tally is not None:
            line = f"{self._tally.handled:,} of {pluralize(self._tally.planned, 'trial')}"
            failed = f", {self._tally.failed:,} failed" if self._tally.failed else ""
            elapsed = duration(time.monotonic() - self._started)
            self._live.console.print(f"{line}{failed}, in {elapsed}", markup=False, highlight=False)


class LineProgress(Progress):
    """Progress as one line every few seconds, for logs."""

    def __init__(self, write: Callable[[str], None], *, seconds: float = SECONDS_BETWEEN_LINES) -> None:
        self._write = write
        self._seconds = seconds
        self._tally: Tally | None = None
        self._last = self._last_advance = time.monotonic()

    def start(self, spec: ExperimentSpec, pending: Sequence[Trial], done: int) -> None:
        """Start to show a run with its pending trials and the number of trials that are already done."""
        self._tally = new_tally(spec, pending, done)
        self._last_advance = time.monotonic()
        self._write(f"{spec.name}: {pluralize(self._tally.planned, 'trial')}, {done:,} already done")

    def prepare(self, method: str) -> None:
        """Show that a method is being prepared."""
        self._write(f"preparing {method}")

    def warn(self, message: str) -> None:
        """Show a warning about the data."""
        self._write(f"warning: {message}")

    def show_capacity(self, capacity: Capacity) -> None:
        """Show the number of machines and workers."""
        self._write(f"now working: {describe_capacity(capacity)}")

    def advance(self, outcome: Outcome) -> None:
        """Show the outcome of a trial."""
        assert self._tally is not None
        self._tally.add(outcome)
        if isinstance(outcome, TrialFailure) and self._tally.failed == 1:
            self._write(f"first failure: {self._tally.first_failure}")
        now = self._last_advance = time.monotonic()
        if now - self._last >= self._seconds or self._tally.handled == self._tally.planned:
            self._last = now
            pace = self._tally.pace()
            self._write(
                f"{self._tally.handled:,} of {pluralize(self._tally.planned, 'trial')}, {self._tally.failed:,} failed"
                + (f", {pace}" if pace else "")
            )

    def stop(self, method: str, num_trials: int) -> None:
        """Show that the other trials of a method are not tried."""
        assert self._tally is not None
        self._tally.stop(method, num_trials)
        self._write(describe_stop(method, num_trials))

    def wait(self) -> None:
        """Show every two minutes that the run continues while no trial finishes."""
        assert self._tally is not None
        now = time.monotonic()
        if now - max(self._last, self._last_advance) >= SECONDS_UNTIL_HEARTBEAT:
            self._last = now
            self._write(
                f"{self._tally.handled:,} of {pluralize(self._tally.planned, 'trial')}; no trial has finished for "
                f"{duration(now - self._last_advance)}, still running"
            )

    def __enter__(self) -> Self:
        """Return the progress itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Do nothing."""


def describe_capacity(capacity: Capacity) -> str:
    """Return the numbers of workers and machines in words."""
    return f"{pluralize(capacity.workers, 'worker')} on {pluralize(capacity.hosts, 'node')}"


def describe_stop(method: str, num_trials: int) -> str:
    """Return that the other trials of a method are not tried."""
    trials = pluralize(num_trials, "other trial is", "other trials are")
    return f"{method}: its first trials all failed in the same way; its {trials} not tried"


def new_tally(spec: ExperimentSpec, pending: Sequence[Trial], done: int) -> Tally:
    """Return the tally of a run with its pending trials and the number of trials that are already done."""
    methods = tuple(method.name for method in spec.methods)
    return Tally(methods, tuple(arm.name for arm in spec.arms), pending, done)


def make_progress(console: Console, *, is_live: bool = True) -> LiveProgress | LineProgress:
    """Return a live display if the console is a terminal, and otherwise, or without `is_live`, lines."""
    if console.is_terminal and is_live:
        return LiveProgress(console)
    return LineProgress(lambda line: console.print(line, markup=False, highlight=False, soft_wrap=True))
