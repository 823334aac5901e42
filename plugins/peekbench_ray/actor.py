"""The actor on a machine of the cluster, which supervises one worker process.

The actor itself fits nothing, so it survives a crash, a lack of memory and a time limit of the worker process, and can
tell which trial was the cause. It ends only with its machine, or if somebody kills it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from pathlib import Path

import ray

from peekbench import PeekbenchError
from peekbench.records import Host, WorkItem
from peekbench_workers.reports import Report, make_portable
from peekbench_workers.supervisor import CHECK_INTERVAL, Supervisor, WorkerSettings

CONTROL = "control"
"""Concurrency group of the call that stops an actor while it works."""
SET_BY_RAY = ("OMP_NUM_THREADS", "PYTHONBREAKPOINT")
"""Environment variables that Ray sets for its workers: threads by the actor's cores, and a debugger of its own."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How an actor starts worker processes."""

    settings: WorkerSettings
    environment: Mapping[str, str]
    """Variables of `SET_BY_RAY` as the main process has them."""
    path: Sequence[str] | None
    """Folders in which Python finds modules; None for those of the machine."""


class Worker:
    """An actor that does batches of items in a worker process, one at a time.

    Parameters
    ----------
    launch
        How to start the process.
    work
        The work, pickled, with the data of its tasks.
    """

    def __init__(self, launch: Launch, work: bytes) -> None:
        for name in SET_BY_RAY:
            os.environ.pop(name, None)
        os.environ.update(launch.environment)
        folder_of_ray = str(Path(ray.__file__).parent)  # Ray adds its own copies of libraries, such as psutil
        sys.path[:] = launch.path or [folder for folder in sys.path if not folder.startswith(folder_of_ray)]
        self._supervisor = Supervisor(replace(launch.settings, work=work))
        self._is_stopped = False

    def start(self) -> None:
        """Do nothing; an actor that answers has started."""

    def prepare(self) -> Host | Exception:
        """Prepare the machine, and return what it is, or why it cannot be used."""
        try:
            return self._supervisor.prepare()
        except PeekbenchError as error:
            return error
        except Exception as error:
            return make_portable(error)

    def do(self, items: Sequence[WorkItem] = ()) -> Report:
        """Start a batch, and return the next report on it.

        Parameters
        ----------
        items
            Items of the batch; none to ask for the next report on a batch that has not ended.
        """
        try:
            if items:
                self._supervisor.send(items)
            return self._next_report()
        except Exception as error:
            return Report(error=make_portable(error))

    def _next_report(self) -> Report:
        while not self._is_stopped:
            ready = wait([self._supervisor.connection], timeout=CHECK_INTERVAL)
            report = self._supervisor.receive() if ready else self._supervisor.check()
            if report is not None:
                return report
        return Report()

    @ray.method(concurrency_group=CONTROL)  # type: ignore[untyped-decorator]
    def stop(self) -> None:
        """End the worker process and all processes that it has started, even in the middle of a fit."""
        self._is_stopped = True
        self._supervisor.stop()
