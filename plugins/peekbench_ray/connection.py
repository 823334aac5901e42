"""The process that is connected to Ray.

It is a process of its own because Ray replaces signal handlers, prints to standard output, and ends its process if the
cluster is lost. None of this may happen to the main process, which writes the store.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import ray

from peekbench import PeekbenchError
from peekbench_ray.actor import SET_BY_RAY
from peekbench_ray.cluster import Cluster
from peekbench_ray.messages import Connected, Settings
from peekbench_workers.reports import make_portable

OBJECT_STORE = 256 * 2**20
"""Bytes of shared memory of an own cluster; large predictions pass through it."""
EXIT_TIMEOUT = 8.0
"""Seconds in which this process ends after the main process."""


def serve(descriptor: int, path: Sequence[str]) -> None:
    """Connect to a cluster and run workers, until the main process closes the pipe or dies.

    Parameters
    ----------
    descriptor
        File descriptor of this process's end of the pipe.
    path
        Folders in which the main process finds modules.
    """
    os.set_inheritable(descriptor, False)
    environment = {name: os.environ[name] for name in SET_BY_RAY if name in os.environ}  # before Ray changes it
    connection: Connection[Any, Any] = Connection(descriptor)
    settings: Settings = connection.recv()
    events: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_receive, args=(connection, events), daemon=True).start()

    def send(message: object) -> None:
        try:
            connection.send(message)
        except OSError:
            events.put(None)  # the main process has ended

    try:
        with _connect(settings):
            send(Connected())
            cluster = Cluster(settings, events, send, None if settings.address else path, environment)
            try:
                cluster.run()
            finally:
                cluster.close()
    except Exception as error:
        send(error if isinstance(error, PeekbenchError) else make_portable(error))


def _receive(connection: Connection[Any, Any], events: SimpleQueue[Any]) -> None:
    """Pass messages on; when the main process has ended, let this process end in time."""
    while True:
        try:
            events.put(connection.recv())
        except (EOFError, OSError):
            break
    events.put(None)
    watchdog = threading.Timer(EXIT_TIMEOUT, os._exit, (1,))
    watchdog.daemon = True
    watchdog.start()


@contextmanager
def _connect(settings: Settings) -> Iterator[None]:
    """Connect to a cluster, or start one on this machine and end it."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if settings.address is not None:
        os.chdir("/")  # Ray lets workers find modules in this folder
        try:
            ray.init(settings.address, logging_level=logging.ERROR)
        except Exception as error:
            raise PeekbenchError(
                f"cannot connect to the Ray cluster at {settings.address}: {error}; check that this is its address, "
                "that it has the same versions of Ray and Python, and, if it uses tokens, that the token is here and "
                "the environment variable RAY_AUTH_MODE is 'token'"
            ) from error
        try:
            yield
        finally:
            ray.shutdown()
        return
    # Without Ray's memory monitor, the system ends the process that needs the most memory, which is the worker's, and
    # it is known at which trial.
    os.environ.setdefault("RAY_memory_monitor_refresh_ms", "0")
    try:
        ray.init(
            "local",
            num_cpus=max(os.cpu_count() or 1, settings.max_workers or 0),
            object_store_memory=OBJECT_STORE,
            include_dashboard=False,
            logging_level=logging.ERROR,
            _node_ip_address="127.0.0.1",
            _temp_dir=str(Path(settings.folder, "r")),  # Ray lets all users write to it, but not to its parent
        )
        yield
    finally:
        ray.shutdown(wait_for_processes=True)
        shutil.rmtree(settings.folder, ignore_errors=True)  # the main process may be dead
