"""Keeps a task's rows as an Arrow file, in which every later process finds the few texts that it draws."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, overload

from peekbench.cache import atomic_write, read_cached, write_cached
from peekbench_hf.rows import Rows, measure

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


class KeptTexts(Sequence[str]):
    """Texts that stay in the file, of which just those that are asked for are read.

    They are not read through the memory map: a process that draws rows at random would soon have all of its pages.
    """

    def __init__(self, file: BinaryIO, bounds: NDArray[np.int64], start: int) -> None:
        self._file = file
        weakref.finalize(self, file.close)
        self._bounds = bounds
        self._start = start

    def __len__(self) -> int:
        return len(self._bounds) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...

    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return [self[position] for position in range(*place.indices(len(self)))]
        row = range(len(self))[place]
        begin, end = self._bounds[row : row + 2].tolist()
        return os.pread(self._file.fileno(), end - begin, self._start + begin).decode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A task's rows, and what there is to say of them."""

    texts: Sequence[str]
    labels: NDArray[np.int64]
    fingerprint: str
    class_names: tuple[str, ...]
    details: Mapping[str, Any]


def prepare(rows: Rows, details: Mapping[str, Any], path: Path) -> Prepared:
    """Keep rows in a file; where it cannot be written they stay in memory, and every process reads the data anew."""
    with ThreadPoolExecutor() as pool:  # each goes once through all texts, without Python's lock
        measured = pool.submit(measure, rows.table["text"])
        table = rows.table.combine_chunks()
        written = pool.submit(_write, table, path)
        fingerprint = _fingerprint(table, rows.class_names)
        said = {**details, **rows.details, **measured.result()}
        written.result()
    write_cached(_said_path(path), {"fingerprint": fingerprint, "class_names": rows.class_names, "details": said})
    return find(path) or Prepared(
        table["text"].to_pylist(),
        table["label"].to_numpy(),
        fingerprint,
        rows.class_names,
        said,
    )


def _write(table: pa.Table, path: Path) -> None:
    import pyarrow as pa

    with suppress(OSError), atomic_write(path) as temporary, pa.ipc.new_file(str(temporary), table.schema) as writer:
        writer.write_table(table)


def _said_path(path: Path) -> Path:
    return path.with_suffix(".json")


def find(path: Path) -> Prepared | None:
    """What was kept; None where nothing was, or it is damaged."""
    import numpy as np
    import pyarrow as pa

    said = read_cached(_said_path(path))
    if said is None:
        return None
    with ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("rb"))
            mapped = pa.py_buffer(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
            table = pa.ipc.open_file(mapped).read_all()
            (texts,) = table["text"].chunks  # as it was written
        except (OSError, ValueError, pa.ArrowException):  # the second where the file is empty
            return None
        stack.pop_all()  # the texts close it
    _, bounds, data = texts.buffers()
    return Prepared(
        KeptTexts(file, np.frombuffer(bounds, np.int64, len(texts) + 1), data.address - mapped.address),
        table["label"].to_numpy(),
        said["fingerprint"],
        tuple(said["class_names"]),
        said["details"],
    )


def _fingerprint(table: pa.Table, class_names: Sequence[str]) -> str:
    """SHA-256 of class names, texts and labels."""
    digest = hashlib.sha256(json.dumps(list(class_names)).encode())
    for part in _content(table["text"]):
        digest.update(part)
    digest.update(table["label"].to_numpy())
    return digest.hexdigest()


def _content(texts: pa.ChunkedArray) -> Iterator[Any]:
    """Lengths in bytes, then all texts: the same for the same texts, wherever they lie in memory."""
    import numpy as np

    (chunk,) = texts.chunks
    _, offsets, data = chunk.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
    yield np.diff(bounds)
    yield memoryview(data)[bounds[0] : bounds[-1]]
