"""Runs the pending trials of a spec and stores their outcomes. Stored trials are never computed again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from peekbench.data.data_warnings import measured_overlaps, warn_of_data
from peekbench.data.loading import forget
from peekbench.data.preflight import describe_tasks
from peekbench.data.text_statistics import describe_texts, is_described
from peekbench.errors import ContractError
from peekbench.execution.accounting import Accounts
from peekbench.execution.code import code_hashes
from peekbench.execution.code_changes import find_changed_code
from peekbench.execution.determinism import one_thread_pools, preserve_global_generators
from peekbench.execution.hosts import expect, host_name
from peekbench.execution.planning import group_trials, make_trials
from peekbench.execution.preparation import prepare, prepare_same_files
from peekbench.execution.progress import NullProgress, Progress
from peekbench.execution.provenance import describe_session
from peekbench.execution.stored_run import StoredRun
from peekbench.execution.work import SpecWork
from peekbench.execution.work_queue import WorkQueue
from peekbench.formatting import pluralize
from peekbench.plugins.protocols import Event, Outcome
from peekbench.records.hosts import Capacity, Host
from peekbench.records.looks import PlannedLook
from peekbench.records.trials import Trial, TrialFailure
from peekbench.spec.design import Design
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.files import RUNS
from peekbench.store.writer import Store

TakeLook: TypeAlias = Callable[[Path, ExperimentSpec, int], PlannedLook]
"""Function that analyzes the trials of a store up to a planned look of its spec, and decides whether the run stops."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Outcome of a run."""

    store: Path
    planned: int
    """Trials of the spec."""
    resumed: int
    """Trials that the store already had."""
    finished: int
    """Trials finished in this run."""
    failed: int
    """Trials that failed in this run. The store has their tracebacks, and the next run tries them again."""
    changed_code: tuple[str, ...] = ()
    """Method plugins whose code differs from the code that made stored trials."""
    stopped: Mapping[str, int] = field(default_factory=dict)
    """Number of trials that were not tried, by method, because the first ones of the method failed in the same way."""
    look: PlannedLook | None = None
    """The last planned look before the maximum; None if there is none."""

    @property
    def is_settled(self) -> bool:
        """Whether the run stopped at a planned look, because all verdicts were settled."""
        return self.look is not None and self.look.stops


def store_path(spec: ExperimentSpec) -> Path:
    """Return the default store of a spec, `runs/<name>.sqlite`."""
    return RUNS / f"{spec.name}.sqlite"


def run(
    spec: ExperimentSpec,
    *,
    store: str | Path | None = None,
    progress: Progress | None = None,
    keep_going: bool = False,
    allow_changed_code: bool = False,
    take_look: TakeLook | None = None,
) -> RunSummary:
    """Run the trials of a spec that its store does not have yet, up to the planned look at which the run stops.

    Parameters
    ----------
    spec, store, progress, keep_going, allow_changed_code
        As for `peekbench.run`, which also describes the errors.
    take_look
        Analyzes the results at planned looks; `peekbench.run` passes it. Without it, the run goes on to its maximum.

    Returns
    -------
    RunSummary
        The store and the numbers of trials.
    """
    progress = progress or NullProgress()
    forget()
    tasks = describe_tasks(spec)
    path = Path(store) if store is not None else store_path(spec)
    trials = list(make_trials(spec))
    code = code_hashes(method.use for method in spec.methods)
    stored = StoredRun.read(path)
    changed_code = find_changed_code(stored, spec, code, is_allowed=allow_changed_code)
    facts = prepare_same_files(stored, spec, trials, progress)
    with Store.for_run(path, spec, tasks) as opened, preserve_global_generators(), one_thread_pools():
        done = opened.done()
        num_done = len(done.intersection(trials))
        progress.start(spec, [trial for trial in trials if trial not in done], num_done)
        driver = _Driver(spec, opened, progress, keep_going=keep_going)
        work: SpecWork | None = None
        look: PlannedLook | None = None
        for number in _remaining_looks(spec.design, opened) if take_look else [spec.design.num_looks]:
            pending = [trial for trial in make_trials(spec.at_look(number)) if trial not in done]
            if pending:
                if work is None:
                    facts = prepare(spec, progress) if facts is None else facts
                    opened.add_session({**describe_session(spec.folder), "code": code, "methods": facts}, host_name())
                    _describe_texts(spec, opened)
                    for warning in warn_of_data(spec, tasks, measured_overlaps(opened.texts())):
                        progress.warn(warning)
                    work = SpecWork(spec, expect(spec, tasks, facts))
                driver.do(pending, work)
                done.update(pending)
            if number == spec.design.num_looks or (driver.failed and not spec.report.allow_incomplete):
                break
            assert take_look is not None
            look = _look(opened, spec, number, take_look, is_unchanged=not pending)
            if look.stops:
                break
    return RunSummary(path, len(trials), num_done, driver.finished, driver.failed, changed_code, driver.stopped, look)


class _Driver:
    """Sends trials to the executor, accounts for their outcomes, and stores them."""

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
        queue = _make_queue(self._spec, pending, self._store, keep_going=self._keep_going)
        with closing(_execute(self._spec, queue, work)) as batches:
            for batch in batches:
                if not batch:
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


def _remaining_looks(design: Design, store: Store) -> range:
    """Return the numbers of the planned looks from the last one that a stored run has reached."""
    reached = [look.subsamples for look in store.planned_looks()]
    sizes = design.look_sizes_of_largest()
    first = max((number for number, size in enumerate(sizes, start=1) if size <= max(reached, default=0)), default=1)
    return range(first, len(sizes) + 1)


def _look(store: Store, spec: ExperimentSpec, number: int, take_look: TakeLook, *, is_unchanged: bool) -> PlannedLook:
    """Take and store a planned look, unless the store has it already and no trial was added."""
    size = spec.design.look_sizes_of_largest()[number - 1]
    stored = [look for look in store.planned_looks() if look.subsamples == size]
    if stored and is_unchanged:
        return stored[-1]
    look = take_look(store.path, spec, number)
    store.add_look(look)
    return look


def _describe_texts(spec: ExperimentSpec, store: Store) -> None:
    """Store the descriptions of texts that reports show, unless the store has them."""
    stored = store.texts()
    for task in spec.tasks:
        if not is_described(spec, stored.get(task.name)):
            store.save_texts(task.name, describe_texts(spec, task))


def _make_queue(spec: ExperimentSpec, pending: list[Trial], store: Store, *, keep_going: bool) -> WorkQueue:
    base_keys = {method.name: method.base_key() for method in spec.methods}
    return WorkQueue(group_trials(pending, base_keys, store.bases()), keep_going=keep_going)


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
