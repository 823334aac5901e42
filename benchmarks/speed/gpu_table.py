"""Table of the benchmarks on a GPU: trials per hour, share of the peak of matrix products, and memory."""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass

import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@dataclass(frozen=True)
class Row:
    """Figures of one way to run trials."""

    name: str
    trials: int
    """Number of measured trials."""
    seconds: float
    """Duration of all of them."""
    operations: float
    """Floating-point operations of matrix products on real tokens in all of them."""
    memory: float
    """Peak memory in MB: of tensors of all processes on a GPU, or of all processes on a CPU."""


def matrix_peak() -> float:
    """Return the operations per second of the fastest bf16 matrix product that was tried on the device."""
    best = 0.0
    for size in (1024, 2048) if DEVICE.type == "cpu" else (4096, 8192):
        left, right = (torch.randn(size, size, dtype=torch.bfloat16, device=DEVICE) for _ in range(2))
        for _ in range(3 if DEVICE.type == "cpu" else 20):
            _wait()
            started = time.perf_counter()
            left @ right
            _wait()
            best = max(best, 2 * size**3 / (time.perf_counter() - started))
    return best


def peak_memory() -> float:
    """Return the peak memory of this process in MB."""
    if DEVICE.type == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def print_table(title: str, rows: list[Row], peak: float, num_planned: int) -> None:
    """Print the figures of several ways to run the same trials.

    Parameters
    ----------
    title
        Model and work of a trial.
    rows
        Figures; the first row is the reference.
    peak
        Operations per second of the fastest matrix product.
    num_planned
        Number of trials of an experiment, whose duration is printed.
    """
    name = torch.cuda.get_device_name() if DEVICE.type == "cuda" else "CPU; not the figures of a GPU"
    print(f"{title} ({name}, peak {peak / 1e12:.2f} T/s)")
    print(f"  {'':44}{'trials/hour':>12}{'relative':>10}{'of peak':>9}{'memory':>10}{f'{num_planned:,} trials':>15}")
    reference = rows[0].trials / rows[0].seconds
    for row in rows:
        speed = row.trials / row.seconds
        share = row.operations / row.seconds / peak
        print(
            f"  {row.name:44}{3600 * speed:12,.1f}{speed / reference:9.1f}x{share:9.1%}{row.memory / 1024:7.1f} GB"
            f"{num_planned / speed / 3600:13.1f} h",
            flush=True,
        )


def _wait() -> None:
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
