"""Work items in this process, or in workers that may die without taking the run along.

Items that are done within a moment are handed out and handed over several at a time: what passes between processes and
into a store costs by the time, not by the item. No outcome waits longer than that moment, but for one item's length.

The cores are divided among the workers through `Context.threads`, for methods whose threads leave numbers alone; BLAS
and OpenMP pools have one thread each anyway.
"""

from __future__ import annotations

import os
import pickle
import signal
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, cast

from peekbench.plugins import THREADS_VARIABLE
from peekbench.records import Trial, TrialFailure, WorkItem

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from peekbench.plugins import Outcome
    from peekbench_local import Local

    Work = Callable[[WorkItem], Sequence[Outcome]]

GRACE = 5.0  # seconds that a process gets to end
LOOK = 1.0  # seconds between looks at whether silent workers live
MOMENT = 0.05  # seconds of work that may be lost where a run is killed


def execute(items: Iterable[WorkItem], work: Work, *, options: Local) -> Generator[Sequence[Outcome], None, None]:
    """Do the items and yield their outcomes as they come; see `peekbench.protocols.Executor`."""
    if options.workers == 1:
        with _granted(threads=os.cpu_count() or 1):
            yield from _here(items, work)
    else:
        yield from _in_workers(items, work, options)


def _here(items: Iterable[WorkItem], work: Work) -> Generator[Sequence[Outcome], None, None]:
    done: list[Outcome] = []
    started = time.monotonic()
    try:
        for item in items:
            done += work(item)
            if time.monotonic() - started >= MOMENT:
                batch, done = done, []
                yield batch
                started = time.monotonic()
    except (Exception, KeyboardInterrupt):
        yield done
        raise
    yield done


@contextmanager
def _granted(threads: int) -> Iterator[None]:
    """Tell fits in this process how many threads they may keep busy."""
    before = os.environ.get(THREADS_VARIABLE)
    os.environ[THREADS_VARIABLE] = str(threads)
    try:
        yield
    finally:
        if before is None:
            del os.environ[THREADS_VARIABLE]
        else:
            os.environ[THREADS_VARIABLE] = before


class _Worker:
    """A process with a pipe of its own, which has a few items at a time: if it dies, it is known which."""

    def __init__(self, pickled: bytes, threads: int) -> None:
        context = get_context("spawn")
        self._connection, theirs = context.Pipe()
        # No daemon, because daemons may not have children, and a method may want some.
        self._process = context.Process(target=_serve, args=(theirs, pickled, threads), daemon=False)
        self._process.start()
        theirs.close()  # the worker alone holds that end now, so that its death closes the pipe
        self.items: Sequence[WorkItem] = ()
        self._started = 0.0
        self.pace = 1
        """Items that it did within a moment."""

    @property
    def connection(self) -> Connection[Any, Any]:
        return self._connection

    def give(self, items: Sequence[WorkItem]) -> None:
        self.items = items
        self._started = time.monotonic()
        with suppress(OSError):  # dead already, as `take` will find
            self._connection.send(items)

    def take(self) -> tuple[Sequence[Outcome], Sequence[WorkItem], Exception | None]:
        """The outcomes of what it did, the items that it has not come to, and what ended its work, if anything did.

        Raises
        ------
        EOFError
            Where it died.
        """
        if not self._connection.poll() and not self._process.is_alive():
            raise EOFError  # though a process that it has forked still holds the pipe open
        try:
            outcomes, num_done, error = self._connection.recv()
        except OSError as broken:  # in the middle of an answer, say
            raise EOFError from broken
        left = self.items[num_done:]
        self.pace = num_done if time.monotonic() - self._started >= MOMENT else 2 * num_done
        self.items = ()
        return cast("Sequence[Outcome]", outcomes), left, error

    def is_dead(self) -> bool:
        return not self._process.is_alive()

    def bury(self) -> int | None:
        """End it, if it has not ended; its exit code, negative for a signal."""
        if self._process.is_alive() and not self.items:
            self._process.terminate()
        self._process.join(timeout=GRACE)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
        with suppress(ProcessLookupError, PermissionError):  # there are none left, as a rule
            os.killpg(cast("int", self._process.pid), signal.SIGKILL)
        code = self._process.exitcode
        self._connection.close()
        self._process.close()
        return code

    def kill(self) -> None:
        """End it at once, whatever it is doing."""
        self._process.kill()
        self.bury()


