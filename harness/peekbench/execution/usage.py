"""Measures what a trial uses of this machine, also while other programs keep its cores busy."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from peekbench.records.usage import Usage

SCHEDULING = Path("/proc/thread-self/schedstat")
STATUS = Path("/proc/self/status")


def waited() -> float:
    """Return the seconds in which this thread was ready to run but had no core, or 0.0 where Linux does not tell."""
    try:
        return int(SCHEDULING.read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def peak_memory() -> int:
    """Return the peak of the resident memory of this process in bytes."""
    # On Linux, `getrusage` starts with the peak of the process that started this one, and VmHWM does not.
    if STATUS.exists():
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak_on_windows = getattr(psutil.Process().memory_info(), "peak_wset", None)
    if peak_on_windows is not None:
        return int(peak_on_windows)
    import resource  # noqa: PLC0415 - the module is missing on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@dataclass(slots=True)
class Stopwatch:
    """Measures one trial after the other in the thread that runs them."""

    process_start: float = 0.0
    """Processor time of the process that does not count."""
    started: float = 0.0
    waited: float = 0.0
    processor: float = 0.0

    def start(self) -> None:
        """Start a trial."""
        self.started, self.waited, self.processor = time.perf_counter(), waited(), time.process_time()

    def stop(self, *, gpu_memory: int = 0, operations: float = 0) -> Usage:
        """Return what the process has used since `start`."""
        total = time.process_time()
        return Usage(
            seconds=time.perf_counter() - self.started,
            waited=waited() - self.waited,
            processor=total - self.processor,
            process_total=total - self.process_start,
            memory=peak_memory(),
            gpu_memory=gpu_memory,
            operations=operations,
        )
