"""Hardware that forecasts can be made for: this machine, a number of its cores, and GPUs by name."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from difflib import get_close_matches

from peekbench.errors import SpecError

HERE = "this-machine"
CORES = re.compile(r"(\d{1,6})-cores?")


@dataclass(frozen=True, slots=True)
class Hardware:
    """Cores or a GPU on which a run could take place.

    Examples
    --------
    >>> find_hardware("64-cores").cores
    64
    """

    name: str
    cores: int = 0
    """Number of CPU cores; 0 for a GPU."""
    peak: float = 0.0
    """Rate of bf16 matrix products of a GPU in operations per second, without sparsity; 0 for cores."""
    memory: int = 0
    """Memory of a GPU in bytes."""
    card: str = ""
    """Name of the GPU in the data sheet."""
    address: str = ""
    """Address of the data sheet, the source of rate and memory."""

    @property
    def source(self) -> str:
        """Source of the rate of a GPU, in words."""
        return f"data sheet of the {self.card}, {self.address}"


NVIDIA = "https://www.nvidia.com"
DATA_SHEETS = f"{NVIDIA}/content/dam/en-zz/Solutions/Data-Center"
GPUS = (
    Hardware("h200", 0, 989e12, 141 * 10**9, "NVIDIA H200 SXM", f"{NVIDIA}/en-us/data-center/h200/"),
    Hardware("h100", 0, 989e12, 80 * 10**9, "NVIDIA H100 SXM", f"{NVIDIA}/en-us/data-center/h100/"),
    Hardware(
        "a100", 0, 312e12, 80 * 10**9, "NVIDIA A100 80GB SXM",
        f"{DATA_SHEETS}/a100/pdf/nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf",
    ),
    Hardware(
        "l40s", 0, 362e12, 48 * 10**9, "NVIDIA L40S", "https://resources.nvidia.com/en-us-l40s/l40s-datasheet-28413"
    ),
    Hardware("l4", 0, 121e12, 24 * 10**9, "NVIDIA L4", f"{NVIDIA}/en-us/data-center/l4/"),
    Hardware("a10", 0, 125e12, 24 * 10**9, "NVIDIA A10", f"{DATA_SHEETS}/a10/pdf/a10-datasheet.pdf"),
)  # fmt: skip
"""GPUs whose rates are published. NVIDIA states 1,979 Tflop/s with sparsity for the H200 and the H100, and 242 for the
L4; the rate without sparsity is half of them. For the others, it states both. `get_peak_flops` of torchtitan
(torchtitan/tools/utils.py: H200, H100, A100, L40S) and `GPU_AVAILABLE_FLOPS` of Composer
(composer/callbacks/speed_monitor.py: H200, H100, A100, A10) have the same rates and name these sources. PCIe and NVL
cards of the same name are slower, and so is the A10G."""

SHARES = (0.05, 0.2, 0.4)
"""Shares of the peak that forecasts for GPUs assume: low, middle, high. No run on a GPU was measured. On two cores,
trials of language models reached 35% to 52% of the cores' peak (docs/performance.md)."""

CORE_SHARES = (0.5, 0.75, 1.0)
"""Speed of each core of a larger machine, relative to a core of this one, that forecasts assume: low, middle, high.
Fits on many cores share the bandwidth of memory."""


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def find_hardware(name: str) -> Hardware:
    """Return the hardware of a name: `this-machine`, a number of cores such as `64-cores`, or a GPU such as `h200`.

    Raises
    ------
    SpecError
        If nothing has this name.
    """
    written = name.strip().lower().replace("_", "-")
    if written == HERE:
        return Hardware(HERE, cores=available_cores())
    if (match := CORES.fullmatch(written)) and int(match[1]):
        return Hardware(written, cores=int(match[1]))
    by_name = {gpu.name: gpu for gpu in GPUS}
    if written in by_name:
        return by_name[written]
    names = [HERE, *by_name, "64-cores"]
    nearest = get_close_matches(written.removeprefix("nvidia-"), names, n=1, cutoff=0.5)
    meant = f"did you mean {nearest[0]}? " if nearest else ""
    raise SpecError(
        f"--on {name}: no such hardware; {meant}The names are {', '.join(names[:-1])}, and N-cores such as 64-cores"
    )
