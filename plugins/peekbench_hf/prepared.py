"""Prepared tasks: rows stored as an Arrow file, from which every process reads only the texts that it needs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, overload

import numpy as np
import pyarrow as pa

from peekbench import Dataset
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


def store(dataset: Dataset, path: Path) -> Dataset:
    """Store rows in a file, and return them from it; if it cannot be written, they stay in memory.

    Parameters
    ----------
    dataset
        The rows.
    path
        Path of the Arrow file to write.
    """
    labels: Any = dataset.labels
    columns: dict[str, Any] = {
        "text": pa.array(dataset.inputs, pa.large_string()),
        "label": list(map(json.dumps, labels)) if dataset.kind == "generation" else labels.tolist(),
    }
    for name in ("groups", "splits"):
        if values := getattr(dataset, name):
            columns[name] = values
    table = pa.table(columns)
    with suppress(OSError):
        with atomic_write(path) as temporary, pa.ipc.new_file(str(temporary), table.schema) as writer:
            writer.write_table(table)
        facts = {name: getattr(dataset, name) for name in ("kind", "class_names", "fingerprint", "details")}
        write_cached(path.with_suffix(".json"), {**facts, "file": describe_file(path)})
    return find_prepared(path) or dataset


def find_prepared(path: Path) -> Dataset | None:
    """Return the rows that were stored at a path; None if there are none or a file has changed since."""
    facts = read_cached(path.with_suffix(".json"))
    if facts is None or not is_unchanged(path, facts.pop("file")):
        return None
    with pa.memory_map(str(path)) as source:
        table = pa.ipc.open_file(source).read_all()
    labels: Any = table["label"].to_pylist()
    labels = list(map(json.loads, labels)) if facts["kind"] == "generation" else np.array(labels, dtype=np.int64)
    columns: dict[str, Any] = {
        name: tuple(table[name].to_pylist()) for name in ("groups", "splits") if name in table.column_names
    }
    facts["class_names"] = tuple(facts["class_names"])
    return Dataset(StoredTexts(table["text"]), labels, **columns, **facts)
