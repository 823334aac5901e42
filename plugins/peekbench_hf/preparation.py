"""Prepare a task: read its files, build its rows, and store them as an Arrow file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from peekbench.cache import atomic_write, describe_file, write_cached
from peekbench_hf.definition import HubTask
from peekbench_hf.options import HubOptions
from peekbench_hf.prepared import PreparedTask, find_prepared, metadata_path
from peekbench_hf.reading import read_splits
from peekbench_hf.rows import Rows, make_rows, measure


def prepare_files(
    splits: Sequence[Sequence[Path]],
    task: HubTask,
    label: str,
    options: HubOptions,
    details: Mapping[str, Any],
    path: Path,
) -> PreparedTask:
    """Read files and store the task's rows.

    Parameters
    ----------
    splits
        Files of the train split, in order, and those of the test split if train and test rows are kept apart.
    task
        Definition of the task.
    label
        Name of the label column in these files.
    options
        Options of the task: how to drop duplicates, and the limit of unpacked sizes.
    details
        Facts for reports, to which those about the rows are added.
    path
        Path of the Arrow file to write.

    Raises
    ------
    DataError
        If a file is damaged, a column is missing, or rows do not match the definition.
    """
    columns = read_splits(splits, task.text, label, options.max_gigabytes)
    return prepare_rows(make_rows(columns, task, label, options.drop_duplicates), details, path)


def prepare_rows(rows: Rows, details: Mapping[str, Any], path: Path) -> PreparedTask:
    """Store rows in a file; if it cannot be written, they stay in memory, and every process reads the data again.

    Parameters
    ----------
    rows
        The task's rows.
    details
        Facts for reports, to which those about the rows are added.
    path
        Path of the Arrow file to write.
    """
    with ThreadPoolExecutor() as pool:  # each of these tasks passes over all texts without holding the GIL
        measured = pool.submit(measure, rows.table["text"])
        table = rows.table.combine_chunks()
        written = pool.submit(_write, table, path)
        fingerprint = _fingerprint(table, rows.class_names)
        all_details = {**details, **rows.details, **measured.result()}
        file = written.result()
    if file is not None:
        metadata = {
            "fingerprint": fingerprint,
            "class_names": rows.class_names,
            "details": all_details,
            "num_test": rows.num_test,
            "file": file,
        }
        write_cached(metadata_path(path), metadata)
    return find_prepared(path) or PreparedTask(
        table["text"].to_pylist(), table["label"].to_numpy(), fingerprint, rows.class_names, all_details, rows.num_test
    )


def _write(table: pa.Table, path: Path) -> dict[str, Any] | None:
    """Write the file and return its description; None if it cannot be written."""
    with suppress(OSError), atomic_write(path) as temporary:
        with pa.ipc.new_file(str(temporary), table.schema) as writer:
            writer.write_table(table)
        return describe_file(temporary)
    return None


def _fingerprint(table: pa.Table, class_names: Sequence[str]) -> str:
    """Return the SHA-256 of class names, texts and labels."""
    digest = hashlib.sha256(json.dumps(list(class_names)).encode())
    for part in _text_bytes(table["text"]):
        digest.update(part)
    digest.update(table["label"].to_numpy())
    return digest.hexdigest()


def _text_bytes(texts: pa.ChunkedArray) -> Iterator[Any]:
    """Yield the texts' lengths in bytes, then their bytes, independently of their layout in memory."""
    (chunk,) = texts.chunks
    _, offsets, data = chunk.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
    yield np.diff(bounds)
    yield memoryview(data)[bounds[0] : bounds[-1]]
