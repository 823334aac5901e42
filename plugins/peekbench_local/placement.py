"""Decides which workers share which GPU of this machine, by the memory that their trials need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from peekbench import PeekbenchError
from peekbench.plugins import GPU_FRACTION_VARIABLE, Gpu
from peekbench.records import Resources

RESERVED = 0.1
"""Share of the memory of each GPU that no worker gets, for what programs use outside of torch's allocator."""
TOLERANCE = 1e-9  # of sums of shares
MAX_WORKERS = 1024
GB = 1e9


@dataclass(frozen=True, slots=True)
class GpuNeed:
    """What the trials of an item need of the GPUs of a machine."""

    gpus: float = 0.0
    """GPUs, or a fraction of one; 0 if the trials need none."""
    memory: int = 0
    """Bytes of one GPU; 0 if `gpus` alone tells how many workers share it."""
    is_estimate: bool = False
    """Whether trials may need more than `memory`."""

    def covers(self, other: GpuNeed) -> bool:
        """Return whether a worker with this need can do an item with another one."""
        if not other.gpus:
            return True
        if math.ceil(self.gpus) != math.ceil(other.gpus) or bool(self.memory) != bool(other.memory):
            return False
        return self.memory >= other.memory if self.memory else self.gpus >= other.gpus


NO_GPU = GpuNeed()


@dataclass(frozen=True, slots=True)
class Grant:
    """The GPUs of a worker."""

    need: GpuNeed = NO_GPU
    gpus: tuple[Gpu, ...] = ()
    max_sharing: int = 0
    """Largest number of workers with this need on a GPU, if the need is an estimate."""

    def share(self, gpu: Gpu) -> float:
        """Return the share of what a GPU offers to workers."""
        return _share(self.need, gpu) if gpu in self.gpus else 0.0

    @property
    def limit(self) -> int:
        """Bytes of a GPU that the worker may use.

        The room that estimates leave is divided, because they can be too low; a worker alone may use the whole GPU.
        """
        gpu = self.gpus[0]
        if self.max_sharing == 1:
            return gpu.memory
        if self.max_sharing:
            return max(self.need.memory, int(_budget(gpu) / self.max_sharing))
        return self.need.memory

    def environment(self) -> dict[str, str]:
        """Return environment variables of the worker: the GPUs that it sees, and the share of their memory."""
        if not self.gpus:
            return {}
        variables = {"CUDA_VISIBLE_DEVICES": ",".join(gpu.uuid for gpu in self.gpus)}
        fraction = min(1.0, self.need.gpus)
        if self.need.memory:
            fraction = self.limit / self.gpus[0].memory
        if fraction < 1:
            variables[GPU_FRACTION_VARIABLE] = f"{fraction:.6f}"
        return variables


def _budget(gpu: Gpu) -> float:
    """Return the bytes of a GPU that workers may use; what others use when the run starts is left to them."""
    return max(0.0, (1 - RESERVED) * gpu.memory - gpu.used)


def _share(need: GpuNeed, gpu: Gpu) -> float:
    if need.memory:
        budget = _budget(gpu)
        return need.memory / budget if budget else math.inf
    return min(1.0, need.gpus)


class Placement:
    """The GPUs of this machine, on which workers are placed.

    Parameters
    ----------
    gpus
        GPUs that this process may use; None if it is unknown which there are. Workers then see what this process sees.
    memory
        Bytes of a GPU that each worker may use, instead of what the methods state; None for what they state.
    num_workers
        Largest number of workers; None if the GPUs decide.

    Raises
    ------
    PeekbenchError
        If `memory` is given, and it is unknown which GPUs there are.
    """

    def __init__(self, gpus: tuple[Gpu, ...] | None, memory: int | None, num_workers: int | None = None) -> None:
        if gpus is None and memory is not None:
            raise PeekbenchError(
                "the executor option `gpu_memory` requires the program nvidia-smi, which lists the GPUs of this "
                "machine, and it was not found; remove the option, or install the driver's tools"
            )
        self._gpus = gpus
        self._memory = memory
        self._num_workers = num_workers

    @property
    def largest_budget(self) -> int:
        """Bytes that workers may use of the GPU with the most."""
        return int(max(map(_budget, self._gpus or ()), default=0))

    def need(self, resources: Resources) -> GpuNeed:
        """Return the needs of an item for GPUs.

        Raises
        ------
        PeekbenchError
            If the GPUs of this machine cannot meet the need, even with one worker.
        """
        if self._gpus is None or not resources.gpus or (resources.is_gpu_optional and not self._gpus):
            return NO_GPU
        need = GpuNeed(resources.gpus, resources.gpu_memory)
        if self._memory is not None:
            need = GpuNeed(resources.gpus, self._memory)
        elif resources.is_estimate and resources.gpu_memory:
            # A fit may need less than estimated, and computes parts of a batch one after the other if memory runs out.
            need = GpuNeed(resources.gpus, min(resources.gpu_memory, self.largest_budget), is_estimate=True)
        if self.place(need, ()) is None:
            raise PeekbenchError(self._describe_lack(need))
        return need

    def count_places(self, need: GpuNeed) -> int:
        """Return how many workers with a need fit on all GPUs together."""
        grants: list[Grant] = []
        while len(grants) < MAX_WORKERS and (grant := self.place(need, grants)) is not None:
            grants.append(grant)
        return len(grants)

    def place(self, need: GpuNeed, grants: Sequence[Grant]) -> Grant | None:
        """Return GPUs for a new worker, those with the most room; None if the present workers leave no room.

        Parameters
        ----------
        need
            What its trials need.
        grants
            Grants of the present workers.
        """
        room = {gpu: 1 - sum(grant.share(gpu) for grant in grants) for gpu in self._gpus or ()}
        fitting = [gpu for gpu in room if _share(need, gpu) <= room[gpu] + TOLERANCE]
        fitting.sort(key=lambda gpu: room[gpu] * (_budget(gpu) if need.memory else 1), reverse=True)
        number = max(1, math.ceil(need.gpus - TOLERANCE))
        if len(fitting) < number:
            return None
        sharing = 0
        if need.is_estimate:
            sharing = min(int(1 / _share(need, fitting[0]) + TOLERANCE), self._num_workers or MAX_WORKERS)
        return Grant(need, tuple(fitting[:number]), sharing)

    def _describe_lack(self, need: GpuNeed) -> str:
        gpus = self._gpus or ()
        if not gpus:
            return (
                "trials need a GPU, and this process may use none: nvidia-smi lists none, or CUDA_VISIBLE_DEVICES "
                "hides them; write `device: cpu` in the options of their method, or use another machine"
            )
        if need.gpus > len(gpus):
            return f"a trial needs {need.gpus:g} GPUs, and this process may use {len(gpus)}; use another machine"
        offers = "; ".join(
            f"{gpu.name} offers {_budget(gpu) / GB:.1f} GB of {gpu.memory / GB:.1f} GB, with {gpu.used / GB:.1f} GB in "
            f"use and {RESERVED:.0%} reserved"
            for gpu in gpus
        )
        return (
            f"a trial needs {need.memory / GB:.1f} GB of the memory of a GPU, which no GPU of this machine has: "
            f"{offers}; use a smaller model, smaller batches or another GPU, or lower the executor option `gpu_memory`"
        )
