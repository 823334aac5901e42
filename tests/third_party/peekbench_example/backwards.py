"""An executor that does the work in reverse order, which changes no number."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence

from peekbench import Options, hookimpl
from peekbench.plugins import Event, ExecutorEntry, Work
from peekbench.records import WorkItem


def backwards(items: Iterable[WorkItem], work: Work, *, options: Options) -> Generator[Sequence[Event], None, None]:
    """Yield the outcomes of one item after the other."""
    for item in reversed(list(items)):
        yield list(work(item))


@hookimpl
def peekbench_executors() -> list[ExecutorEntry]:
    return [ExecutorEntry(name="backwards", execute=backwards, summary="work in reverse order")]
