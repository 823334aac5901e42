"""Does the work last things first: no number depends on the order of work."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence

from peekbench import Options, hookimpl
from peekbench.plugins import ExecutorEntry
from peekbench.records import TrialFailure, TrialResult, WorkItem

Outcomes = Sequence[TrialResult | TrialFailure]


class Backwards(Options):
    pass


def backwards(
    items: Iterable[WorkItem], work: Callable[[WorkItem], Outcomes], *, options: Backwards
) -> Generator[Outcomes, None, None]:
    for item in reversed(list(items)):
        yield work(item)


@hookimpl
def peekbench_executors() -> list[ExecutorEntry]:
    return [ExecutorEntry(name="backwards", options=Backwards, execute=backwards, summary="last things first")]
