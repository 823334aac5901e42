"""Devices, CPU threads, determinism and memory."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor

from peekbench.errors import SpecError
from peekbench.plugins import GPU_FRACTION_VARIABLE
from peekbench_lm.options import DeviceName

OUT_OF_MEMORY_MESSAGES = ("can't allocate memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED")


def choose_device(name: DeviceName) -> torch.device:
    """Return the device of a name.

    Parameters
    ----------
    name
        Name of the device; ``auto`` selects a GPU if there is one.

    Raises
    ------
    SpecError
        If this machine has no such device.
    """
    # In the order in which "auto" tries them.
    available: dict[DeviceName, bool] = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if name == "auto":
        name = next(device for device, is_there in available.items() if is_there)
    if not available[name]:
        raise SpecError(
            f"device: {name}: torch finds no such device on this machine; write auto or cpu, or install a "
            "torch build that supports it"
        )
    if name == "cuda":
        limit_gpu_memory()
    return torch.device(name)


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a copy of a tensor of the CPU on a device, or the tensor itself if the device is the CPU.

    The program does not wait for a GPU, because the tensor is first copied to pinned memory. A plain copy would wait
    for all work of the GPU, at each of the small tensors that describe the texts of a step.

    Parameters
    ----------
    tensor
        A tensor of the CPU.
    device
        Device of the copy.
    """
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def matrix_dtype(device: torch.device) -> torch.dtype:
    """Return the data type of matrix products: that of the current autocast region, or fp32 outside of one.

    Parameters
    ----------
    device
        Device of the computation.
    """
    return torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else torch.float32


def limit_gpu_memory() -> None:
    """Let torch use no more of the GPU's memory than the executor has given this process, if it shares the GPU."""
    fraction = float(os.environ.get(GPU_FRACTION_VARIABLE) or 1.0)
    if fraction < 1:
        torch.cuda.set_per_process_memory_fraction(fraction)


M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of mallopt, in malloc.h of glibc


@cache
def keep_freed_memory() -> None:
    """Let this process keep freed memory for its next tensors, if its allocator is that of glibc.

    Otherwise, every large tensor is returned to the kernel, which fills its pages with zeros when the next one is
    written: half of the time of a training step. The peak memory is the same, but is not returned between fits.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(M_TRIM_THRESHOLD, -1)  # never
        mallopt(M_MMAP_MAX, 0)


@contextmanager
def deterministic(device: torch.device, threads: int) -> Iterator[None]:
    """Compute reproducibly with a fixed number of CPU threads, and preserve the state of torch's random generator.

    Parameters
    ----------
    device
        Device of the computation.
    threads
        Number of CPU threads of torch.
    """
    previous_threads = torch.get_num_threads()
    was_enabled = torch.are_deterministic_algorithms_enabled()
    was_warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    settings: Any = torch.utils.deterministic  # a module with a property, which type checkers do not know
    fills = settings.fill_uninitialized_memory
    products = torch.get_float32_matmul_precision()
    # Predictions are computed in fp32. TF32 and bf16, which users and some containers allow, would make the prediction
    # for a text depend on the other texts of its batch.
    torch.set_float32_matmul_precision("highest")
    torch.set_num_threads(threads)
    if device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS may vary the order of sums
        torch.use_deterministic_algorithms(True, warn_only=True)
        settings.fill_uninitialized_memory = False  # nothing reads it, and each fill costs a launch
    if device.type == "cpu":
        keep_freed_memory()
    try:
        with torch.random.fork_rng([device] if device.type == "cuda" else [], device_type=device.type):
            yield
    finally:
        torch.set_num_threads(previous_threads)
        torch.use_deterministic_algorithms(was_enabled, warn_only=was_warn_only)
        settings.fill_uninitialized_memory = fills
        torch.set_float32_matmul_precision(products)


def is_out_of_memory(error: RuntimeError) -> bool:
    """Return whether an error means that a device or the machine is out of memory."""
    text = str(error)
    return isinstance(error, torch.OutOfMemoryError) or any(message in text for message in OUT_OF_MEMORY_MESSAGES)


def free_memory(device: torch.device) -> None:
    """Release the memory that torch caches for a device."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
    elif device.type == "mps":
        torch.mps.empty_cache()


def peak_memory(device: torch.device) -> float:
    """Return the peak memory in MB.

    On a CUDA device this is the memory of tensors since `reset_peak_memory`; on other devices it is the memory of this
    process since its start.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    import resource  # noqa: PLC0415 - the module is missing on Windows

    unit = 1 if sys.platform == "darwin" else 2**10  # ru_maxrss is in bytes on macOS and in KB on Linux
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def reset_peak_memory(device: torch.device) -> None:
    """Reset the peak memory of a CUDA device, so that `peak_memory` ignores earlier fits."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


T = TypeVar("T")


class MicroBatch:
    """Number of texts that are computed at once. It is halved if they do not fit into memory.

    Parameters
    ----------
    device
        Device of the computation.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.limit: int | None = None
        """Maximum number of texts; None as long as whole batches fit into memory."""

    def size(self, num_texts: int) -> int:
        """Return how many of a number of texts to compute at once."""
        return min(self.limit or num_texts, num_texts)

    def run(self, num_texts: int, attempt: Callable[[int], T]) -> T:
        """Call a function with ever smaller micro-batch sizes until it fits into memory.

        Parameters
        ----------
        num_texts
            Number of texts of the whole batch.
        attempt
            Function of the micro-batch size. Its error is raised if a single text does not fit.
        """
        while True:
            size = self.size(num_texts)
            try:
                return attempt(size)
            except RuntimeError as error:
                if size == 1 or not is_out_of_memory(error):
                    raise
            self.limit = size // 2  # after the exception, whose frames hold tensors that must be freed
            free_memory(self.device)
