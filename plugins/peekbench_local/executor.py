"""Runs work items in worker processes of this machine; a worker that crashes does not end the run.

One worker is a process, too. On request, items run in the main process, where a debugger works.

The workers share the cores through `Context.threads`, for methods whose results do not depend on the number of threads;
BLAS and OpenMP always run single-threaded.
"""

from __future__ import annotations

import os
import pickle
import time
from collections import Counter
from collections.abc import Generator, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from multiprocessing.connection import wait

from peekbench import PeekbenchError
from peekbench.plugins import THREADS_VARIABLE, Event, Outcome, Work, list_gpus
from peekbench.records import Resources, WorkItem
from peekbench_local.options import Local
from peekbench_local.placement import NO_GPU, GpuNeed, Grant, Placement
from peekbench_workers.dispatcher import Dispatcher, News
from peekbench_workers.serve import BATCH_WINDOW
from peekbench_workers.supervisor import CHECK_INTERVAL, Supervisor, WorkerSettings


def execute(items: Iterable[WorkItem], work: Work, *, options: Local) -> Generator[Sequence[Event], None, None]:
    """Do the items, and yield their outcomes as they arrive; see `peekbench.plugins.work_protocols.Executor`.

    Parameters
    ----------
    items
        Items to do.
    work
        Function that does an item; it must be picklable unless `in_process` is set.
    options
        Number of workers and retries, and whether the items run in this process.

    Yields
    ------
    sequence of Event
        Outcomes of one or several trials. A trial whose worker died more than `retries` times, or that took longer than
        `work.timeout`, has failed. An empty sequence means that no trial was finished for a while.

    Raises
    ------
    PeekbenchError
        If worker processes cannot start, if a limit requires a worker process and there is none, or if the GPUs of this
        machine lack what a trial needs.
    """
    if options.in_process:
        if work.timeout is not None:
            raise PeekbenchError(
                "`timeout` requires a worker process, which can be ended; remove the executor option "
                "`in_process: true`, or `timeout`"
            )
        with _set_threads(os.cpu_count() or 1):
            yield from _run_here(items, work)
    else:
        yield from Dispatcher(items, _LocalPool(work, options), options.retries).run()


def _run_here(items: Iterable[WorkItem], work: Work) -> Generator[Sequence[Outcome], None, None]:
    outcomes: list[Outcome] = []
    started = time.monotonic()
    try:
        for item in items:
            for outcome in work(item):
                outcomes.append(outcome)
                if time.monotonic() - started >= BATCH_WINDOW:
                    batch, outcomes = outcomes, []
                    yield batch
                    started = time.monotonic()
    except (Exception, KeyboardInterrupt):
        yield outcomes
        raise
    yield outcomes


@contextmanager
def _set_threads(threads: int) -> Iterator[None]:
    """Tell fits in this process how many threads they may use."""
    before = os.environ.get(THREADS_VARIABLE)
    os.environ[THREADS_VARIABLE] = str(threads)
    try:
        yield
    finally:
        if before is None:
            del os.environ[THREADS_VARIABLE]
        else:
            os.environ[THREADS_VARIABLE] = before


class _LocalSlot:
    """A worker process with the GPUs that it may use."""

    def __init__(self, pool: _LocalPool, supervisor: Supervisor, grant: Grant) -> None:
        self._pool = pool
        self.supervisor = supervisor
        self.grant = grant

    def send(self, items: Sequence[WorkItem]) -> None:
        """Start a batch of items."""
        self._pool.count_sent(items)
        self.supervisor.send(items)


