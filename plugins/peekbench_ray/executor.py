"""Runs work items on the machines of a Ray cluster.

    Dispatcher -> RayPool | pipe | Cluster -> actor on a machine -> Supervisor -> worker process

The main process and the process that is connected to Ray are on this machine. Each actor supervises a worker process of
the same kind as those of the executor `local`, so crashes and time limits are handled in the same way.
"""

from __future__ import annotations

import os
import pickle
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from multiprocessing import Pipe
from operator import length_hint

from peekbench import PeekbenchError
from peekbench.plugins import Event, Work
from peekbench.records import Capacity, Host, Resources, WorkItem
from peekbench_ray.messages import (
    Batch,
    BatchReport,
    Connected,
    Demand,
    Settings,
    WorkerEnded,
    WorkerStarted,
)
from peekbench_ray.options import Ray
from peekbench_workers.dispatcher import Dispatcher, News

if find_spec("ray") is None:  # only the other processes import it
    raise ModuleNotFoundError("No module named 'ray'", name="ray")

CONNECT_TIMEOUT = 30.0  # seconds; Ray itself tries for minutes
START_TIMEOUT = 120.0  # seconds in which an own cluster starts
SHUTDOWN_TIMEOUT = 12.0  # seconds in which the connection stops all workers and its own cluster
DEMAND_INTERVAL = 0.5  # seconds between messages on how many items wait
MAX_FOLDER = 18
"""Characters of the folder for temporary files. Ray creates sockets in folders below it, and the path of a socket may
have 107."""
AUTO = "auto"
ADDRESS_VARIABLE = "RAY_ADDRESS"
PROBE_TIMEOUT = 5.0  # seconds


def execute(items: Iterable[WorkItem], work: Work, *, options: Ray) -> Generator[Sequence[Event], None, None]:
    """Do the items, and yield their outcomes as they arrive; see `peekbench.plugins.Executor`.

    Parameters
    ----------
    items
        Items to do.
    work
        Function that does an item.
    options
        Address of the cluster, number of workers, and limits.

    Yields
    ------
    sequence of Event
        Outcomes, and the machines that compute them.

    Raises
    ------
    PeekbenchError
        If the cluster cannot be reached or is lost, if a machine differs from this one, or if no machine has the
        resources that an item needs.
    """
    yield from Dispatcher(items, RayPool(items, work, options), options.retries).run()


class RaySlot:
    """A worker of the cluster."""

    def __init__(self, pool: RayPool, number: int, group: Resources) -> None:
        self._pool = pool
        self.number = number
        self.group = group
        self.is_free = True
        """Whether it takes a batch."""

    def send(self, items: Sequence[WorkItem]) -> None:
        """Start a batch of items."""
        self.is_free = False
        self._pool.send_batch(self, items)


