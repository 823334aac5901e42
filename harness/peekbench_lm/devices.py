"""Where models are computed: device, precision, threads, and what happens where memory runs out."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from peekbench import PeekbenchError
from peekbench.errors import SpecError
from peekbench_lm.names import DeviceName

NO_MEMORY = ("can't allocate memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # numbers in glibc's malloc.h


def choose_device(name: DeviceName) -> torch.device:
    """The device of that name; 'auto' is a GPU where there is one.

    Raises
    ------
    SpecError
        Where this machine has no such device.
    """
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        name = "cuda" if there["cuda"] else "mps" if there["mps"] else "cpu"
    if not there[name]:
        raise SpecError(
            f"device: {name}: torch finds no such device on this machine; write auto or cpu, or install a "
            "torch build for it"
        )
    return torch.device(name)


@contextmanager
def reproducibly(device: torch.device, threads: int) -> Iterator[None]:
    """Compute with a number of CPU threads, always in the same order, and leave torch's own generator as it is."""
    before = torch.get_num_threads()
    strict = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.set_num_threads(threads)
    if device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else cuBLAS may add up in another order each time
        torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with torch.random.fork_rng([device] if device.type == "cuda" else [], device_type=device.type):
            yield
    finally:
        torch.set_num_threads(before)
        torch.use_deterministic_algorithms(strict[0], warn_only=strict[1])


def keep_freed_memory() -> None:
    """Have glibc keep what is freed, for the next step's tensors, which are as large.

    Left to itself it gives large blocks back to the system, and each step then waits for zeroed pages.
    """
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt") and library.mallopt(M_MMAP_MAX, 0):  # no block is mapped by itself, however large
        library.mallopt(M_TRIM_THRESHOLD, 2**30)


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether a device, or the machine, has no memory left for a tensor."""
    text = str(error)
    return isinstance(error, torch.OutOfMemoryError) or any(said in text for said in NO_MEMORY)


def free_memory(device: torch.device) -> None:
    """Give back what torch holds in reserve."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
    elif device.type == "mps":
        torch.mps.empty_cache()


def peak_memory(device: torch.device) -> float:
    """Most megabytes held so far: by tensors on a GPU since `reset_peak_memory`, else by this process, ever."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    import resource

    unit = 1 if sys.platform == "darwin" else 2**10  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def reset_peak_memory(device: torch.device) -> None:
    """Forget how much memory earlier fits took, where the device lets one."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


class MicroBatch:
    """How many texts are computed at once; halved for good where they do not fit into memory."""

    def __init__(self) -> None:
        self.limit: int | None = None
        """None while whole batches fit."""

    def shrink(self, size: int, device: torch.device, error: RuntimeError) -> None:
        """Take half as many from now on.

        Raises
        ------
        PeekbenchError
            Where a single text does not fit.
        """
        if size == 1:
            raise PeekbenchError(
                "a single text does not fit into memory; choose a smaller model or context_length, train by lora, or "
                "let fewer workers share the device"
            ) from error
        self.limit = size // 2
        free_memory(device)

    def size(self, num_texts: int) -> int:
        """How many of so many texts to compute at once."""
        return min(self.limit or num_texts, num_texts)