class _LocalPool:
    """Worker processes of this machine, which start when there is work for them.

    A worker has the GPUs that its first item needs. Items that need less, or no GPU, are done by any worker. If a
    worker with more is needed and there are as many workers as may be, idle ones are replaced.
    """

    def __init__(self, work: Work, options: Local) -> None:
        self._settings = WorkerSettings(pickle.dumps(work), time_limit=work.timeout)
        self._work = work
        self._options = options
        self._slots: list[_LocalSlot] = []
        self._waiting: Counter[Resources] = Counter()
        self._needs: dict[Resources, GpuNeed] = {}
        self.num_workers = options.workers or 1
        """Largest number of worker processes."""

    @cached_property
    def _placement(self) -> Placement:
        memory = None if self._options.gpu_memory is None else int(self._options.gpu_memory * 1e9)
        return Placement(list_gpus(), memory, self._options.workers)

    def group(self, item: WorkItem) -> Resources:
        """Return the resources that an item needs."""
        resources = self._work.needs(item)
        self._waiting[resources] += 1
        if resources not in self._needs:
            self._needs[resources] = self._find_need(resources)
        return resources

    def _find_need(self, resources: Resources) -> GpuNeed:
        """Return the needs of trials for GPUs, and allow as many workers as fit there if the user set no number."""
        if not resources.gpus and self._options.gpu_memory is None:
            return NO_GPU  # without a look at the GPUs of this machine
        need = self._placement.need(resources)
        if self._options.workers is None and need.gpus:
            fitting = min(self._placement.count_places(need), os.cpu_count() or 1)
            self.num_workers = max(self.num_workers, fitting)
        return need

    def count_sent(self, items: Sequence[WorkItem]) -> None:
        """Note that items do not wait any more."""
        for item in items:
            self._waiting[self._work.needs(item)] -= 1

    def find_free(self, group: Hashable) -> _LocalSlot | None:
        """Return an idle worker with the GPUs that are needed, or place a new one; None if there is no room."""
        assert isinstance(group, Resources)
        need = self._needs[group]
        wanted = [self._needs[resources] for resources, number in self._waiting.items() if number > 0]
        if not need.gpus and any(self._can_add(other) for other in wanted):
            return None  # an idle worker would be better used with a GPU
        idle = [slot for slot in self._slots if not slot.supervisor.is_busy]
        able = [slot for slot in idle if slot.grant.need.covers(need)]
        if not need.gpus and any(other.gpus for other in wanted):
            able = [slot for slot in able if not slot.grant.gpus]
        if able:
            return min(able, key=lambda slot: (slot.grant.need.memory, slot.grant.need.gpus))
        return self._add(need)

    def _can_add(self, need: GpuNeed) -> bool:
        """Return whether an idle worker without a GPU could be replaced by one with the GPUs of a need."""
        if not need.gpus or len(self._slots) < self.num_workers:
            return False
        if not any(not slot.supervisor.is_busy and not slot.grant.gpus for slot in self._slots):
            return False
        return self._placement.place(need, [slot.grant for slot in self._slots]) is not None

    def _add(self, need: GpuNeed) -> _LocalSlot | None:
        """Start a worker, in the place of idle ones if need be."""
        removed: list[_LocalSlot] = []
        # Those with the smallest grants first; workers with large grants can do all other items.
        idle = [slot for slot in self._slots if not slot.supervisor.is_busy] if need.gpus else []
        idle.sort(key=lambda slot: (slot.grant.need.memory, slot.grant.need.gpus))
        while True:
            kept = [slot for slot in self._slots if slot not in removed]
            grants = [slot.grant for slot in kept]
            grant = self._placement.place(need, grants) if need.gpus else Grant()
            if grant is not None and len(kept) < self.num_workers:
                break
            if not idle:
                return None
            removed.append(idle.pop(0))
        for slot in removed:
            slot.supervisor.stop()
        threads = max(1, (os.cpu_count() or 1) // self.num_workers)
        settings = replace(self._settings, threads=threads, environment=grant.environment())
        self._slots = [*kept, _LocalSlot(self, Supervisor(settings), grant)]
        return self._slots[-1]

    def wait(self, timeout: float) -> Sequence[News]:
        """Wait for messages and deaths of workers, and end those that exceed the time limit."""
        busy = {slot.supervisor.connection: slot for slot in self._slots if slot.supervisor.is_busy}
        ready = set(wait(list(busy), timeout=timeout if self._work.timeout is None else CHECK_INTERVAL))
        news: list[News] = []
        for connection, slot in busy.items():
            report = slot.supervisor.receive() if connection in ready else None
            if report is None and (self._work.timeout is not None or not ready):
                report = slot.supervisor.check()
            if report is not None:
                news.append((slot, report))
        return news

    def close(self) -> None:
        """Stop all workers."""
        for slot in self._slots:
            slot.supervisor.stop()
