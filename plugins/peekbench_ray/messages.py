"""Messages between the main process and the process that is connected to Ray.

Each `Batch` is answered by one or several `BatchReport`s, of which the last one ends the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from peekbench.records import Resources, WorkItem
from peekbench_workers.reports import Report


@dataclass(frozen=True, slots=True)
class Settings:
    """How to connect, and how to start workers."""

    work: bytes
    """The work, pickled."""
    address: str | None
    """Address of a cluster, or None to start one on this machine."""
    folder: str
    """Folder for the files of a cluster on this machine; empty if there is an address."""
    max_workers: int | None
    """Largest number of workers, or None."""
    time_limit: float | None
    """Seconds that a trial may take, or None."""
    patience: float
    """Seconds to wait for a machine with the resources that items need."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Tells which workers items wait for."""

    num_items: Mapping[Resources, int]
    """Number of items without a worker, by what they need."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Gives items to a worker."""

    worker: int
    items: Sequence[WorkItem]


@dataclass(frozen=True, slots=True)
class Connected:
    """The connection to the cluster has been made."""


@dataclass(frozen=True, slots=True)
class WorkerStarted:
    """A worker on a prepared machine is ready for items."""

    worker: int
    group: Resources


@dataclass(frozen=True, slots=True)
class WorkerEnded:
    """A worker is gone, and all its batches have been reported."""

    worker: int


@dataclass(frozen=True, slots=True)
class BatchReport:
    """Outcomes of a batch of a worker."""

    worker: int
    report: Report
