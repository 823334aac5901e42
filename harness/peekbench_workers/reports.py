"""What a worker reports about a batch of work items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from peekbench.plugins import Outcome
from peekbench.records import Trial, TrialFailure, TrialResult, WorkItem


@dataclass(frozen=True, slots=True)
class Crash:
    """A worker that ended in the middle of a batch."""

    reason: str
    """What happened, such as 'exit status 3'."""
    suspects: tuple[WorkItem, ...]
    """Items that the worker may have been working on: one if it is known."""
    trial: Trial | None = None
    """Trial of the suspect that was running; None if unknown."""
    is_final: bool = False
    """Whether the trial has failed and is not tried again, because it took longer than the time limit."""
    remedy: str = ""
    """What to change if the worker was ended because it exceeded a limit."""
    host: str = ""
    """Name of the machine, if it still exists."""


@dataclass(frozen=True, slots=True)
class Report:
    """Outcomes of a batch of items, or of a part of it."""

    outcomes: Sequence[Outcome] = ()
    is_end: bool = True
    """Whether the worker is free again; otherwise, further outcomes follow."""
    rest: Sequence[WorkItem] = ()
    """Items, or parts of items, without outcomes, except the suspects of a crash."""
    num_done: int = 0
    """Number of items of the batch that were completed."""
    crash: Crash | None = None
    """How the worker ended; None if it goes on."""
    error: Exception | None = None
    """Error that ends the run."""


def drop_trials(items: Sequence[WorkItem], outcomes: Sequence[Outcome]) -> list[WorkItem]:
    """Return items without their first trials, which have outcomes.

    Parameters
    ----------
    items
        Items in the order in which they are done.
    outcomes
        One outcome of each of the first trials, in their order.

    Returns
    -------
    list of WorkItem
        The rest. If an item's base arm is among the outcomes, its rest has `has_base` set.
    """
    rest = []
    start = 0
    for item in items:
        own = outcomes[start : start + len(item.trials)]
        start += len(item.trials)
        if not own:
            rest.append(item)
        elif len(own) < len(item.trials):
            has_base = item.has_base or any(isinstance(outcome, TrialResult) for outcome in own)
            rest.append(replace(item, trials=item.trials[len(own) :], has_base=has_base))
    return rest


def find_trial(items: Sequence[WorkItem], number: int) -> tuple[int, Trial] | None:
    """Return the position of the item with the trial of a number, counted over all items, and the trial."""
    for position, item in enumerate(items):
        if number < len(item.trials):
            return position, item.trials[number]
        number -= len(item.trials)
    return None


def without(item: WorkItem, trial: Trial) -> list[WorkItem]:
    """Return an item without a trial, or nothing if it has no other trial."""
    trials = tuple(other for other in item.trials if other != trial)
    return [replace(item, trials=trials)] if trials else []


def make_failure(trial: Trial, message: str, host: str) -> TrialFailure:
    """Return the failure of a trial whose process has ended."""
    return TrialFailure(trial, message, f"{message}\n(a process that has ended leaves no traceback)\n", host)
