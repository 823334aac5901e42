"""The GPUs of this machine, for executors and pilots."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from peekbench.errors import PeekbenchError

COMMAND = "nvidia-smi"
FIELDS = "index,uuid,name,memory.total,memory.used"
TIMEOUT = 30.0  # seconds; the first call after a start of the machine loads the driver
VISIBLE_VARIABLE = "CUDA_VISIBLE_DEVICES"
MEMORY_UNIT = 2**20


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU of this machine."""

    index: str
    """Number by which the driver lists it."""
    uuid: str
    """Identifier, which environment variables name."""
    name: str
    """Name of the model."""
    memory: int
    """Total memory in bytes."""
    used: int = 0
    """Memory that all processes use, in bytes."""


def list_gpus() -> tuple[Gpu, ...] | None:
    """Return the GPUs that this process may use, in its order; None if that is unknown.

    Returns
    -------
    tuple of Gpu or None
        None without `nvidia-smi`, and if `$CUDA_VISIBLE_DEVICES` names parts of a GPU (MIG).

    Raises
    ------
    PeekbenchError
        If `nvidia-smi` fails, or lists something else.

    Examples
    --------
    >>> gpus = list_gpus()
    >>> gpus is None or all(gpu.used <= gpu.memory for gpu in gpus)
    True
    """
    program = shutil.which(COMMAND)
    visible = os.environ.get(VISIBLE_VARIABLE)
    if program is None or "MIG-" in (visible or ""):
        return None
    command = [program, f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        detail = (getattr(error, "stdout", "") or getattr(error, "stderr", "") or str(error)).strip()
        raise PeekbenchError(f"{program} cannot list the GPUs of this machine: {detail}") from error
    gpus = [_parse(line) for line in done.stdout.splitlines() if line.strip()]
    if visible is None:
        return tuple(gpus)
    return tuple(_select(gpus, visible))


def _parse(line: str) -> Gpu:
    try:
        index, uuid, name, total, used = (cell.strip() for cell in line.split(","))
        return Gpu(index, uuid, name, int(total) * MEMORY_UNIT, int(used) * MEMORY_UNIT)
    except ValueError:
        raise PeekbenchError(f"{COMMAND} printed {line!r}; expected the fields {FIELDS}, memory in MiB") from None


def _select(gpus: Sequence[Gpu], visible: str) -> Iterator[Gpu]:
    """Iterate over the GPUs that `$CUDA_VISIBLE_DEVICES` names, in its order.

    As in CUDA, the list ends at the first entry that names no GPU. Entries are numbers, or beginnings of identifiers.
    """
    for entry in (part.strip() for part in visible.split(",")):
        found = [gpu for gpu in gpus if entry and (gpu.index == entry or gpu.uuid.startswith(entry))]
        if len(found) != 1:
            return
        yield found[0]
