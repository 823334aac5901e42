"""Progress of a run: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from peekbench.formatting import pluralize, shorten
from peekbench.records.trials import TrialFailure

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from peekbench.plugins.protocols import Outcome
    from peekbench.spec.experiment import ExperimentSpec

SECONDS_BETWEEN_LINES = 15.0
SECONDS_UNTIL_HEARTBEAT = 120.0
MAX_ERROR = 500  # characters of the first failure


@dataclass(slots=True)
class Tally:
    """Counts and mean scores of a run so far."""

    methods: tuple[str, ...]
    arms: tuple[str, ...]
    planned: int
    done_before: int
    done: int = 0
    failed: int = 0
    first_failure: str = ""
    started: float = field(default_factory=time.monotonic)
    _sums: dict[tuple[str, str], tuple[float, int]] = field(default_factory=dict)

    def add(self, outcome: Outcome) -> None:
        """Count the outcome of a trial."""
        if isinstance(outcome, TrialFailure):
            self.failed += 1
            error = " ".join(shorten(outcome.error, MAX_ERROR).split())
            self.first_failure = self.first_failure or f"{outcome.trial}: {error}"
            return
        self.done += 1
        for arm in outcome.arms:
            total, count = self._sums.get((outcome.trial.method, arm.arm), (0.0, 0))
            self._sums[outcome.trial.method, arm.arm] = (total + arm.score, count + 1)

    def mean_score(self, method: str, arm: str) -> str:
        """Return the mean score so far as text, 'shared' for a base arm that was fitted with another method."""
        total, count = self._sums.get((method, arm), (0.0, 0))
        if count:
            return f"{total / count:.3f}"
        return "shared" if arm == "base" and any(name == method for name, _ in self._sums) else "-"

    @property
    def handled(self) -> int:
        """Trials that are done or failed."""
        return self.done_before + self.done + self.failed

    def pace(self) -> str:
        """Return the trials per second and the remaining time, as text."""
        elapsed = time.monotonic() - self.started
        done_now = self.done + self.failed
        if not done_now or elapsed <= 0:
            return "rate unknown"
        rate = done_now / elapsed
        return f"{rate:.1f} trials/s, {duration((self.planned - self.handled) / rate)} left"


def duration(seconds: float) -> str:
    """Return seconds as text.

    Examples
    --------
    >>> duration(4), duration(125), duration(11_400)
    ('4 s', '2 min 05 s', '3 h 10 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


class LiveProgress:
    """Live display with a progress bar and a table of mean scores."""

    def __init__(self, console: Console) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[pace]}"),
            console=console,
            expand=True,
        )
        self._tally: Tally | None = None
        self._live = Live(console=console, refresh_per_second=4, get_renderable=self._render)

    def start(self, spec: ExperimentSpec, planned: int, done: int) -> None:
        """Start to show a run with a number of planned trials, some of them already done."""
        self._tally = _new_tally(spec, planned, done)
        self._bar.add_task(escape(spec.name), total=planned, completed=done, pace="")
        self._live.start()

    def prepare(self, method: str) -> None:
        """Show that a method is being prepared."""
        self._live.console.print(f"preparing {method}", markup=False, highlight=False)

    def advance(self, outcome: Outcome) -> None:
        """Show the outcome of a trial."""
        assert self._tally is not None
        self._tally.add(outcome)
        self._bar.update(self._bar.task_ids[0], completed=self._tally.handled, pace=self._tally.pace())

    def wait(self) -> None:
        """Do nothing, because the display shows the elapsed time."""

    def _render(self) -> RenderableType:
        if self._tally is None:
            return ""
        table = Table("method", *self._tally.arms, title="mean score so far", title_justify="left", box=None)
        for column in table.columns[1:]:
            column.justify = "right"
        for method in self._tally.methods:
            table.add_row(escape(method), *(self._tally.mean_score(method, arm) for arm in self._tally.arms))
        if not self._tally.failed:
            return Group(table, self._bar)
        failures = f"[red]{self._tally.failed} failed[/], first failure: {escape(self._tally.first_failure)}"
        return Group(table, failures, self._bar)

    def __enter__(self) -> Self:
        """Return the progress itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop the display."""
        self._live.stop()


class LineProgress:
    """Progress as one line every few seconds, for logs."""

    def __init__(self, write: Callable[[str], None], *, seconds: float = SECONDS_BETWEEN_LINES) -> None:
        self._write = write
        self._seconds = seconds
        self._tally: Tally | None = None
        self._last = self._last_advance = time.monotonic()

    def start(self, spec: ExperimentSpec, planned: int, done: int) -> None:
        """Start to show a run with a number of planned trials, some of them already done."""
        self._tally = _new_tally(spec, planned, done)
        self._last_advance = time.monotonic()
        self._write(f"{spec.name}: {pluralize(planned, 'trial')}, {done:,} already done")

    def prepare(self, method: str) -> None:
        """Show that a method is being prepared."""
        self._write(f"preparing {method}")

    def advance(self, outcome: Outcome) -> None:
        """Show the outcome of a trial."""
        assert self._tally is not None
        self._tally.add(outcome)
        if isinstance(outcome, TrialFailure) and self._tally.failed == 1:
            self._write(f"first failure: {self._tally.first_failure}")
        now = self._last_advance = time.monotonic()
        if now - self._last >= self._seconds or self._tally.handled == self._tally.planned:
            self._last = now
            self._write(
                f"{self._tally.handled:,} of {pluralize(self._tally.planned, 'trial')}, {self._tally.failed:,} failed, "
                f"{self._tally.pace()}"
            )

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


def _new_tally(spec: ExperimentSpec, planned: int, done: int) -> Tally:
    methods = tuple(method.name for method in spec.methods)
    return Tally(methods, tuple(arm.name for arm in spec.arms), planned, done)


def make_progress(console: Console) -> LiveProgress | LineProgress:
    """Return a live display if the console is a terminal, and lines otherwise."""
    if console.is_terminal:
        return LiveProgress(console)
    return LineProgress(lambda line: console.print(line, markup=False, highlight=False, soft_wrap=True))
