"""The executor `local`, which runs trials on this machine."""

from __future__ import annotations

from peekbench import hookimpl
from peekbench.plugins import ExecutorEntry
from peekbench_local.options import Local


@hookimpl
def peekbench_executors() -> list[ExecutorEntry]:
    """Register the executor."""
    return [
        ExecutorEntry(
            name="local",
            options=Local,
            execute="peekbench_local.executor:execute",
            summary="processes on this machine",
        )
    ]
