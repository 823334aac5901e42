"""Downloads everything that a spec needs, one thing after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from peekbench.data import load_dataset

if TYPE_CHECKING:
    from peekbench.spec import ExperimentSpec


def prefetch(spec: ExperimentSpec) -> Iterator[str]:
    """Load every task and prefetch every method; a line before and after each.

    Libraries that download show progress bars of their own in between.

    Raises
    ------
    DataError
        Where data cannot be had.
    """
    methods = [method for method in spec.methods if method.entry.prefetch is not None]
    total = len(spec.tasks) + len(methods)
    for number, task in enumerate(spec.tasks, start=1):
        yield f"[{number}/{total}] {task.name}"
        dataset = load_dataset(spec.source(task))
        yield f"    {len(dataset.labels):,} rows"
    for number, method in enumerate(methods, start=len(spec.tasks) + 1):
        yield f"[{number}/{total}] {method.name}"
        assert method.entry.prefetch is not None
        method.entry.prefetch(options=spec.options(method), folders=spec.folders())
        yield "    done"
