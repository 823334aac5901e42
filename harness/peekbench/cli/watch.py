"""The command `watch`: a live view of a run that another process does."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from peekbench.api.inputs import find_run
from peekbench.cli.options import RunArgument
from peekbench.cli.output import make_console
from peekbench.formatting import duration, pluralize, shorten
from peekbench.plugins.names import Code
from peekbench.report.render.terminal import render_verdicts
from peekbench.results.planned_looks import MIN_SUBSAMPLES, Estimates, RunState, estimate, read_state
from peekbench.store.files import is_in_use

MAX_SHARE = 0.02
"""Share of the time of one core that watching may take: after a view that took a second, it waits 50 seconds."""
SECONDS = 5.0  # between two views
POLL_SECONDS = 1.0  # between two looks at the lock of the store, which tells that the run has ended
MAX_ERROR = 300  # characters of the first failure
BAR_WIDTH = 40
BAR = "".ljust(BAR_WIDTH, "━")


def watch(
    run: RunArgument,
    once: Annotated[bool, typer.Option("--once", help="Print one view and end, as without a terminal.")] = False,
) -> None:
    """Watch a run that is going on: progress, pace, failures, and estimates that are valid at every look.

    The view ends with the run, or with Ctrl-C, which does not end the run.

    Example: peekbench watch quickstart
    """
    view, console = _View(*find_run(run)), make_console()
    view.update()
    if once or not console.is_terminal:
        _render(view, console)
    else:
        _watch(view, console)


class _View:
    """The state of a run and its estimates, read no more often than `MAX_SHARE` allows."""

    def __init__(self, path: Path, code: Collection[Code]) -> None:
        self._path, self._code = path, code
        self._estimated = -1  # number of trials at the last estimate
        self._cost = self._due = 0.0
        self.state: RunState
        self.estimates: Estimates | None = None

    def update(self) -> None:
        """Read the state again, and the estimates if there are new trials and they are not too expensive."""
        start = time.process_time()
        self.state = read_state(self._path)
        is_last = not self.state.is_running
        if self.state.done != self._estimated and (is_last or time.monotonic() >= self._due):
            begin = time.process_time()
            self.estimates, self._estimated = estimate(self._path, self._code), self.state.done
            self._due = time.monotonic() + (time.process_time() - begin) / MAX_SHARE
        self._cost = time.process_time() - start

    def wait(self, seconds: float) -> None:
        """Wait until the next view is due, or the run has ended."""
        due = time.monotonic() + max(seconds, self._cost / MAX_SHARE)
        while (left := due - time.monotonic()) > 0 and is_in_use(self._path):
            time.sleep(min(left, POLL_SECONDS))


def _watch(view: _View, console: Console) -> None:
    def draw() -> RenderableType:
        with console.capture() as captured:
            _render(view, console)
        return Text.from_ansi(captured.get().rstrip("\n"))

    with Live(draw(), console=console, auto_refresh=False) as live:
        while view.state.is_running:
            view.wait(SECONDS)
            view.update()
            live.update(draw(), refresh=True)


def _render(view: _View, console: Console) -> None:
    state, estimates = view.state, view.estimates
    status = "not running"
    if state.is_running:
        status = f"running for {duration(state.seconds)}"
    elif state.is_complete:
        status = "complete"
    console.print(Text.assemble((state.name, "bold"), f"  {status}"))
    share = state.done / max(1, state.planned)
    filled = round(BAR_WIDTH * share)
    console.print(Text.assemble((BAR[:filled], "bold"), (BAR[filled:], "dim"), f"  {share:.0%}"))
    console.print(Text(_describe_progress(state)))
    if state.first_failure is not None:
        error = shorten(" ".join(state.first_failure.error.split()), MAX_ERROR)
        console.print(Text(f"First failure: {state.first_failure.trial}: {error}", "red"))
    if estimates is None:
        return
    if estimates.analysis is None:
        console.print(Text(f"\n{_describe_missing(estimates)}", "dim"))
        return
    render_verdicts(estimates.analysis.verdicts, console)
    console.print()
    console.print(
        Text(
            f"From the first {estimates.subsamples:,} of {pluralize(estimates.maximum, 'subsample')}, which all tasks "
            "and methods have. The intervals hold at every look at once, so they are wider than those of the report.",
            "dim",
        )
    )


def _describe_missing(estimates: Estimates) -> str:
    if estimates.subsamples < MIN_SUBSAMPLES:
        return f"No estimates yet: they take {MIN_SUBSAMPLES} subsamples of every task and method."
    return "No estimates: no analysis of the spec accounts for looks, as `summary` does."


def _describe_progress(state: RunState) -> str:
    parts = [f"{state.done:,} of {pluralize(state.planned, 'trial')}"]
    if state.failed:
        parts.append(f"{state.failed:,} failed")
    if state.trials_per_hour:
        parts.append(f"{state.trials_per_hour:,.0f} trials/h")
    if state.seconds_left is not None:
        parts.append(f"about {duration(state.seconds_left)} left")
    return ", ".join(parts)