def _serve(connection: Connection[Any, Any], pickled: bytes, threads: int) -> None:
    """What a worker does until its parent closes the pipe or dies."""
    os.setpgid(0, 0)  # so that what a method starts can be ended with it
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent to handle
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.environ[THREADS_VARIABLE] = str(threads)
    work: Work | None = None
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            items = connection.recv()
            outcomes: list[Outcome] = []
            num_done, fault = 0, None
            started = time.monotonic()
            try:
                work = work or cast("Work", pickle.loads(pickled))  # noqa: S301 - from the parent
                while num_done < len(items) and (num_done == 0 or time.monotonic() - started < MOMENT):
                    outcomes += work(items[num_done])
                    num_done += 1
            except Exception as error:
                fault = _portable(error)
            connection.send((outcomes, num_done, fault))


def _portable(error: Exception) -> Exception:
    """The error, with its traceback as a note, or its text where it cannot be pickled."""
    error.add_note("in a worker process:\n" + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    except Exception:
        return RuntimeError("".join(traceback.format_exception(error)))
    return error


def _in_workers(items: Iterable[WorkItem], work: Work, options: Local) -> Generator[Sequence[Outcome], None, None]:
    pickled = pickle.dumps(work)
    threads = max(1, (os.cpu_count() or 1) // options.workers)
    queue = deque(items)
    suspects: list[WorkItem] = []  # one of them, or something else, has killed a worker: each goes alone from now on
    deaths: Counter[WorkItem] = Counter()
    workers: list[_Worker] = []
    try:
        while True:
            for position in range(options.workers):
                if position < len(workers) and workers[position].items:
                    continue
                pace = workers[position].pace if position < len(workers) else 1
                # Towards the end few at a time: a slow one among them would hold up those behind it.
                number = min(pace, max(1, len(queue) // (2 * options.workers)), len(queue))
                chosen = [suspects.pop()] if suspects else [queue.popleft() for _ in range(number)]
                if not chosen:
                    break
                if position == len(workers):
                    workers.append(_Worker(pickled, threads))
                workers[position].give(chosen)
            busy = {worker.connection: worker for worker in workers if worker.items}
            if not busy:
                return
            ready = wait(list(busy), timeout=LOOK) or [pipe for pipe, worker in busy.items() if worker.is_dead()]
            for connection in ready:
                worker = busy[cast("Connection[Any, Any]", connection)]
                had = worker.items
                try:
                    outcomes, left, error = worker.take()
                except EOFError:
                    workers.remove(worker)
                    code = worker.bury()
                    deaths.update(had if len(had) == 1 else ())
                    if deaths[had[0]] <= options.retries:
                        suspects += had
                    else:
                        yield [_lost(trial, code, deaths[had[0]]) for trial in had[0].trials]
                else:
                    queue.extendleft(reversed(left))
                    yield outcomes
                    if error is not None:
                        raise error
    finally:
        for worker in workers:
            worker.kill()


def _lost(trial: Trial, code: int | None, deaths: int) -> TrialFailure:
    killed = f"signal {-code}" if code is not None and code < 0 else f"exit status {code}"
    message = (
        f"worker process died ({killed}) {deaths} times at this trial; signal 9 most often means too little memory: "
        "use fewer workers, or a smaller model"
    )
    return TrialFailure(trial, message, f"{message}\n(a process that is killed leaves no traceback)\n")
