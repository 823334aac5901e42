"""The code that runs in a worker process: receives batches of work items and returns their outcomes.

A worker is a new interpreter that imports only this module. It never imports the user's main module, so a run can be
started from a script without a main guard, from standard input, or from a notebook.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from peekbench.plugins import Outcome, Work
from peekbench.records import WorkItem
from peekbench.standard_streams import protect_streams
from peekbench_workers.current_trial import CurrentTrial
from peekbench_workers.reports import make_portable

BATCH_WINDOW = 0.05
"""Seconds of work in one message, which is at most lost per worker if a run is killed."""
READY = "ready"
PR_SET_PDEATHSIG = 1  # of Linux's prctl


@dataclass(frozen=True, slots=True)
class Batch:
    """Request to do work items."""

    number: int
    items: Sequence[WorkItem]


@dataclass(frozen=True, slots=True)
class Prepare:
    """Request to prepare the machine; the answer is a `Host` or an exception."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Outcomes of the next trials of a batch."""

    outcomes: Sequence[Outcome]
    num_items: int
    """Number of items of the batch that are complete."""
    is_end: bool
    error: Exception | None = None


def serve(descriptor: int, memory: int, parent: int) -> None:
    """Answer the requests of the supervising process, until it closes the pipe or dies.

    Parameters
    ----------
    descriptor
        File descriptor of this worker's end of the pipe.
    memory
        File descriptor of `CurrentTrial`.
    parent
        Process ID of the supervising process.
    """
    _end_with_parent(parent)
    for number in (descriptor, memory):
        os.set_inheritable(number, False)
    connection: Connection[Any, Any] = Connection(descriptor)
    current = CurrentTrial(memory)
    os.register_at_fork(after_in_child=connection.close)  # the messages of a process that a method forks are not ours
    with suppress(OSError):
        os.dup2(2, 1)  # what methods print must not mix with a report
    protect_streams()  # a method that prints does not fail if the reader of the output has closed the pipe
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        pickled = connection.recv()
        try:
            work: Work = pickle.loads(pickled)  # noqa: S301 - from the supervising process
        except Exception as error:
            connection.send(make_portable(error))
            return
        connection.send(READY)
        while True:
            request = connection.recv()
            if isinstance(request, Prepare):
                connection.send(_prepare(work))
            else:
                _do_batch(request, work, connection, current)


def _prepare(work: Work) -> Any:
    try:
        return work.prepare()
    except Exception as error:
        return make_portable(error)


def _do_batch(batch: Batch, work: Work, connection: Connection[Any, Any], current: CurrentTrial) -> None:
    """Do as many items as `BATCH_WINDOW` allows, and at least one; send the outcomes of long trials at once."""
    outcomes: list[Outcome] = []
    num_trials = num_items = 0
    started = sent_at = time.monotonic()
    for num_items, item in enumerate(batch.items, start=1):
        if num_items > 1 and time.monotonic() - started >= BATCH_WINDOW:
            num_items -= 1
            break
        try:
            current.note_pause(batch.number, num_trials)
            trials = iter(work(item))
            for _ in item.trials:
                if outcomes and (len(batch.items) == 1 or time.monotonic() - sent_at >= BATCH_WINDOW):
                    connection.send(Answer(outcomes, num_items - 1, is_end=False))
                    outcomes, sent_at = [], time.monotonic()
                current.note(batch.number, num_trials)
                outcomes.append(next(trials))
                num_trials += 1
            for _ in trials:  # a generator is exhausted when it is asked once more
                pass
        except (KeyboardInterrupt, BrokenPipeError, ConnectionResetError):
            raise
        except BaseException as error:  # a SystemExit must not end the run as if it had succeeded
            current.note_pause(batch.number, num_trials)
            connection.send(Answer(outcomes, num_items - 1, is_end=True, error=make_portable(error)))
            return
    current.note_pause(batch.number, num_trials)
    connection.send(Answer(outcomes, num_items, is_end=True))


def _end_with_parent(parent: int) -> None:
    """Let Linux kill this process when its parent dies, even in the middle of a fit.

    The signal is sent when the thread that started this process ends, which is the thread of the run.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before
        os._exit(1)
