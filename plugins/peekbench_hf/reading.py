"""Read the text and label columns from files of every format that datasets use, within limits of their sizes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from peekbench import DataError
from peekbench.data import class_names_of, decode, read_parquet, size_limit
from peekbench.data.labels import align_classes
from peekbench_hf.semeval import read_articles

GIGABYTE = 10**9
REMEDY = "if you trust the file, set the option `max_gigabytes` to a larger number"
BYTES_PER_ROW = 16  # at least, in memory, even if all rows have the same value


def check_unpacked_sizes(paths: Sequence[Path], max_gigabytes: float | None) -> None:
    """Refuse files that would be much larger when unpacked, from the sizes that they declare.

    Parameters
    ----------
    paths
        Files to check. Those of formats without compression are not opened.
    max_gigabytes
        Largest unpacked size of a file. By default 50 times its size, but at least 0.25 and at most 16.

    Raises
    ------
    DataError
        If a file declares a larger size.
    """
    for path in paths:
        try:
            declared = _declared_size(path)
            size = path.stat().st_size
        except (OSError, ValueError, BadZipFile, NotImplementedError, pa.ArrowException):
            continue  # reading the file reports the problem
        limit = size_limit(size, max_gigabytes)
        if declared > limit:
            raise DataError(
                f"{path}: its {size:,} bytes unpack to {declared / GIGABYTE:,.2f} GB, more than the limit of "
                f"{limit / GIGABYTE:,.2f} GB; {REMEDY}"
            )


def _declared_size(path: Path) -> int:
    """Return the size in bytes that a file declares for its unpacked content; 0 for formats without compression."""
    if path.suffix == ".zip":
        with ZipFile(path) as archive:
            return sum(member.file_size for member in archive.infolist())
    if path.suffix == ".parquet":
        with pq.ParquetFile(path) as file:
            metadata = file.metadata
            groups = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
            return int(groups + metadata.num_rows * BYTES_PER_ROW)
    return 0


BLOCK_SIZE = 64 * 2**20  # bytes; pyarrow requires that every line fits into a block


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a split, or of the train split followed by the test split."""

    table: pa.Table
    """The requested columns, in the requested order."""
    class_names: tuple[str, ...] | None
    """Names of the labels 0, 1, and so on, if the label column has a ClassLabel, or lists of them."""
    num_test: int = 0
    """Number of rows of the test split, which are the last ones."""


def read_splits(
    splits: Sequence[Sequence[Path]],
    text: Sequence[str],
    label: str,
    max_gigabytes: float | None = None,
    group: str = "",
) -> Columns:
    """Read the columns of texts, labels and groups of one or two splits.

    Parameters
    ----------
    splits
        Files of the train split, and those of the test split if train and test rows are kept apart.
    text
        Columns of the text.
    label
        Column of the label.
    max_gigabytes
        Largest unpacked size of a file, see `peekbench.data.size_limit`.
    group
        Column of the group; empty if there is none.

    Raises
    ------
    DataError
        If a file cannot be read, is too large or lacks a column, the splits have different columns, or only one of them
        has names of classes.
    """
    columns = [read(paths, text, label, max_gigabytes, group) for paths in splits]
    if len(columns) == 1:
        return columns[0]
    if any((split.class_names is None) != (columns[0].class_names is None) for split in columns):
        train, test = (split.class_names for split in columns)
        raise DataError(
            f"column {label!r} has the classes {train} in the train split, but {test} in the test split; set `splits` "
            "to pooled"
        )
    names, numbers = align_classes([split.class_names for split in columns])
    tables = [_renumber(split, label, new) for split, new in zip(columns, numbers, strict=True)]
    return Columns(_concatenate(tables, "the splits have"), names, len(tables[1]))


