"""Sends the trials of a run to its executor, checks what comes back, and saves it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TypeGuard

from peekbench.errors import ContractError
from peekbench.execution.fit_plans import group_trials
from peekbench.execution.hosts import host_name
from peekbench.execution.observers import Observers
from peekbench.execution.work import SpecWork
from peekbench.formatting import pluralize, shorten
from peekbench.plugins.boundary import Foreign
from peekbench.plugins.work_protocols import Event, Outcome, Work
from peekbench.records.runs import Capacity, Host
from peekbench.records.trials import Trial, TrialFailure, TrialResult, WorkItem
from peekbench.spec.components import ExecutorSpec
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.writer import StoreWriter

MAX_SHOWN = 200  # characters of a wrong value in messages
FIRST_TRIALS = 10
"""Number of first trials of a method that decide whether its others are tried."""


class WorkQueue(Iterator[WorkItem]):
    """Iterator over the work items of a run, in their order.

    If the first outcomes of a method are all failures, its other trials are left out; those that were handed out before
    are not.

    Parameters
    ----------
    items
        Items in the order of the plan.
    keep_going
        Try all trials of all methods.
    before
        The queue up to the last planned look, whose outcomes count as well.
    """

    def __init__(self, items: Iterable[WorkItem], *, keep_going: bool = False, before: WorkQueue | None = None) -> None:
        self._items = deque(items)
        self._keep_going = keep_going
        self._num_failed: Counter[str] = Counter()
        self._working: set[str] = set()
        if before is not None:
            self._num_failed, self._working = before._num_failed, before._working
        self.stopped: dict[str, int] = {}
        """Number of trials that are not tried, by stopped method; 0 if all were handed out before."""

    def __len__(self) -> int:
        """Return the number of items that are left."""
        return len(self._items)

    def __next__(self) -> WorkItem:
        """Return the next item."""
        if not self._items:
            raise StopIteration
        return self._items.popleft()

    def record(self, outcome: Outcome) -> None:
        """Take account of the outcome of a trial that was handed out."""
        method = outcome.trial.method
        if not isinstance(outcome, TrialFailure):
            self._working.add(method)
        elif method not in self._working:
            self._num_failed[method] += 1
            if self._num_failed[method] == FIRST_TRIALS and not self._keep_going:
                self._stop(method)

    def _stop(self, method: str) -> None:
        """Leave out the remaining trials of a method."""
        num_before = sum(len(item.trials) for item in self._items)
        rest = [
            replace(item, trials=tuple(trial for trial in item.trials if trial.method != method))
            for item in self._items
        ]
        self._items = deque(item for item in rest if item.trials)
        self.stopped[method] = num_before - sum(len(item.trials) for item in self._items)


class Driver:
    """Sends trials to the executor, checks their outcomes, and saves them.

    Each trial has one outcome, with all arms and from a prepared machine.

    Parameters
    ----------
    spec
        The spec.
    store
        The store in which the outcomes are saved.
    observers
        Are told of the outcomes.
    keep_going
        Try all trials of a method, even if its first ten fail.
    """

    def __init__(self, spec: ExperimentSpec, store: StoreWriter, observers: Observers, *, keep_going: bool) -> None:
        self._spec = spec
        self._store = store
        self._observers = observers
        self._keep_going = keep_going
        self._base_keys = spec.base_keys()
        self._bases = store.bases()
        self._hosts = {"", host_name()}
        self._open: set[Trial] = set()
        self._closed: set[Trial] = set()
        self._queue: WorkQueue | None = None
        self.finished = self.failed = 0
        self.stopped: dict[str, int] = {}

    def do(self, pending: list[Trial], work: SpecWork) -> None:
        """Try all pending trials, except those of methods whose first ten fail.

        Raises
        ------
        ContractError
            If the executor has lost trials, or yields anything that it was not asked for.
        """
        for method, num_trials in Counter(trial.method for trial in pending if trial.method in self.stopped).items():
            self._stop(method, num_trials)
        pending = [trial for trial in pending if trial.method not in self.stopped]
        self._open.update(pending)
        self._closed -= self._open
        items = group_trials(pending, self._base_keys, self._bases)
        queue = self._queue = WorkQueue(items, keep_going=self._keep_going, before=self._queue)
        with closing(execute(self._spec.executor, queue, work)) as batches:
            for batch in batches:
                outcomes = [event for event in batch if self._receive(event)]
                if outcomes or not batch:
                    self._store.save(*outcomes)
                if not batch:
                    self._observers.wait()
                self._record(outcomes, queue)
        if missing := [trial for trial in self._open if trial.method not in self.stopped]:
            raise ContractError(
                f"the executor {self._spec.executor.use} yielded no outcome of {pluralize(len(missing), 'trial')}, "
                f"such as {missing[0]}; the others are stored. Correct the executor, or use another one, and "
                "run the spec again"
            )

    def _receive(self, event: Event) -> TypeGuard[Outcome]:
        """Take notice of machines, and return whether an event is a new outcome."""
        if isinstance(event, Host):
            self._hosts.add(event.name)
            self._store.add_host(event)
            return False
        if isinstance(event, Capacity):
            self._observers.show_capacity(event)
            return False
        if not isinstance(event, TrialResult | TrialFailure):
            raise self._error(f"{shorten(repr(event), MAX_SHOWN)} in a batch; yield the outcomes of the work unchanged")
        if event.trial in self._closed:
            return False
        if event.trial not in self._open:
            raise self._error(f"the outcome of a trial that it was not given: {event.trial}")
        if event.host not in self._hosts:
            raise self._error(
                f"an outcome from {event.host} without its `Host`; call `work.prepare()` on each machine, and yield "
                "its return value before the first outcome of this machine"
            )
        if isinstance(event, TrialResult):
            self._check_arms(event)
        self._open.remove(event.trial)
        self._closed.add(event.trial)
        return True

    def _check_arms(self, outcome: TrialResult) -> None:
        trial = outcome.trial
        base = (trial.draw, self._base_keys[trial.method, trial.draw.task])
        found = [arm.arm for arm in outcome.arms]
        needed = [arm.name for arm in self._spec.arms if arm.kind != "base" or base not in self._bases]
        if found != needed:
            raise self._error(
                f"an outcome with the arms {found} instead of {needed}: {outcome.trial}; if some trials of a work item "
                "are done again, `has_base` tells whether an outcome with the base arm was yielded"
            )
        if "base" in found:
            self._bases.add(base)

    def _error(self, problem: str) -> ContractError:
        return ContractError(f"the executor {self._spec.executor.use} yielded {problem}")

    def _record(self, outcomes: Sequence[Outcome], queue: WorkQueue) -> None:
        """Report stored outcomes, and stop methods that always fail."""
        stopped_before = set(queue.stopped)
        for outcome in outcomes:
            queue.record(outcome)
            self._observers.advance(outcome)
            self.failed += isinstance(outcome, TrialFailure)
            self.finished += not isinstance(outcome, TrialFailure)
        for method, num_trials in queue.stopped.items():
            if method not in stopped_before:
                self._stop(method, num_trials)

    def _stop(self, method: str, num_trials: int) -> None:
        self.stopped[method] = self.stopped.get(method, 0) + num_trials
        if num_trials:
            self._observers.stop(method, num_trials)


def execute(executor: ExecutorSpec, items: Iterable[WorkItem], work: Work) -> Generator[Sequence[Event], None, None]:
    """Let an executor do work items."""
    with Foreign(f"executor {executor.use}", executor.use, executor.options).guard():
        yield from executor.entry.execute(items, work, options=executor.options)
