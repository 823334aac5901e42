"""The executor `ray`, which runs trials on the machines of a Ray cluster."""

from __future__ import annotations

from peekbench import hookimpl
from peekbench.plugins import ExecutorEntry
from peekbench_ray.options import Ray


@hookimpl
def peekbench_executors() -> list[ExecutorEntry]:
    """Register the executor."""
    return [
        ExecutorEntry(
            name="ray",
            options=Ray,
            execute="peekbench_ray.executor:execute",
            summary="processes on the machines of a Ray cluster",
        )
    ]
