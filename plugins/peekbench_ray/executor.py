"""Runs work items on the machines of a Ray cluster.

    Dispatcher -> RayPool | pipe | Cluster -> actor on a machine -> Supervisor -> worker process

The main process and the process that is connected to Ray are on this machine. Each actor supervises a worker process of
the same kind as those of the executor `local`, so crashes, time limits and memory limits are handled in the same way.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from importlib.util import find_spec

from peekbench.plugins import Event, Work
from peekbench.records import WorkItem
from peekbench_ray.options import Ray
from peekbench_ray.pool import RayPool
from peekbench_workers.dispatcher import Dispatcher

if find_spec("ray") is None:  # only the other processes import it
    raise ModuleNotFoundError("No module named 'ray'", name="ray")


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
