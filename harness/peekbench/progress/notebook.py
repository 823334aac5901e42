"""Progress of a run below the cell of a notebook.

The live display of rich needs the package ipywidgets in a notebook. This one replaces a plain output of the cell, which
every front end of Jupyter can do.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from peekbench.execution.observers import Progress
from peekbench.formatting import pluralize, visible
from peekbench.progress.displays import describe_capacity, describe_stop, new_tally
from peekbench.progress.tally import Tally, duration
from peekbench.records.hosts import Capacity
from peekbench.records.trials import Trial

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from peekbench.plugins.work_protocols import Outcome
    from peekbench.spec.experiment import ExperimentSpec

SECONDS_BETWEEN_UPDATES = 0.5


class NotebookProgress(Progress):
    """Progress as an output that replaces itself: a bar, the pace and the mean scores so far."""

    def __init__(self, *, seconds: float = SECONDS_BETWEEN_UPDATES) -> None:
        self._seconds = seconds
        self._tally: Tally | None = None
        self._name = self._capacity = self._preparing = ""
        self._notes: list[str] = []
        self._handle: Any = None
        self._started = self._last = time.monotonic()
        self._is_finished = False

    def start(self, spec: ExperimentSpec, pending: Sequence[Trial], done: int) -> None:
        """Start to show a run with its pending trials and the number of trials that are already done."""
        self._tally, self._name = new_tally(spec, pending, done), spec.name
        self._show(is_due=True)

    def prepare(self, method: str) -> None:
        """Show that a method is being prepared."""
        self._preparing = f"preparing {method}"
        self._show(is_due=True)

    def warn(self, message: str) -> None:
        """Show a warning about the data."""
        self._notes.append(f"warning: {message}")

    def show_capacity(self, capacity: Capacity) -> None:
        """Show the number of machines and workers."""
        self._capacity = describe_capacity(capacity)

    def advance(self, outcome: Outcome) -> None:
        """Show the outcome of a trial."""
        assert self._tally is not None
        self._tally.add(outcome)
        self._preparing = ""
        self._show()

    def stop(self, method: str, num_trials: int) -> None:
        """Show that the other trials of a method are not tried."""
        assert self._tally is not None
        self._tally.stop(method, num_trials)
        self._notes.append(describe_stop(method, num_trials))

    def wait(self) -> None:
        """Show the elapsed time."""
        self._show()

    def __enter__(self) -> Self:
        """Return the progress itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Show the last state."""
        self._is_finished = True
        if self._tally is not None:
            self._show(is_due=True)

    def _show(self, *, is_due: bool = False) -> None:
        """Replace the output, at most every `SECONDS_BETWEEN_UPDATES`."""
        now = time.monotonic()
        if not is_due and now - self._last < self._seconds:
            return
        self._last = now
        from IPython.display import display  # noqa: PLC0415 - only notebooks have it

        content = {"text/html": self._html(), "text/plain": self._text()}
        if self._handle is None:
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)

    def _text(self) -> str:
        if self._tally is None:
            return self._preparing
        details = [f"{self._tally.failed:,} failed"] if self._tally.failed else []
        details += [duration(time.monotonic() - self._started)]
        details += [] if self._is_finished else [self._tally.pace(), self._capacity, self._preparing]
        count = f"{self._tally.handled:,} of {pluralize(self._tally.planned, 'trial')}"
        return visible(f"{self._name}: {', '.join(filter(None, [count, *details]))}")

    def _html(self) -> str:
        """Return the display as HTML with escaped texts, in the colors of the notebook."""
        bar = ""
        if self._tally is not None and not self._is_finished:
            bar = (
                f'<progress value="{self._tally.handled}" max="{max(1, self._tally.planned)}" '
                'style="width: 20rem; vertical-align: middle"></progress> '
            )
        notes = "".join(f"<div>{escape(visible(note))}</div>" for note in self._notes)
        if self._tally is not None and self._tally.failed:
            notes += f"<div>first failure: {escape(visible(self._tally.first_failure))}</div>"
        return f"<div>{bar}{escape(self._text())}{notes}{'' if self._is_finished else self._scores()}</div>"

    def _scores(self) -> str:
        if self._tally is None or not self._tally.done:
            return ""
        tally = self._tally
        rows = [[visible(method), *(tally.mean_score(method, arm) for arm in tally.arms)] for method in tally.methods]
        head = "".join(f"<th>{escape(name)}</th>" for name in ("mean score so far", *tally.arms))
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        return f"<table><tr>{head}</tr>{body}</table>"
