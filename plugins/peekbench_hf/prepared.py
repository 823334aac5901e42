"""Prepared tasks: rows stored as an Arrow file, from which every process reads only the texts that it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from peekbench.cache import atomic_write, describe_file, is_unchanged, read_cached, write_cached


class StoredTexts(Sequence[str]):
    """Texts that stay in a file until they are accessed.

    Parameters
    ----------
    column
        Column of a table that is mapped to memory.
    """

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self._column)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...

    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        """Return one text, or a list of texts."""
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        text: str = self._column[range(len(self))[index]].as_py()
        return text


@dataclass(frozen=True, slots=True)
class PreparedTask:
    """The rows of a task, ready to use."""

    texts: Sequence[str]
    labels: NDArray[np.int64]
    """Class of each row; shape `(num_rows,)`. 0 or 1 for each label of a multi-label task; `(num_rows, num_labels)`."""
    groups: tuple[str, ...]
    """Group of each row; empty if every row is a group of its own."""
    class_names: tuple[str, ...]
    fingerprint: str
    """SHA-256 of class names, texts and labels."""
    details: Mapping[str, Any]
    """Facts for reports, such as the origin and the number of dropped rows."""
    num_test: int
    """Number of rows of the official test split, which are the last ones; 0 if rows of all splits are pooled."""


def store(task: PreparedTask, path: Path) -> PreparedTask:
    """Store rows in a file, and return them from it; if it cannot be written, they stay in memory.

    Parameters
    ----------
    task
        The rows.
    path
        Path of the Arrow file to write.
    """
    table = pa.table({"text": pa.array(task.texts, pa.large_string()), "label": task.labels.tolist()})
    if task.groups:
        table = table.append_column("group", pa.array(task.groups))
    with suppress(OSError):
        with atomic_write(path) as temporary, pa.ipc.new_file(str(temporary), table.schema) as writer:
            writer.write_table(table)
        facts = {
            "class_names": task.class_names,
            "fingerprint": task.fingerprint,
            "details": task.details,
            "num_test": task.num_test,
        }
        write_cached(path.with_suffix(".json"), {**facts, "file": describe_file(path)})
    return find_prepared(path) or task


def find_prepared(path: Path) -> PreparedTask | None:
    """Return the task that was stored at a path; None if there is none or a file has changed since."""
    facts = read_cached(path.with_suffix(".json"))
    if facts is None or not is_unchanged(path, facts.pop("file")):
        return None
    with pa.memory_map(str(path)) as source:
        table = pa.ipc.open_file(source).read_all()
    return PreparedTask(
        texts=StoredTexts(table["text"]),
        labels=np.array(table["label"].to_pylist(), dtype=np.int64),
        groups=tuple(table["group"].to_pylist()) if "group" in table.column_names else (),
        class_names=tuple(facts.pop("class_names")),
        **facts,
    )
