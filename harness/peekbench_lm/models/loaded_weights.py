"""Loaded weights of a model, to restore them before each fit.

In the memory of a CPU, a copy of all weights would take as much space as the weights. The files of the model have the
same values, so the copy is read from them. Processes share what the operating system keeps of a file in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from peekbench import DataError

LENGTH_BYTES = 8  # of the length of the header, with which a safetensors file begins


@dataclass(frozen=True, slots=True)
class _Place:
    """Position of the values of a weight in a file."""

    file: Path
    start: int
    """First byte."""


class LoadedWeights:
    """The values that weights had when they were loaded.

    Parameters
    ----------
    weights
        Names and weights.
    folder
        Folder with the safetensors files of the model.
    prefix
        Beginning of names that the files may lack, such as ``bert.``.
    """

    def __init__(self, weights: Iterable[tuple[str, Tensor]], folder: Path, prefix: str) -> None:
        files = sorted(folder.glob("*.safetensors"))
        self._states = {file: _state(file) for file in files}
        stored = {name: place for file in files for name, place in _fp32_places(file).items()}
        self._places: dict[str, _Place] = {}
        self.copies: dict[str, Tensor] = {}
        """Values that are not in the files, or cannot be read into the memory of a weight, by name."""
        for name, weight in weights:
            shape = tuple(weight.shape)
            place = stored.get((name, shape)) or stored.get((name.removeprefix(prefix), shape))
            if place is not None and _is_stored(weight, place):
                self._places[name] = place
            else:
                self.copies[name] = weight.detach().clone()

    @torch.no_grad()
    def restore(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Set weights to the loaded values.

        Parameters
        ----------
        weights
            Names and weights.

        Raises
        ------
        DataError
            If a file of the model has changed since it was loaded.
        """
        if any(_state(place.file) != self._states[place.file] for place in self._places.values()):
            files = ", ".join(sorted({str(place.file) for place in self._places.values()}))
            raise DataError(
                f"{files}: the weights of the model changed during the run; restore the files, or store the new model "
                "in another folder, and resume the run"
            )
        for name, weight in weights:
            if name in self.copies:
                weight.copy_(self.copies[name])
            else:
                _read_into(weight, self._places[name])


def _state(file: Path) -> tuple[int, int] | None:
    """Return what changes if a file is written: its size and time of modification; None if there is no file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _fp32_places(file: Path) -> Mapping[tuple[str, tuple[int, ...]], _Place]:
    """Return the positions of the fp32 tensors of a safetensors file, by name and shape."""
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(LENGTH_BYTES), "little")
        header = json.loads(stream.read(length))
    return {
        (name, tuple(entry["shape"])): _Place(file, LENGTH_BYTES + length + entry["data_offsets"][0])
        for name, entry in header.items()
        if entry.get("dtype") == "F32"
    }


def _is_stored(weight: Tensor, place: _Place) -> bool:
    """Return whether a file has the values of a weight, which can be read into it."""
    is_readable = weight.device.type == "cpu" and weight.dtype == torch.float32 and weight.is_contiguous()
    if not is_readable or not weight.numel():
        return False
    values = torch.empty_like(weight)
    _read_into(values, place)
    return torch.equal(values.view(torch.int32), weight.detach().view(torch.int32))


def _read_into(weight: Tensor, place: _Place) -> None:
    """Read the values of a weight from a file into its memory."""
    values: Any = weight.detach().view(-1).numpy()
    with FileIO(place.file) as stream:
        stream.seek(place.start)
        _fill(memoryview(values).cast("B"), stream)


def _fill(memory: memoryview, stream: FileIO) -> None:
    """Read bytes until some memory is full. A single call of the operating system reads at most 2 GB."""
    while memory:
        count = stream.readinto(memory)
        if not count:
            raise DataError(f"{stream.name}: the file ended before the last weight; restore the files of the model")
        memory = memory[count:]
