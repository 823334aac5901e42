"""Prepared tasks: rows stored as an Arrow file, from which every process reads only the texts that it needs."""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from peekbench.cache import is_unchanged, read_cached


class StoredTexts(Sequence[str]):
    """Texts that stay in a file until they are accessed.

    Texts are not read through a memory map: a process that draws rows at random would soon have all pages in memory.

    Parameters
    ----------
    file
        The open Arrow file; it is closed together with this object.
    bounds
        Byte offsets of the texts, relative to `start`; shape `(num_texts + 1,)`.
    start
        Position of the first text in the file.
    """

    def __init__(self, file: BinaryIO, bounds: NDArray[np.int64], start: int) -> None:
        self._file = file
        weakref.finalize(self, file.close)
        self._bounds = bounds
        self._start = start

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self._bounds) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...

    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        """Read one text, or a list of texts."""
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        row = range(len(self))[index]
        begin, end = self._bounds[row : row + 2].tolist()
        return os.pread(self._file.fileno(), end - begin, self._start + begin).decode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class PreparedTask:
    """The rows of a task, ready to use."""

    texts: Sequence[str]
    labels: NDArray[np.int64]
    """Class of each row; shape `(num_rows,)`. 0 or 1 for each label of a multi-label task; `(num_rows, num_labels)`."""
    fingerprint: str
    """SHA-256 of class names, texts and labels."""
    class_names: tuple[str, ...]
    details: Mapping[str, Any]
    """Facts for reports, such as the origin and the number of dropped rows."""
    num_test: int
    """Number of rows of the official test split, which are the last ones; 0 if rows of all splits are pooled."""
    groups: tuple[str, ...]
    """Group of each row; empty if every row is a group of its own."""


def list_labels(table: pa.Table) -> NDArray[np.int64]:
    """Return the labels of a prepared table as an array."""
    labels = table["label"]
    if pa.types.is_fixed_size_list(labels.type):
        flat: NDArray[np.int64] = labels.combine_chunks().flatten().to_numpy()
        return flat.reshape(len(labels), -1)
    numbers: NDArray[np.int64] = labels.to_numpy()
    return numbers


def list_groups(table: pa.Table) -> tuple[str, ...]:
    """Return the group of each row of a prepared table, if it has groups."""
    if "group" not in table.column_names:
        return ()
    return tuple(table["group"].to_pylist())


def metadata_path(path: Path) -> Path:
    """Return the path of the JSON file next to an Arrow file."""
    return path.with_suffix(".json")


def find_prepared(path: Path) -> PreparedTask | None:
    """Return the task that was stored at a path; None if there is none or a file has changed since."""
    metadata = read_cached(metadata_path(path))
    if metadata is None or not is_unchanged(path, metadata["file"]):
        return None
    with ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("rb"))
            mapped = pa.py_buffer(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
            table = pa.ipc.open_file(mapped).read_all()
            (texts,) = table["text"].chunks  # tables are written as one chunk
        except (OSError, ValueError, pa.ArrowException):  # ValueError: the file is empty
            return None
        stack.pop_all()  # StoredTexts closes the file
    _, bounds, data = texts.buffers()
    return PreparedTask(
        StoredTexts(file, np.frombuffer(bounds, np.int64, len(texts) + 1), data.address - mapped.address),
        list_labels(table),
        metadata["fingerprint"],
        tuple(metadata["class_names"]),
        metadata["details"],
        metadata["num_test"],
        list_groups(table),
    )
