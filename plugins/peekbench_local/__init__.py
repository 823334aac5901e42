"""Executor on this machine: in process, or in worker processes."""

from __future__ import annotations

from pydantic import Field

from peekbench import Options, hookimpl
from peekbench.plugins import ExecutorEntry
from peekbench_local.processes import execute


class Local(Options):
    workers: int = Field(default=1, ge=1, le=1024)
    """Processes to share the work; 1 does it in the process that is there. The numbers are the same for any value."""
    retries: int = Field(default=2, ge=0)
    """How often trials are tried again whose worker was killed, for want of memory say, before they count as failed."""


@hookimpl
def peekbench_executors() -> list[ExecutorEntry]:
    return [ExecutorEntry(name="local", options=Local, execute=execute, summary="this machine's own processes")]