def read(
    paths: Sequence[Path], text: Sequence[str], label: str, max_gigabytes: float | None = None, group: str = ""
) -> Columns:
    """Read the columns of texts, labels and groups of all files.

    Parameters
    ----------
    paths
        Files of the split, in order.
    text
        Columns of the text.
    label
        Column of the label.
    max_gigabytes
        Largest unpacked size of a file, see `peekbench.data.size_limit`.
    group
        Column of the group; empty if there is none.

    Raises
    ------
    DataError
        If a file cannot be read, is too large or lacks a column.
    """
    columns = [column for column in (*text, label, group) if column]
    if paths[0].suffix == ".zip":
        return Columns(_select(read_articles(paths), columns, paths[0]), None)
    parts = []
    for path in paths:
        try:
            table = _READERS[path.suffix](path, text, columns, size_limit(path.stat().st_size, max_gigabytes))
        except (pa.ArrowException, ValueError, OSError) as error:
            raise DataError(
                f"{path}: cannot be read as {path.suffix[1:]}: {error}; download it again, or correct the file"
            ) from error
        parts.append(Columns(_select(table, columns, path), class_names_of(table.schema.metadata, label)))
    names, numbers = align_classes([part.class_names for part in parts])
    tables = [_renumber(part, label, new) for part, new in zip(parts, numbers, strict=True)]
    return Columns(_concatenate(tables, f"{paths[0].parent}: its files have"), names)


def _concatenate(tables: Sequence[pa.Table], subject: str) -> pa.Table:
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise DataError(
            f"{subject} different column types: {error}; set `files` in hf.dataset to files with the same types"
        ) from error


def _select(table: pa.Table, columns: Sequence[str], path: Path) -> pa.Table:
    for column in columns:
        if table.column_names.count(column) != 1:
            available = ", ".join(map(repr, table.column_names)) or "none"
            problem = "several columns" if column in table.column_names else "no column"
            raise DataError(
                f"{path}: {problem} {column!r}; available columns: {available}. Set `text` and `label` in "
                "hf.dataset, or another `revision`"
            )
    return table.select(columns).replace_schema_metadata(None)


def _renumber(columns: Columns, label: str, numbers: Mapping[int, int]) -> pa.Table:
    """Return a table with the numbers of classes that `align_classes` gives."""
    if all(old == new for old, new in numbers.items()):
        return columns.table
    column, position = columns.table.column(label), columns.table.column_names.index(label)

    def renumber(value: Any) -> Any:
        if isinstance(value, list):
            return [renumber(number) for number in value]
        return numbers.get(value, value)

    new = pa.array(map(renumber, column.to_pylist()), column.type)
    return columns.table.set_column(position, label, new)


def _read_parquet(path: Path, text: Sequence[str], columns: Sequence[str], max_bytes: int) -> pa.Table:
    schema = pq.read_schema(path)
    if any(schema.names.count(column) != 1 for column in columns):
        return schema.empty_table()  # the error message lists its columns
    return read_parquet(path, columns, max_bytes, REMEDY).replace_schema_metadata(schema.metadata)


def _read_arrow(path: Path, text: Sequence[str], columns: Sequence[str], max_bytes: int) -> pa.Table:
    """Read Arrow's stream format, which `datasets` writes, or its file format."""
    with pa.memory_map(str(path)) as source:
        try:
            table = pa.ipc.open_stream(source).read_all()
        except pa.ArrowInvalid:
            table = pa.ipc.open_file(source).read_all()
        return decode(table, str(path), max_bytes, REMEDY)


def _read_json(path: Path, text: Sequence[str], columns: Sequence[str], max_bytes: int) -> pa.Table:
    """Read one object per line, or a single list of objects."""
    with path.open("rb") as file:
        if file.read(1024).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
            return pa.Table.from_pylist(json.loads(path.read_bytes()))
    schema = pa.schema([(column, pa.large_string()) for column in text])  # keeps texts that look like dates as strings
    return pyarrow.json.read_json(
        path,
        read_options=pyarrow.json.ReadOptions(block_size=BLOCK_SIZE),
        parse_options=pyarrow.json.ParseOptions(explicit_schema=schema),
    )


def _read_csv(path: Path, text: Sequence[str], columns: Sequence[str], max_bytes: int) -> pa.Table:
    return pyarrow.csv.read_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(block_size=BLOCK_SIZE),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            # Groups as well, which may begin with zeros; the type of labels decides how they are named.
            column_types=dict.fromkeys((*text, *columns[len(text) + 1 :]), pa.large_string()),
            null_values=[""],
            strings_can_be_null=True,
        ),
    )


_READERS = {
    ".parquet": _read_parquet,
    ".arrow": _read_arrow,
    ".json": _read_json,
    ".jsonl": _read_json,
    ".csv": _read_csv,
}
