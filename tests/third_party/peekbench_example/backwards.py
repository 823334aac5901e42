"""An executor that does the work in reverse order, which changes no number."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence

from peekbench import Options, hookimpl
from peekbench.plugins import ExecutorEntry
from peekbench.records import TrialFailure, TrialResult, WorkItem

Outcomes = Sequence[TrialResult | TrialFailure]


def backwards(
    items: Iterable[WorkItem], work: Callable[[WorkItem], Outcomes], *, options: Options
) -> Generator[Outcomes, None, None]:
    """Yield the outcomes of one item after the other."""
    for item in reversed(list(items)):
        yield work(item)


@hookimpl
def peekbench_executors() -> list[ExecutorEntry]:
    return [ExecutorEntry(name="backwards", execute=backwards, summary="work in reverse order")]
