"""What a worker reports about a batch of work items: outcomes, a crash, or an error that ends the run."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace

from peekbench.plugins import Outcome
from peekbench.records import TrialResult, WorkItem
from peekbench_workers.crashes import Crash


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


def make_portable(error: BaseException) -> Exception:
    """Return the error with its traceback as a note, or a RuntimeError with its text if it cannot be pickled."""
    text = "".join(traceback.format_exception(error))
    if not isinstance(error, Exception):
        return RuntimeError(text)
    error.add_note(f"in a worker process:\n{text}")
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - pickled in this process
    except Exception:
        return RuntimeError(text)
    return error
