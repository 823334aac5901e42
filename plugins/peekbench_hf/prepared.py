"""Keeps a task's rows as an Arrow file, which every later process maps into memory instead of reading it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from peekbench import replacing

if TYPE_CHECKING:
    import pyarrow as pa

    from peekbench_hf.rows import Rows

KEY = b"peekbench"


class ArrowTexts(Sequence[str]):
    """Texts that stay in the file until one is asked for."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...

    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return [self[position] for position in range(*place.indices(len(self)))]
        text: str = self._column[place].as_py()
        return text


@dataclass(frozen=True, slots=True)
class Prepared:
    """A task's rows, and what there is to say of them."""

    table: pa.Table
    fingerprint: str
    class_names: tuple[str, ...]
    details: Mapping[str, Any]


def prepare(rows: Rows, details: Mapping[str, Any]) -> Prepared:
    """Rows as `keep` keeps them."""
    digest = hashlib.sha256(json.dumps(rows.class_names).encode())
    for part in _content(rows.table["text"]):
        digest.update(part)
    digest.update(rows.table["label"].to_numpy())
    return Prepared(rows.table, digest.hexdigest(), rows.class_names, {**details, **rows.details})


def _content(texts: pa.ChunkedArray) -> Iterator[Any]:
    """Lengths in bytes, then all texts: the same for the same texts, wherever they lie in memory."""
    import numpy as np

    for chunk in texts.chunks:
        _, offsets, data = chunk.buffers()
        bounds = np.frombuffer(offsets, dtype=np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
        yield np.diff(bounds)
        yield memoryview(data)[bounds[0] : bounds[-1]]


def keep(prepared: Prepared, path: Path) -> None:
    """Write the file; where that cannot be done, every process reads the data anew."""
    import pyarrow as pa

    said = {
        "fingerprint": prepared.fingerprint,
        "class_names": prepared.class_names,
        "details": dict(prepared.details),
    }
    table = prepared.table.replace_schema_metadata({KEY: json.dumps(said).encode()})
    with suppress(OSError), replacing(path) as temporary, pa.ipc.new_file(str(temporary), table.schema) as writer:
        writer.write_table(table)


def find(path: Path) -> Prepared | None:
    """What was kept, mapped into memory; None where nothing was, or it is damaged."""
    import pyarrow as pa

    try:
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        said = json.loads(table.schema.metadata[KEY])
    except (OSError, pa.ArrowException):
        return None
    return Prepared(table, said["fingerprint"], tuple(said["class_names"]), said["details"])