class RayPool:
    """The workers of a Ray cluster.

    Parameters
    ----------
    items
        Items of the run, whose number limits that of workers.
    work
        The work.
    options
        Options of the executor.

    Raises
    ------
    PeekbenchError
        If no cluster answers at the address.
    """

    def __init__(self, items: Iterable[WorkItem], work: Work, options: Ray) -> None:
        self._items = items
        self._work = work
        self._address = None if options.address is None else find_address(options.address)
        self._slots: dict[int, RaySlot] = {}
        self._ended: dict[int, RaySlot] = {}  # slots of workers that are gone, with batches that have not come back
        self._waiting: Counter[Resources] = Counter()
        self._demand: Counter[Resources] = Counter()
        self._demand_sent_at = 0.0
        packed = pickle.dumps(work.with_data())  # before there is something that an error would leave behind
        self._folder = "" if self._address else _make_folder()
        self._connection, end = Pipe()
        try:
            with end:
                self._process = _start_process(end.fileno(), None if self._address else _own_environment())
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self._connect_timeout = START_TIMEOUT if self._address is None else CONNECT_TIMEOUT
        self._connect_until: float | None = time.monotonic() + self._connect_timeout
        self._send(
            Settings(
                packed,
                self._address,
                self._folder,
                max_workers=options.workers,
                time_limit=work.timeout,
                patience=options.patience,
            )
        )

    @property
    def num_workers(self) -> int:
        """Number of workers at present."""
        return max(1, len(self._slots))

    def group(self, item: WorkItem) -> Resources:
        """Return the resources that an item needs."""
        stated = self._work.needs(item)
        needs = Resources(stated.cpus, stated.memory)
        if not stated.is_gpu_optional:  # otherwise, devices would depend on the machine
            needs = Resources(stated.cpus, stated.memory, stated.gpus)
        self._waiting[needs] += 1
        return needs

    def find_free(self, group: Hashable) -> RaySlot | None:
        """Return a free worker that has these resources."""
        return next((slot for slot in self._slots.values() if slot.group == group and slot.is_free), None)

    def send_batch(self, slot: RaySlot, items: Sequence[WorkItem]) -> None:
        """Send a batch to a worker."""
        self._waiting[slot.group] -= len(items)
        self._send(Batch(slot.number, items))

    def wait(self, timeout: float) -> Sequence[News]:
        """Wait for reports and for changes of the cluster; nothing after `timeout` seconds.

        Raises
        ------
        PeekbenchError
            If a machine cannot do the work, no machine can, or the connection is lost.
        """
        self._send_demand()
        news: list[News] = []
        while self._connection.poll(0 if news else timeout):
            try:
                message = self._connection.recv()
            except (EOFError, OSError):
                raise PeekbenchError(self._describe_end()) from None
            if found := self._handle(message):
                news.append(found)
            elif not news:
                break
        if self._connect_until is not None and time.monotonic() > self._connect_until:
            raise PeekbenchError(
                f"{self._address or 'the Ray cluster of this machine'} has not answered as a Ray cluster for "
                f"{self._connect_timeout:.0f} s; check its address and that it has the same versions of Ray and Python"
            )
        return news

    def _send_demand(self) -> None:
        """Tell which workers items wait for: at once if these are others than before, and now and then how many."""
        demand = +self._waiting
        if demand:
            demand[next(iter(demand))] += length_hint(self._items)
        now = time.monotonic()
        if demand.keys() != self._demand.keys() or (
            demand != self._demand and now - self._demand_sent_at >= DEMAND_INTERVAL
        ):
            self._demand, self._demand_sent_at = demand, now
            self._send(Demand(dict(demand)))

    def _handle(self, message: object) -> News | None:
        match message:
            case Host() | Capacity():
                return message
            case BatchReport(worker=number, report=report):
                slot = self._slots.get(number) or self._ended[number]
                slot.is_free = report.is_end
                return slot, report
            case WorkerStarted(worker=number, group=group):
                self._slots[number] = RaySlot(self, number, group)
            case WorkerEnded(worker=number):
                self._ended[number] = self._slots.pop(number)
            case Connected():
                self._connect_until = None
            case Exception():
                raise message
        return None

    def _send(self, message: object) -> None:
        with suppress(OSError):  # the process has ended, which `wait` reports
            self._connection.send(message)

    def _describe_end(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(SHUTDOWN_TIMEOUT)
        status = self._process.poll()
        where = f"the Ray cluster at {self._address}" if self._address else "the Ray cluster of this machine"
        return (
            f"the connection to {where} was lost (exit status {status}); see the messages above. Finished trials are "
            "stored; run the spec again when the cluster works"
        )

    def close(self) -> None:
        """Stop all workers at once, and the cluster if it is our own."""
        self._connection.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(SHUTDOWN_TIMEOUT)
        with suppress(ProcessLookupError, PermissionError):  # usually no process is left
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def _make_folder() -> str:
    parent = tempfile.gettempdir()
    return tempfile.mkdtemp(prefix="peekbench-ray-", dir="/tmp" if len(parent) > MAX_FOLDER else parent)  # noqa: S108


def _own_environment() -> Mapping[str, str]:
    """Return the environment of a cluster of this machine alone, which only the processes of the run can use.

    Ray reads these variables when it is imported. Without the first one, it replaces the address 127.0.0.1 by another
    one of this machine, and all its processes listen on all interfaces.
    """
    return {
        **os.environ,
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
    }


def _start_process(descriptor: int, environment: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
    path = [str(folder) for folder in sys.path]
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing
    code = f"import sys; path = {path!r}; sys.path[:] = path; from peekbench_ray.connection import serve; "
    return subprocess.Popen(  # noqa: S603 - our own code
        [sys.executable, *flags, "-c", f"{code}serve({descriptor}, path)"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # where Ray reports the deaths of workers in many lines; we report them in one
        env=environment,
        pass_fds=[descriptor],
        process_group=0,  # so that Ctrl-C reaches only the main process
    )


def find_address(address: str) -> str:
    """Return the address of a running cluster, after a connection to it has succeeded. Ray itself tries for minutes.

    Parameters
    ----------
    address
        `host:port`, or 'auto' for `$RAY_ADDRESS`, or else the cluster that was started last on this machine.

    Raises
    ------
    PeekbenchError
        If it is no such address, or nothing answers there.
    """
    if address == AUTO:
        address = os.environ.get(ADDRESS_VARIABLE) or AUTO
    if address == AUTO:
        return AUTO  # which Ray finds in a file
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), PROBE_TIMEOUT).close()
    except (OSError, ValueError) as error:
        raise PeekbenchError(
            f"executor.options.address: no Ray cluster answers at {address} ({error}); give host and port, such as "
            "10.0.0.1:6379, as `ray start --head` prints them, or leave it out to use this machine only"
        ) from error
    return address
