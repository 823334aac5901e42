"""What a trial used of its machine, as pilots measure it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """Time, memory and operations of a trial in its worker process.

    Examples
    --------
    >>> usage = Usage(seconds=3.0, waited=1.0, processor=2.0, process_total=9.0, memory=400_000_000)
    >>> usage.idle_seconds
    2.0
    """

    seconds: float
    """Wall time."""
    waited: float
    """Seconds of the wall time in which the process was ready but had no core, because others used it; 0 if the
    operating system does not tell."""
    processor: float
    """Processor time of all threads."""
    process_total: float
    """Processor time of the worker process from its start to the end of the trial."""
    memory: int
    """Peak of the resident memory of the worker process since its start, in bytes."""
    gpu_memory: int = 0
    """Memory of GPUs that was in use after the trial, more than before the first one, in bytes; 0 without GPUs."""
    operations: float = 0
    """Floating point operations of matrix products, two for each multiplication with addition; 0 if not counted."""

    @property
    def idle_seconds(self) -> float:
        """Wall time that the trial would take if its process never waited for a core."""
        return max(self.seconds - self.waited, 0.0)
