"""Read columns of Parquet files; a separate module because pyarrow is slow to import."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from peekbench import DataError
from peekbench_files.row import Row, column_position


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
        If the file is not a Parquet file or lacks a column.
    """
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            for column in columns:
                column_position(column, names, path)
            table = file.read(columns=list(dict.fromkeys(columns)))
            values = [table.column(column).to_pylist() for column in columns]
    except pa.ArrowException as error:
        raise DataError(
            f"{path} is not a valid Parquet file: {error}; write the file again, or set `format`"
        ) from error
    return [Row(f"row {number}", row) for number, row in enumerate(zip(*values, strict=True), start=1)]
