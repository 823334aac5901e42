"""Work items in this process, or in workers that may die without taking the run along.

BLAS and OpenMP pools get one thread each, whatever the number of workers: how they split a sum decides how it is
rounded, and the numbers must not depend on the number of workers. The cores are divided among the workers through
`Context.threads`, for methods whose threads leave numbers alone.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from peekbench.protocols import THREADS_VARIABLE
from peekbench.records import TrialFailure, WorkItem

if TYPE_CHECKING:
    from peekbench.protocols import Outcome
    from peekbench_local import Local

    Work = Callable[[WorkItem], Sequence[Outcome]]

POOL_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
WAITING_PER_WORKER = 4  # items handed out ahead, so that no worker idles; a killed run loses no more than these


def execute(items: Iterable[WorkItem], work: Work, *, options: Local) -> Generator[Sequence[Outcome], None, None]:
    """Do the items and yield their outcomes as they come; see `peekbench.protocols.Executor`."""
    if options.workers == 1:
        with _one_thread_pools(threads=os.cpu_count() or 1):
            for item in items:
                yield work(item)
    else:
        yield from _in_workers(items, work, options)


@contextmanager
def _one_thread_pools(threads: int) -> Iterator[None]:
    """Limit thread pools of libraries loaded by now, and by the environment those loaded later."""
    from threadpoolctl import threadpool_limits

    before = {name: os.environ.get(name) for name in (*POOL_VARIABLES, THREADS_VARIABLE)}
    _set_environment(threads)
    try:
        with threadpool_limits(limits=1):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _set_environment(threads: int) -> None:
    os.environ.update(dict.fromkeys(POOL_VARIABLES, "1"))
    os.environ[THREADS_VARIABLE] = str(threads)


_work: Work | None = None  # a worker process's own, set when it starts


def _start_worker(pickled: bytes, threads: int) -> None:
    """Prepare a new process; the environment comes before anything that loads numpy."""
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent to handle
    _set_environment(threads)
    _work = pickle.loads(pickled)  # noqa: S301 - from the parent


def _do(item: WorkItem) -> Sequence[Outcome]:
    assert _work is not None
    return _work(item)


def _in_workers(items: Iterable[WorkItem], work: Work, options: Local) -> Generator[Sequence[Outcome], None, None]:
    from pebble import ProcessExpired, ProcessPool

    threads = max(1, (os.cpu_count() or 1) // options.workers)
    pool = ProcessPool(
        max_workers=options.workers,
        context=get_context("spawn"),
        initializer=_start_worker,
        initargs=[pickle.dumps(work), threads],
    )
    waiting: dict[Any, tuple[WorkItem, int]] = {}  # future -> item, deaths so far
    queue = iter(items)
    try:
        while True:
            for item in islice(queue, options.workers * WAITING_PER_WORKER - len(waiting)):
                waiting[pool.schedule(_do, args=[item])] = (item, 0)
            if not waiting:
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                item, deaths = waiting.pop(future)
                error = future.exception()
                if error is None:
                    yield future.result()
                elif not isinstance(error, ProcessExpired):
                    raise error
                elif deaths < options.retries:
                    waiting[pool.schedule(_do, args=[item])] = (item, deaths + 1)
                else:
                    yield [_lost(trial, error.exitcode, deaths + 1) for trial in item.trials]
    finally:
        pool.stop()  # type: ignore[no-untyped-call]
        pool.join()


def _lost(trial: Any, exit_code: int | None, deaths: int) -> TrialFailure:
    killed = f"signal {-exit_code}" if exit_code is not None and exit_code < 0 else f"exit status {exit_code}"
    message = (
        f"worker process died ({killed}) {deaths} times at this trial; signal 9 most often means too little memory: "
        "use fewer workers, or a smaller model"
    )
    return TrialFailure(trial, message, f"{message}\n(a process that is killed leaves no traceback)\n")
