"""Runs work items in worker processes; a worker that crashes does not end the run.

One worker is a process, too. On request, items run in the main process, where a debugger works.

Fast items are sent and returned in batches, because a message between processes and a transaction of the store cost
about as much as a small fit. No outcome waits longer than `BATCH_WINDOW`, plus the duration of one item.

The workers share the cores through `Context.threads`, for methods whose results do not depend on the number of threads;
BLAS and OpenMP always run single-threaded.
"""

from __future__ import annotations

import os
import pickle
import time
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from multiprocessing.connection import Connection, wait
from operator import length_hint
from typing import Any, cast

from peekbench import PeekbenchError
from peekbench.plugins import THREADS_VARIABLE, Outcome
from peekbench.records import Trial, TrialFailure, WorkItem
from peekbench_local.options import Local
from peekbench_local.worker import BATCH_WINDOW, Work, Worker

POLL_INTERVAL = 1.0  # seconds between checks whether silent workers are alive
MAX_FAILED_STARTS = 3  # consecutive failures after which the run ends


def execute(items: Iterable[WorkItem], work: Work, *, options: Local) -> Generator[Sequence[Outcome], None, None]:
    """Do the items, and yield their outcomes as they arrive; see `peekbench.plugins.protocols.Executor`.

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
    sequence of Outcome
        Outcomes of one or several items. An item whose worker died more than `retries` times yields one failure per
        trial. An empty sequence means that no item was finished for a while.

    Raises
    ------
    PeekbenchError
        If worker processes cannot start.
    """
    if options.in_process:
        with _set_threads(os.cpu_count() or 1):
            yield from _run_here(items, work)
    else:
        yield from _Dispatcher(items, work, options).run()


def _run_here(items: Iterable[WorkItem], work: Work) -> Generator[Sequence[Outcome], None, None]:
    outcomes: list[Outcome] = []
    started = time.monotonic()
    try:
        for item in items:
            outcomes += work(item)
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


class _Dispatcher:
    """Distributes items over workers and accounts for those whose worker dies.

    If a worker dies, any of the items that it held may be the cause. Each is then retried alone; one that is alone when
    its worker dies more than `retries` times has failed.
    """

    def __init__(self, items: Iterable[WorkItem], work: Work, options: Local) -> None:
        self._items = iter(items)
        self._returned: deque[WorkItem] = deque()
        self._pickled = pickle.dumps(work)
        self._options = options
        self._threads = max(1, (os.cpu_count() or 1) // options.workers)
        self._suspects: list[WorkItem] = []
        self._deaths: Counter[WorkItem] = Counter()
        self._failed_starts = 0
        self._workers: list[Worker] = []

    def run(self) -> Generator[Sequence[Outcome], None, None]:
        """Yield outcomes until every item is done or has failed."""
        try:
            while True:
                self._send_items()
                busy = {worker.connection: worker for worker in self._workers if worker.items}
                if not busy:
                    return
                ready = wait(list(busy), timeout=POLL_INTERVAL)
                if not ready:
                    yield []
                for connection in ready or [connection for connection, worker in busy.items() if worker.is_dead]:
                    yield from self._receive(busy[cast("Connection[Any, Any]", connection)])
        finally:
            for worker in self._workers:
                worker.stop()

    def _send_items(self) -> None:
        """Send items to idle workers, and start workers as needed."""
        for position in range(self._options.workers):
            worker = self._workers[position] if position < len(self._workers) else None
            if worker is not None and worker.items:
                continue
            if self._suspects:
                batch = [self._suspects.pop()]
            else:
                # Small batches near the end, because a slow item would delay those queued behind it.
                num_left = len(self._returned) + length_hint(self._items)
                fair_share = max(1, num_left // (2 * self._options.workers))
                batch = self._take(min(worker.batch_size if worker else 1, fair_share))
            if not batch:
                return
            if worker is None:
                worker = Worker(self._pickled, self._threads)
                self._workers.append(worker)
            worker.send(batch)

    def _take(self, size: int) -> list[WorkItem]:
        """Return the next items, first those that a worker has given back."""
        batch = [self._returned.popleft() for _ in range(min(size, len(self._returned)))]
        return batch + list(islice(self._items, size - len(batch)))

    def _receive(self, worker: Worker) -> Iterator[Sequence[Outcome]]:
        held = worker.items
        try:
            message = worker.receive()
        except EOFError:
            yield from self._handle_death(worker, held)
            return
        if message is None:
            self._failed_starts = 0
            return
        outcomes, error = message
        self._returned.extendleft(reversed(worker.items))
        worker.items = ()
        yield outcomes
        if error is not None:
            raise error

    def _handle_death(self, worker: Worker, held: Sequence[WorkItem]) -> Iterator[Sequence[Outcome]]:
        self._workers.remove(worker)
        status = worker.join()
        if not worker.is_ready:  # no trial had started, so none is the cause
            self._failed_starts += 1
            if self._failed_starts >= MAX_FAILED_STARTS:
                raise PeekbenchError(
                    f"worker processes cannot start: {self._failed_starts} consecutive ones ended with "
                    f"{_format_status(status)} before any trial started; see their error output above, or use "
                    "the executor option `in_process: true`"
                )
            self._returned.extendleft(reversed(held))
            return
        self._deaths.update(held if len(held) == 1 else ())
        deaths = self._deaths[held[0]]
        if deaths <= self._options.retries:
            self._suspects += held
        else:
            yield [_make_failure(trial, status, deaths) for trial in held[0].trials]


def _format_status(status: int | None) -> str:
    if status is None:
        return "it closed its connection to the main process"
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def _make_failure(trial: Trial, status: int | None, deaths: int) -> TrialFailure:
    advice = "; signal 9 usually means out of memory: use fewer workers or a smaller model" if status == -9 else ""
    message = f"worker process died ({_format_status(status)}) {deaths} times at this trial{advice}"
    return TrialFailure(trial, message, f"{message}\n(a killed process leaves no traceback)\n")
