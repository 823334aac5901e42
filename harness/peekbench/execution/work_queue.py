"""Hands out the work items of a run, without those of methods whose first trials all failed in the same way."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from peekbench.plugins.work_protocols import Outcome
from peekbench.records.trials import Trial, TrialFailure, WorkItem

FIRST_TRIALS = 10
"""Number of first trials of a method that decide whether its others are tried."""
NUMBER = re.compile(r"0x[0-9a-f]+|\d+([.,]\d+)*(e[+-]?\d+)?", re.IGNORECASE)


@dataclass(slots=True)
class _FirstTrials:
    """First trials of a method and the ways in which they failed."""

    trials: set[Trial]
    waiting: set[Trial]
    """Those without an outcome."""
    errors: set[str] = field(default_factory=set)
    """Errors of those that failed, with numbers replaced."""


class WorkQueue(Iterator[WorkItem]):
    """Iterator over the work items of a run, in their order.

    A method is *stopped* if its first trials, in the order of the items, all fail in the same way: with the same
    exception and the same message, apart from numbers. Which methods are stopped does not depend on workers, because
    no later trial of a method is handed out before one of its first trials has succeeded or failed in another way. If
    that is not known yet, the iteration ends early; iterate again after `record` has received more outcomes.

    Parameters
    ----------
    items
        Items in the order of the plan.
    keep_going
        Try all trials of all methods.
    """

    def __init__(self, items: Iterable[WorkItem], *, keep_going: bool = False) -> None:
        self._items = deque(items)
        num_trials = Counter(trial.method for item in self._items for trial in item.trials)
        self._undecided: dict[str, _FirstTrials] = {}
        self._stopped: dict[str, int] = {}
        for trial in (trial for item in self._items for trial in item.trials):
            if keep_going or num_trials[trial.method] <= FIRST_TRIALS:  # there is nothing to save
                continue
            first = self._undecided.setdefault(trial.method, _FirstTrials(set(), set()))
            if len(first.trials) < FIRST_TRIALS:
                first.trials.add(trial)
                first.waiting.add(trial)

    @property
    def stopped(self) -> dict[str, int]:
        """Number of trials that are not tried, by stopped method."""
        return dict(self._stopped)

    def __len__(self) -> int:
        """Return the number of items that are left, those of undecided methods included."""
        return len(self._items)

    def __next__(self) -> WorkItem:
        """Return the next item, if it is known that its methods go on."""
        if not self._items or any(self._is_too_early(trial) for trial in self._items[0].trials):
            raise StopIteration
        return self._items.popleft()

    def _is_too_early(self, trial: Trial) -> bool:
        first = self._undecided.get(trial.method)
        return first is not None and trial not in first.trials

    def record(self, outcome: Outcome) -> None:
        """Take account of the outcome of a trial that was handed out."""
        method = outcome.trial.method
        first = self._undecided.get(method)
        if first is None or outcome.trial not in first.waiting:
            return
        first.waiting.discard(outcome.trial)
        if isinstance(outcome, TrialFailure):
            first.errors.add(NUMBER.sub("#", outcome.error))
        if not isinstance(outcome, TrialFailure) or len(first.errors) > 1:
            del self._undecided[method]
        elif not first.waiting:
            del self._undecided[method]
            self._stop(method)

    def _stop(self, method: str) -> None:
        """Leave out all trials of a method."""
        items, self._items = self._items, deque()
        for item in items:
            trials = tuple(trial for trial in item.trials if trial.method != method)
            self._stopped[method] = self._stopped.get(method, 0) + len(item.trials) - len(trials)
            if trials:
                self._items.append(replace(item, trials=trials))
