"""Sends the trials of a run to its executor and saves their outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import closing

from peekbench.errors import ContractError
from peekbench.execution.accounting import Accounts
from peekbench.execution.hosts import host_name
from peekbench.execution.planning import group_trials
from peekbench.execution.progress import Progress
from peekbench.execution.work import SpecWork
from peekbench.execution.work_queue import WorkQueue
from peekbench.formatting import pluralize
from peekbench.plugins.work_protocols import Event, Outcome
from peekbench.records.hosts import Capacity, Host
from peekbench.records.trials import Trial, TrialFailure
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.writer import Store


class Driver:
    """Sends trials to the executor, accounts for their outcomes, and saves them.

    Parameters
    ----------
    spec
        The spec.
    store
        The store in which the outcomes are saved.
    progress
        Receives the progress.
    keep_going
        Try all trials of a method, even if its first ten fail in the same way.
    """

    def __init__(self, spec: ExperimentSpec, store: Store, progress: Progress, *, keep_going: bool) -> None:
        self._spec = spec
        self._store = store
        self._progress = progress
        self._keep_going = keep_going
        self._accounts = Accounts(spec, store.bases(), host_name())
        self.finished = self.failed = 0
        self.stopped: dict[str, int] = {}

    def do(self, pending: list[Trial], work: SpecWork) -> None:
        """Try all pending trials, except those of methods whose first trials all fail in the same way.

        Raises
        ------
        ContractError
            If the executor has lost trials.
        """
        for method, num_trials in Counter(trial.method for trial in pending if trial.method in self.stopped).items():
            self._stop(method, num_trials)
        pending = [trial for trial in pending if trial.method not in self.stopped]
        self._accounts.expect(pending)
        items = group_trials(pending, self._accounts.base_keys, self._accounts.bases)
        queue = WorkQueue(items, keep_going=self._keep_going)
        with closing(_execute(self._spec, queue, work)) as batches:
            for batch in batches:
                if not batch:
                    self._store.save()
                    self._progress.wait()
                    continue
                self._save(self._receive(batch), queue)
        if missing := self._accounts.find_missing(self.stopped):
            raise ContractError(
                f"the executor {self._spec.executor.use} yielded no outcome of {pluralize(len(missing), 'trial')}, "
                f"such as {missing[0]}; the others are stored. Correct the executor, or use another one, and "
                "run the spec again"
            )

    def _receive(self, batch: Sequence[Event]) -> list[Outcome]:
        """Return the new outcomes of a batch, and take notice of the machines."""
        outcomes = []
        for event in batch:
            if isinstance(event, Host):
                self._accounts.add_host(event.name)
                self._store.add_host(event)
            elif isinstance(event, Capacity):
                self._progress.show_capacity(event)
            elif outcome := self._accounts.receive(event):
                outcomes.append(outcome)
        return outcomes

    def _save(self, outcomes: Sequence[Outcome], queue: WorkQueue) -> None:
        """Store outcomes, and stop methods that always fail."""
        if not outcomes:
            return
        self._store.save(*outcomes)
        stopped_before = queue.stopped
        for outcome in outcomes:
            queue.record(outcome)
            self._progress.advance(outcome)
            self.failed += isinstance(outcome, TrialFailure)
            self.finished += not isinstance(outcome, TrialFailure)
        for method, num_trials in queue.stopped.items():
            if method not in stopped_before:
                self._stop(method, num_trials)

    def _stop(self, method: str, num_trials: int) -> None:
        self.stopped[method] = self.stopped.get(method, 0) + num_trials
        self._progress.stop(method, num_trials)


def _execute(spec: ExperimentSpec, queue: WorkQueue, work: SpecWork) -> Generator[Sequence[Event], None, None]:
    """Let the executor do the items of a queue.

    An executor that takes items before it has yielded the outcomes of earlier ones reaches the end of the queue before
    it is known which methods go on. It is then called again.
    """
    executor = spec.executor
    num_left = -1
    while len(queue) not in (0, num_left):
        num_left = len(queue)
        yield from executor.entry.execute(queue, work, options=executor.options)
