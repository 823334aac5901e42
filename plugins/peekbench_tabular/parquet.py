"""Read Parquet files of numbers and categories; a separate module because pyarrow is optional."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from peekbench import DataError
from peekbench.data import read_parquet, size_limit
from peekbench_tabular.table import Column

MAX_MESSAGE = 500  # characters of a message of the library


def read_columns(path: Path) -> list[Column]:
    """Read all columns of a Parquet file.

    Raises
    ------
    DataError
        If it is not a Parquet file, or is too large when unpacked.
    """
    try:
        names = pq.read_schema(path).names
        for name, number in Counter(names).items():
            if number > 1:
                raise DataError(f"{path}: {number} columns have the name {name!r}; rename one")
        table = read_parquet(path, names, size_limit(path.stat().st_size), "select columns and rows in the file")
    except (pa.ArrowException, OverflowError) as error:
        raise DataError(
            f"{path} is not a valid Parquet file: {str(error)[:MAX_MESSAGE]}; write the file again, or set `format`"
        ) from error
    return [Column(name, column.to_pylist()) for name, column in zip(names, table.columns, strict=True)]
