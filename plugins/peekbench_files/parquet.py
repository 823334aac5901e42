"""Read columns of Parquet files and of saved data sets; a separate module because pyarrow is slow to import."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from peekbench import DataError
from peekbench_files.reading import Row, column_position

MAX_MESSAGE = 500  # characters of a message of the library


def read_rows(path: Path, columns: Sequence[str]) -> list[Row]:
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
        If the file is not a Parquet file, or lacks a column.
    """
    try:
        with pq.ParquetFile(path) as file:
            for column in columns:
                column_position(column, file.schema_arrow.names, path)
            return _list_rows(file.read(list(columns)), columns)
    except (pa.ArrowException, OverflowError) as error:
        raise DataError(
            f"{path} is not a valid Parquet file: {str(error)[:MAX_MESSAGE]}; write the file again, or convert it"
        ) from error


def _list_rows(table: pa.Table, columns: Sequence[str]) -> list[Row]:
    rows = zip(*(table.column(name).to_pylist() for name in columns), strict=True)
    return [Row(f"row {number}", row) for number, row in enumerate(rows, start=1)]


def read_class_names(path: Path, label: str) -> tuple[str, ...] | None:
    """Return the names of a `ClassLabel` that `datasets` wrote; None if the labels have no names."""
    try:
        if path.is_dir():
            features = json.loads((path / "dataset_info.json").read_text("utf-8"))["features"]
        else:
            features = json.loads(pq.read_schema(path).metadata[b"huggingface"])["info"]["features"]
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError):  # the data need no names
        return None
    return find_class_names(features, label)


def find_class_names(features: Mapping[str, Any], label: str) -> tuple[str, ...] | None:
    """Return the names of a `ClassLabel` of `datasets`, or of a list of these; None for other features."""
    feature = features.get(label)
    if isinstance(feature, dict):
        feature = feature.get("feature", feature)  # of a list of labels
    if isinstance(feature, dict) and "names" in feature:
        return tuple(map(str, feature["names"]))
    return None


def read_saved_rows(path: Path, columns: Sequence[str]) -> list[Row]:
    """Read all rows of a folder that `save_to_disk` of `datasets` wrote: Arrow streams, which state.json lists.

    Parameters
    ----------
    path
        Path of the folder.
    columns
        Names of the columns to read.

    Raises
    ------
    DataError
        If the path is none of a data set, or lacks a column.
    """
    rows: list[Row] = []
    try:
        for file in json.loads((path / "state.json").read_text("utf-8"))["_data_files"]:
            # no path leads out of the folder
            with pa.memory_map(str(path / Path(str(file["filename"])).name)) as source:
                table = pa.ipc.open_stream(source).read_all()
                for column in columns:
                    column_position(column, table.column_names, path)
                rows += _list_rows(table, columns)
    except (pa.ArrowException, KeyError, TypeError, ValueError, OSError) as error:
        raise DataError(
            f"{path} is not a folder that `save_to_disk` of the library `datasets` wrote: {str(error)[:MAX_MESSAGE]}; "
            "write it again"
        ) from error
    if not rows:
        raise DataError(f"{path} has no rows; save a data set with rows")
    return rows
