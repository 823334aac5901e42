"""Options of the executor `ray`."""

from __future__ import annotations

from pydantic import Field

from peekbench import Options


class Ray(Options):
    """Options of the executor `ray`."""

    address: str | None = Field(default=None, min_length=1)
    """Address of a running Ray cluster: host and port, such as `10.0.0.1:6379`, or `auto` for `$RAY_ADDRESS` or else
    the cluster that was started last on this machine. Without an address, a cluster of this machine alone is started
    and stopped with the run."""
    workers: int | None = Field(default=None, ge=1, le=10_000)
    """Largest number of workers on all machines. By default, as many as the free CPU cores, GPUs and memory allow."""
    retries: int = Field(default=2, ge=0)
    """Number of retries of a trial whose worker died, for example because it ran out of memory, before the trial fails.
    A trial that was lost with its machine is repeated and not counted."""
    patience: float = Field(default=60, ge=0)
    """Seconds to wait for a machine with the resources that a trial needs, before the run ends with an error. A busy
    machine is waited for without limit."""
