"""Options of the executor `local`."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from peekbench import Options


class Local(Options):
    """Options of the executor `local`."""

    workers: int | None = Field(default=None, ge=1, le=1024)
    """Number of worker processes. Results do not depend on it. Default: one, or if trials use GPUs, as many as fit on
    all GPUs, but no more than cores."""
    retries: int = Field(default=2, ge=0)
    """Number of retries of a trial whose worker process died, for example because it ran out of memory, before the
    trial fails."""
    gpu_memory: float | None = Field(default=None, gt=0)
    """Memory of a GPU in GB that each worker may use. As many workers share a GPU as fit into nine tenths of its
    memory. By default, what the methods state or estimate, or else a GPU for each trial.
    It applies to trials that use a GPU, such as those with `device: auto` or `cuda`."""
    in_process: bool = False
    """Run trials in the main process, for example to debug a method with `breakpoint()`. A crash of a method then ends
    the run. Requires `workers: 1`."""

    @model_validator(mode="after")
    def _check_workers(self) -> Self:
        if self.in_process and (self.workers or 1) > 1:
            raise ValueError("`in_process: true` requires `workers: 1`")
        if self.in_process and self.gpu_memory is not None:
            raise ValueError(
                "`gpu_memory` places worker processes, and `in_process: true` uses none; remove one of them"
            )
        return self
