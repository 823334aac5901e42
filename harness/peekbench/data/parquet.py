"""Reads Parquet files within a limit of memory.

A Parquet file stores each text of a column once, in a dictionary, and rows refer to it. A few kilobytes can therefore
stand for terabytes. Rows are read as references, and become texts only after the size of all texts is known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from peekbench.data.loading import GIGABYTE
from peekbench.errors import DataError

SMALL_BATCH = 64  # rows of a column in which each text can repeat a part of the previous one
PREFIX_ENCODING = "DELTA_BYTE_ARRAY"


def read_parquet(
    source: Path | BinaryIO, columns: Sequence[str], max_bytes: int, remedy: str, origin: str = ""
) -> pa.Table:
    """Read columns of a Parquet file.

    Parameters
    ----------
    source
        The file, or its path.
    columns
        Names of columns of the file, each of which occurs once.
    max_bytes
        Largest size of the columns in memory, see `size_limit`.
    remedy
        What the user can do about a larger file.
    origin
        Name of the file for error messages, if it is not its path.

    Returns
    -------
    pyarrow.Table
        The columns in the given order; texts are large strings.

    Raises
    ------
    DataError
        If the columns are larger.
    pyarrow.ArrowException, OSError
        If the file cannot be read.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> pq.write_table(pa.table({"text": ["a ticket"], "label": [1]}), file)
    >>> read_parquet(file, ["label"], max_bytes=1000, remedy="raise max_gigabytes", origin="tickets").to_pydict()
    {'label': [1]}
    """
    origin = origin or str(source)
    with pq.ParquetFile(source) as file:
        schema, metadata = file.schema_arrow, file.metadata
    paths = [metadata.schema.column(number).path for number in range(metadata.num_columns)]  # 'text', or 'list.element'
    positions = [number for number, name in enumerate(paths) if name in columns or name.split(".")[0] in columns]
    chunks = [metadata.row_group(group).column(n) for group in range(metadata.num_row_groups) for n in positions]
    _refuse(origin, sum(chunk.total_uncompressed_size for chunk in chunks), max_bytes, remedy)
    texts = [name for name in columns if _is_text(schema.field(name).type)]
    if any(PREFIX_ENCODING in chunk.encodings for chunk in chunks):
        with pq.ParquetFile(source) as file:
            batches = _read_batches(file, columns, origin, max_bytes, remedy)
            return pa.Table.from_batches(batches, pa.schema([schema.field(name) for name in columns]))
    with pq.ParquetFile(source, read_dictionary=texts) as file:
        table = file.read(columns=list(columns)).select(list(columns))
    return decode(table, origin, max_bytes, remedy)


def class_names_of(metadata: Mapping[bytes, bytes] | None, label: str) -> tuple[str, ...] | None:
    """Return the names of a `ClassLabel`, or of a list of these, which the library `datasets` writes into a schema.

    Parameters
    ----------
    metadata
        Metadata of the schema of a table.
    label
        Name of the column.

    Returns
    -------
    tuple of str or None
        None if the column has no such names.

    Examples
    --------
    >>> features = '{"info": {"features": {"label": {"names": ["bug", "login"], "_type": "ClassLabel"}}}}'
    >>> class_names_of({b"huggingface": features.encode()}, "label")
    ('bug', 'login')
    """
    described: dict[str, Any] = json.loads((metadata or {}).get(b"huggingface", b"{}"))
    feature = described.get("info", {}).get("features", {}).get(label, {})
    if isinstance(feature, dict):
        feature = feature.get("feature", feature)  # of a list of labels
    if isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
        return tuple(map(str, feature["names"]))
    return None


def decode(table: pa.Table, origin: str, max_bytes: int, remedy: str) -> pa.Table:
    """Return a table without dictionaries.

    Parameters
    ----------
    table
        The table.
    origin, max_bytes, remedy
        As for `read_parquet`.

    Returns
    -------
    pyarrow.Table
        The same columns; texts are large strings.

    Raises
    ------
    DataError
        If it would be larger than `max_bytes`.

    Examples
    --------
    >>> table = pa.table({"label": pa.array(["spam", "spam"]).dictionary_encode()})
    >>> str(decode(table, "tickets", max_bytes=1000, remedy="raise max_gigabytes").schema.field("label").type)
    'large_string'
    """
    _refuse(origin, sum(_decoded_size(column) for column in table.columns), max_bytes, remedy)
    for position, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            values = field.type.value_type
            if pa.types.is_binary(values):
                values = pa.large_binary()
            elif _is_text(values):
                values = pa.large_string()
            column = table.column(position).cast(values)
            table = table.set_column(position, field.name, column)
    return table


def _read_batches(
    file: pq.ParquetFile, columns: Sequence[str], origin: str, max_bytes: int, remedy: str
) -> Iterator[pa.RecordBatch]:
    num_bytes = 0
    for batch in file.iter_batches(SMALL_BATCH, columns=list(columns)):
        num_bytes += batch.nbytes
        _refuse(origin, num_bytes, max_bytes, remedy)
        yield batch.select(list(columns))


def _is_text(kind: pa.DataType) -> bool:
    checks = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(check(kind) for check in checks)


def _decoded_size(column: pa.ChunkedArray) -> int:
    """Return the size in bytes of a column whose texts are stored one after the other."""
    if not pa.types.is_dictionary(column.type) or not _is_text(column.type.value_type):
        return int(column.nbytes)
    lengths = (pc.binary_length(chunk.dictionary).take(chunk.indices) for chunk in column.chunks)
    return sum((pc.sum(of_chunk).as_py() or 0) + 8 * len(of_chunk) for of_chunk in lengths)


def _refuse(origin: str, num_bytes: int, max_bytes: int, remedy: str) -> None:
    if num_bytes > max_bytes:
        raise DataError(
            f"{origin}: its columns unpack to {num_bytes / GIGABYTE:,.2f} GB, more than the limit of "
            f"{max_bytes / GIGABYTE:,.2f} GB; {remedy}"
        )
