"""What follows from the crash of a worker: which trials are tried again, and which have failed.

A worker crashes if its process dies or its trial exceeds the time limit. The trial that was running is tried again,
alone; if its worker crashes more than `retries` times, the trial has failed. If it is not known which trial was
running, all items that the worker may have been doing are tried alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from peekbench.records import Trial, TrialFailure, WorkItem

KILLED = "signal 9"


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
    host: str = ""
    """Name of the machine, if it still exists."""

    def describe(self, number: int) -> str:
        """Return the error of a trial at which workers have crashed this number of times."""
        if self.is_final:
            return f"the trial was ended: {self.reason}; raise `timeout` if it should go on"
        advice = ""
        if self.reason == KILLED:
            advice = "; signal 9 usually means out of memory: use fewer workers or a smaller model"
        return f"worker process died ({self.reason}) {number} times at this trial{advice}"


def find_suspects(crash: Crash, num_lost: int) -> tuple[Crash, Sequence[WorkItem]]:
    """Return a crash with only those suspects that may have caused it, and the other items.

    Parameters
    ----------
    crash
        A crash of which all items without outcomes are suspects.
    num_lost
        Trials that have ended, but whose outcomes the worker had not sent yet. Each of them may have caused the crash.
    """
    items = crash.suspects
    number = num_lost
    for position, item in enumerate(items):
        if number < len(item.trials):
            if num_lost and not crash.is_final:
                return replace(crash, suspects=items[: position + 1]), items[position + 1 :]
            rest = [*items[:position], *items[position + 1 :]]
            return replace(crash, suspects=(item,), trial=item.trials[number]), rest
        number -= len(item.trials)
    return replace(crash, is_final=False), ()


class Crashes:
    """Counts the crashes at each trial.

    Parameters
    ----------
    retries
        Number of times that a trial is tried again.
    """

    def __init__(self, retries: int) -> None:
        self._retries = retries
        self._counts: Counter[Trial] = Counter()

    def judge(self, crash: Crash) -> tuple[TrialFailure | None, Sequence[WorkItem]]:
        """Return the failure of the trial that was running, and the items to do; each alone if there is no failure."""
        trial = crash.trial
        if trial is None and len(crash.suspects) == 1:
            trial = crash.suspects[0].trials[0]
        if trial is None:
            return None, crash.suspects
        self._counts[trial] += 1
        if self._counts[trial] <= self._retries and not crash.is_final:
            return None, crash.suspects
        error = crash.describe(self._counts[trial])
        left = [
            replace(suspect, trials=tuple(other for other in suspect.trials if other != trial))
            for suspect in crash.suspects
        ]
        traceback = f"{error}\n(a process that has ended leaves no traceback)\n"
        return TrialFailure(trial, error, traceback, crash.host), [item for item in left if item.trials]
