"""Machines that do the work of a run, what they offer, and what a work item needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Resources:
    """What a trial needs while it runs.

    Examples
    --------
    >>> Resources(gpus=0.5) | Resources(cpus=2)
    Resources(cpus=2, memory=0, gpus=0.5, gpu_memory=0)
    """

    cpus: float = 1
    """CPU cores."""
    memory: int = 0
    """Main memory in bytes; 0 if unknown."""
    gpus: float = 0
    """GPUs; several trials share one GPU if this is a fraction."""
    gpu_memory: int = 0
    """Memory of one GPU in bytes, by which the executor `local` lets trials share it; 0 if unknown."""

    def __or__(self, other: Resources) -> Resources:
        """Return the larger of each need."""
        return Resources(
            max(self.cpus, other.cpus),
            max(self.memory, other.memory),
            max(self.gpus, other.gpus),
            max(self.gpu_memory, other.gpu_memory),
        )


@dataclass(frozen=True, slots=True)
class Host:
    """A machine that does work of a run, as `Work.prepare` describes it.

    Examples
    --------
    >>> Host("node-7", machine={"cores": 64}).name
    'node-7'
    """

    name: str
    """Name that the outcomes of this machine have."""
    machine: Mapping[str, Any] = field(default_factory=dict)
    """Processor, cores, memory in bytes, and operating system, as JSON values."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Versions of the installed distributions that differ from those of the main process, by name."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Machines and workers that an executor has at present.

    Examples
    --------
    >>> Capacity(hosts=2, workers=16).workers
    16
    """

    hosts: int
    """Number of machines."""
    workers: int
    """Number of workers on all machines."""
