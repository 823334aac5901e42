"""Read columns of Parquet files; a separate module because pyarrow is slow to import."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from peekbench import DataError
from peekbench_files.row import Row, column_position

MAX_ROWS = 10_000_000
MAX_BYTES = 4_000_000_000  # of the columns that are read, unpacked
MAX_MESSAGE = 500  # characters of a message of the library
BATCH_SIZE = 1024  # rows


def read_parquet(path: Path, columns: Sequence[str]) -> list[Row]:
    """Read all rows of a Parquet file.

    Parameters
    ----------
    path
        Path of the file.
    columns
        Names of the columns to read.

    Raises
    ------
    DataError
        If the file is not a Parquet file, lacks a column or is too large.
    """
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            for column in columns:
                column_position(column, names, path)
            if file.metadata.num_rows > MAX_ROWS:
                raise DataError(f"{path} has more than {MAX_ROWS:,} rows; split the file, or sample rows")
            return list(_read_rows(file, columns, path))
    except (pa.ArrowException, OverflowError) as error:
        raise DataError(
            f"{path} is not a valid Parquet file: {str(error)[:MAX_MESSAGE]}; write the file again, or set `format`"
        ) from error


def _read_rows(file: pq.ParquetFile, columns: Sequence[str], path: Path) -> Iterator[Row]:
    """Yield rows by batches, because a few bytes can stand for the same long text in every row."""
    num_rows = num_bytes = 0
    for batch in file.iter_batches(BATCH_SIZE, columns=list(dict.fromkeys(columns))):
        num_bytes += batch.nbytes
        if num_bytes > MAX_BYTES:
            raise DataError(f"{path}: more than {MAX_BYTES / 1e9:g} GB of text; split the file, or sample rows")
        values = [batch.column(column).to_pylist() for column in columns]
        yield from (
            Row(f"row {number}", row) for number, row in enumerate(zip(*values, strict=True), start=num_rows + 1)
        )
        num_rows += batch.num_rows
