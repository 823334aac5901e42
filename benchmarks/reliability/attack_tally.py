"""The outcomes of a section of the attack, the limits of each input, and the time that a section may take."""

from __future__ import annotations

import contextlib
import math
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
MAX_LISTED = 20  # defects that are printed


@dataclass(frozen=True)
class Budget:
    """How many inputs a section tries, and for how long. Iterate over it for their numbers."""

    number: int
    seed: int = 0
    seconds: float = math.inf

    def __iter__(self) -> Iterator[int]:
        """Yield 0, 1, 2, ... until the number or the time is reached."""
        end = time.monotonic() + self.seconds
        for position in range(self.number):
            if time.monotonic() > end:
                return
            yield position


@dataclass
class Tally:
    """Counts of the outcomes of one section."""

    name: str
    survived: int = 0
    """Inputs that were read, and runs that ended with the same results as without a disturbance."""
    refused: int = 0
    """Inputs that gave an error that says what to do."""
    defects: list[str] = field(default_factory=list)
    """Every other outcome, with the label of its input: tracebacks, wrong numbers, exceeded limits, files left."""
    note: str = ""

    @property
    def tried(self) -> int:
        return self.survived + self.refused + len(self.defects)

    def attempt(self, label: str, action: Callable[[], Any]) -> Any:
        """Return the result of an action, which must take at most `MAX_SECONDS`; None if it fails."""
        result = None
        try:
            with limited_time():
                result = action()
            self.survived += 1
        except PeekbenchError as error:
            self.refuse(label, str(error))
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            message = f"{type(error).__name__}: {str(error)[:200]} ({place.filename}:{place.lineno})"
            self.defects.append(f"{label}: {message}")
        return result

    def examine(self, label: str, action: Callable[[], list[str]]) -> None:
        """Count an action that returns the problems it found, and that must not fail."""
        try:
            problems = action()
        except Exception as error:
            problems = [f"{type(error).__name__}: {str(error)[:500]}"]
        self.add(label, problems)

    def refuse(self, label: str, message: str) -> None:
        """Count a refusal, which is a defect if its message is empty or too long."""
        if 0 < len(message) <= MAX_MESSAGE:
            self.refused += 1
        else:
            self.defects.append(f"{label}: a message of {len(message):,} characters")

    def add(self, label: str, problems: list[str], *, refused: bool = False) -> None:
        """Count an outcome that was examined elsewhere."""
        if problems:
            self.defects.append(f"{label}: {'; '.join(problems)}")
        elif refused:
            self.refused += 1
        else:
            self.survived += 1

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {self.tried:,} tried, {self.survived:,} survived, {self.refused:,} refused, "
            f"{len(self.defects):,} defects. {self.note}".strip()
        ]
        return "\n".join(lines + [f"    {defect}" for defect in self.defects[:MAX_LISTED]])


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
