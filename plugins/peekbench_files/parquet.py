"""Read columns of Parquet files and of saved data sets; a separate module because pyarrow is slow to import."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from peekbench import DataError
from peekbench.data import class_names_of, read_parquet, size_limit
from peekbench_files.reading import Row, column_position

MAX_ROWS = 10_000_000
SHARD = re.compile(r"-of-0*([2-9]|[1-9]\d+)\.arrow$")
"""End of the name of one of several files."""
MAX_MESSAGE = 500  # characters of a message of the library
REMEDY = "split the file, or if you trust it, set the option `max_gigabytes` to a larger number"


def read_rows(path: Path, columns: Sequence[str], max_gigabytes: float | None = None) -> list[Row]:
    """Read all rows of a Parquet file.

    Parameters
    ----------
    path
        Path of the file.
    columns
        Names of the columns to read.
    max_gigabytes
        Largest unpacked size of the columns, see `peekbench.data.size_limit`.

    Raises
    ------
    DataError
        If the file is not a Parquet file, lacks a column or is too large.
    """
    try:
        with pq.ParquetFile(path) as file:
            names, num_rows = file.schema_arrow.names, file.metadata.num_rows
        for column in columns:
            column_position(column, names, path)
        if num_rows > MAX_ROWS:
            raise DataError(f"{path} has more than {MAX_ROWS:,} rows; split the file, or sample rows")
        table = read_parquet(path, columns, size_limit(path.stat().st_size, max_gigabytes), REMEDY)
    except (pa.ArrowException, OverflowError) as error:
        raise DataError(
            f"{path} is not a valid Parquet file: {str(error)[:MAX_MESSAGE]}; write the file again, or set `format`"
        ) from error
    return _list_rows(table)


def _list_rows(table: pa.Table) -> list[Row]:
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return [Row(f"row {number}", row) for number, row in enumerate(rows, start=1)]


def read_class_names(path: Path, label: str) -> tuple[str, ...] | None:
    """Return the names of a `ClassLabel` in a Parquet file; None if the labels have no names."""
    try:
        return class_names_of(pq.read_schema(path).metadata, label)
    except (pa.ArrowException, OSError):  # `read_rows` reports what is wrong
        return None


def read_saved_rows(path: Path, columns: Sequence[str], max_gigabytes: float | None = None) -> list[Row]:
    """Read all rows of a data set that the library `datasets` wrote: Arrow streams, which state.json of a folder lists.

    Parameters
    ----------
    path
        Path of a folder of `save_to_disk`, or of a single file, such as one in the cache of `datasets`.
    columns
        Names of the columns to read.
    max_gigabytes
        Largest unpacked size of the data set, see `peekbench.data.size_limit`.

    Raises
    ------
    DataError
        If the path is none of a data set, is one of several files, lacks a column or is too large.
    """
    parts, files = [], [path]
    if shard := SHARD.search(path.name):
        raise DataError(f"{path} is one of {int(shard[1])} files; give the folder that `save_to_disk` wrote")
    try:
        if path.is_dir():
            state = json.loads((path / "state.json").read_text("utf-8"))
            # no path leads out of the folder
            files = [path / Path(str(file["filename"])).name for file in state["_data_files"]]
        limit = size_limit(sum(file.stat().st_size for file in files), max_gigabytes)
        for file in files:
            with pa.memory_map(str(file)) as source, pa.ipc.open_stream(source) as batches:
                for column in columns:
                    column_position(column, batches.schema.names, path)
                for batch in batches:
                    limit -= batch.nbytes
                    if limit < 0:
                        raise DataError(f"{path} takes more memory than is allowed; {REMEDY}")
                    parts.append(batch.select(list(columns)))
    except (pa.ArrowException, KeyError, TypeError, ValueError, OSError) as error:
        raise DataError(
            f"{path} is not a folder that `save_to_disk` of the library `datasets` wrote, or a file in it: "
            f"{str(error)[:MAX_MESSAGE]}; write it again, or set `format`"
        ) from error
    if not parts:
        raise DataError(f"{path} has no rows; save a data set with rows")
    return _list_rows(pa.Table.from_batches(parts))
