"""Runs work items in worker processes of this machine; a worker that crashes does not end the run.

One worker is a process, too. On request, items run in the main process, where a debugger works.

The workers share the cores through `Context.threads`, for methods whose results do not depend on the number of threads;
BLAS and OpenMP always run single-threaded.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Generator, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import wait

from peekbench import PeekbenchError
from peekbench.plugins import THREADS_VARIABLE, Event, Outcome, Work
from peekbench.records import WorkItem
from peekbench_local.options import Local
from peekbench_workers.dispatcher import Dispatcher, News
from peekbench_workers.serve import BATCH_WINDOW
from peekbench_workers.supervisor import CHECK_INTERVAL, Limits, Supervisor, WorkerSettings


def execute(items: Iterable[WorkItem], work: Work, *, options: Local) -> Generator[Sequence[Event], None, None]:
    """Do the items, and yield their outcomes as they arrive; see `peekbench.plugins.work_protocols.Executor`.

    Parameters
    ----------
    items
        Items to do.
    work
        Function that does an item; it must be picklable unless `in_process` is set.
    options
        Number of workers and retries, limit of memory, and whether the items run in this process.

    Yields
    ------
    sequence of Event
        Outcomes of one or several trials. A trial whose worker died more than `retries` times, or that took longer than
        `work.timeout`, has failed. An empty sequence means that no trial was finished for a while.

    Raises
    ------
    PeekbenchError
        If worker processes cannot start, or if a limit requires a worker process and there is none.
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


class _LocalPool:
    """Worker processes of this machine, which start when there is work for them."""

    def __init__(self, work: Work, options: Local) -> None:
        threads = max(1, (os.cpu_count() or 1) // options.workers)
        memory = None if options.memory is None else int(options.memory * 1e9)
        settings = WorkerSettings(pickle.dumps(work), threads, Limits(work.timeout, memory))
        self._slots = [Supervisor(settings) for _ in range(options.workers)]
        self._has_limits = bool(settings.limits)

    @property
    def num_workers(self) -> int:
        """Number of worker processes."""
        return len(self._slots)

    def group(self, item: WorkItem) -> Hashable:
        """Return the same for all items, because all workers are equal."""
        return None

    def find_free(self, group: Hashable) -> Supervisor | None:
        """Return a worker without items."""
        return next((slot for slot in self._slots if not slot.is_busy), None)

    def wait(self, timeout: float) -> Sequence[News]:
        """Wait for messages and deaths of workers, and end those that exceed a limit."""
        busy = {slot.connection: slot for slot in self._slots if slot.is_busy}
        ready = set(wait(list(busy), timeout=CHECK_INTERVAL if self._has_limits else timeout))
        news: list[News] = []
        for connection, slot in busy.items():
            report = slot.receive() if connection in ready else None
            if report is None and (self._has_limits or not ready):
                report = slot.check()
            if report is not None:
                news.append((slot, report))
        return news

    def close(self) -> None:
        """Stop all workers."""
        for slot in self._slots:
            slot.stop()
