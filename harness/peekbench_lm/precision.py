"""The precision `auto`: bf16 where the device multiplies in bf16 faster than in fp32, otherwise fp32.

Processors without instructions for bf16 emulate it, which is several times slower than fp32. Nothing but a measured
product tells both kinds apart on all devices.
"""

from __future__ import annotations

import hashlib
import os
import platform
import time
from pathlib import Path

import torch
from torch.nn.functional import linear

from peekbench.cache import cache_folder, read_cached, write_cached
from peekbench_lm.options import Precision, PrecisionOption

NUM_TOKENS, SIZE = 128, 768  # of the product that is timed; about as in a step of BERT-base
REPEATS = 3
MIN_SPEEDUP = 1.2  # below it, the rounding of bf16 buys nothing


def choose_precision(option: PrecisionOption, device: torch.device) -> Precision:
    """Return the precision that an option means on a device.

    Parameters
    ----------
    option
        Option of the user. `auto` is decided once per machine: by the time of a product and its gradients, which is
        kept in the cache, so that all processes and resumed runs of a machine agree.
    device
        Device of the computation.

    Examples
    --------
    >>> choose_precision("fp32", torch.device("cpu"))
    'fp32'
    """
    if option != "auto":
        return option
    path = cache_folder() / "precision" / f"{_identify(device)}.json"
    known = read_cached(path)
    if known is None:
        dtypes = (("fp32", None), ("bf16", torch.bfloat16))
        write_cached(path, {name: _time_product(device, dtype) for name, dtype in dtypes})
        known = read_cached(path)
    if known is None:  # no cache can be written, and processes that time for themselves might disagree
        return "fp32"
    return "bf16" if known["fp32"] >= MIN_SPEEDUP * known["bf16"] else "fp32"


def _identify(device: torch.device) -> str:
    """Return a digest of what decides how fast a device multiplies."""
    parts = [torch.__version__, device.type, os.environ.get("ONEDNN_MAX_CPU_ISA", "")]
    if device.type == "cuda":
        parts.append(torch.cuda.get_device_name(device))
    else:
        parts += [platform.node(), torch.backends.cpu.get_cpu_capability(), _name_processor()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _name_processor() -> str:
    """Return the model and the instructions of the processor, as Linux states them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))


def _time_product(device: torch.device, dtype: torch.dtype | None) -> float:
    """Return the seconds of a linear layer with its gradients: the minimum of some repeats, after one to warm up."""
    inputs = torch.ones(NUM_TOKENS, SIZE, device=device, requires_grad=True)
    weight = torch.ones(SIZE, SIZE, device=device, requires_grad=True)
    seconds = []
    for _ in range(1 + REPEATS):
        started = time.perf_counter()
        with torch.autocast(device.type, dtype, enabled=dtype is not None):
            product = linear(inputs, weight)
        torch.autograd.backward(product.sum())
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - started)
    return min(seconds[1:])
