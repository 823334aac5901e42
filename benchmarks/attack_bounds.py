"""Tries hostile inputs within limits of time and memory, and counts what happens. Shared by the scripts of attacks."""

from __future__ import annotations

import contextlib
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peekbench.errors import PeekbenchError

MAX_SECONDS = 10
MAX_MEMORY = 2**30  # bytes, in addition to those in use at the start
MAX_MESSAGE = 20_000  # characters


@dataclass
class Tally:
    """Numbers of inputs that were accepted and refused, and every other outcome."""

    name: str
    accepted: int = 0
    refused: int = 0
    slowest: float = 0.0
    failures: list[str] = field(default_factory=list)
    """Tracebacks, too long messages and exceeded limits, each with the label of its input."""

    @property
    def tried(self) -> int:
        return self.accepted + self.refused + len(self.failures)

    def attempt(self, label: str, action: Callable[[], Any]) -> Any:
        """Return the result of an action; None if it fails."""
        started = time.perf_counter()
        result = None
        try:
            with limited_time():
                result = action()
            self.accepted += 1
        except PeekbenchError as error:
            if 0 < len(str(error)) <= MAX_MESSAGE:
                self.refused += 1
            else:
                self.failures.append(f"{label}: a message of {len(str(error)):,} characters")
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            message = f"{type(error).__name__}: {str(error)[:200]} ({place.filename}:{place.lineno})"
            self.failures.append(f"{label}: {message}")
        self.slowest = max(self.slowest, time.perf_counter() - started)
        return result

    def __str__(self) -> str:
        lines = [
            f"{self.name:<20} {self.tried:6,} tried, {self.accepted:6,} accepted, {self.refused:6,} refused, "
            f"{len(self.failures):4,} failures; slowest {self.slowest:.1f} s"
        ]
        return "\n".join(lines + [f"    {failure}" for failure in self.failures[:20]])


@contextlib.contextmanager
def limited_time() -> Iterator[None]:
    """Raise a TimeoutError after MAX_SECONDS."""

    def stop(signal_number: int, frame: Any) -> None:
        raise TimeoutError(f"more than {MAX_SECONDS} s")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, MAX_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def limit_memory() -> None:
    """Let this process allocate at most MAX_MEMORY more than now."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MAX_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
