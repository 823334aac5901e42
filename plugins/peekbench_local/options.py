"""Options of the executor `local`."""

from __future__ import annotations

from pydantic import Field

from peekbench import Options


class Local(Options):
    """Options of the executor `local`."""

    workers: int = Field(default=1, ge=1, le=1024)
    """Number of worker processes; with 1, trials run in the main process. Results do not depend on it."""
    retries: int = Field(default=2, ge=0)
    """Number of retries of a trial whose worker process died, for example because it ran out of memory, before the
    trial fails."""
