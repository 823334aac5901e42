"""Read the requested columns of a file, together with the position of each row for error messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from reprlib import repr as short_repr
from typing import Any

from peekbench import DataError
from peekbench.data.text_files import DELIMITERS, SAMPLE, check_file, find_dialect, read_lines, read_objects
from peekbench.formatting import list_names
from peekbench.plugins import Reference
from peekbench.plugins.names import ask_for_column
from peekbench_files.options import FileOptions

MAX_LISTED = 30  # columns that a message lists


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file."""

    position: str
    """Position in the file, such as 'line 3' or 'row 3', counted from 1; the last line of a row with several lines."""
    values: Sequence[Any]
    """Values of the requested columns, in the requested order."""


class NoColumnError(DataError):
    """A column that is missing or duplicated."""


def column_position(column: str, header: Sequence[str], path: Path) -> int:
    """Return the position of a column in the header.

    Parameters
    ----------
    column
        Name of the column.
    header
        Names of all columns.
    path
        Path of the file, for error messages.

    Raises
    ------
    NoColumnError
        If the column is missing or duplicated.
    """
    if header.count(column) != 1:
        problem = f"{header.count(column)} columns" if column in header else "no column"
        available = list_names(list(map(short_repr, header)), MAX_LISTED) or "none"
        hint = ask_for_column(column, header) if column not in header else ""
        raise NoColumnError(
            f"{path}: {problem} {column!r}; {hint}available columns: {available}. Set `text` and `label` to two of "
            "them, or in a spec of language modeling, `label: null`"
        )
    return header.index(column)


def read(path: Path, columns: Sequence[str], options: FileOptions) -> list[Row]:
    """Read all rows of a file.

    Parameters
    ----------
    path
        Path of the file.
    columns
        Names of the columns to read.
    options
        Encoding and quote.

    Raises
    ------
    DataError
        If the file cannot be read, is not in its format, or lacks a column.
    """
    file_format = options.file_format()
    if file_format == "saved":
        read_saved = Reference("peekbench_files.parquet:read_saved_rows")  # pyarrow is optional
        return list(read_saved(path, columns))
    with check_file(path):
        if file_format == "parquet":
            return list(Reference("peekbench_files.parquet:read_rows")(path, columns))
        read_format = _read_json if file_format == "json" else _read_csv
        return list(read_format(path, columns, options))


def read_class_names(path: Path, options: FileOptions) -> tuple[str, ...] | None:
    """Return the names of a `ClassLabel` that the library `datasets` wrote; None if the labels have no names."""
    file_format = options.file_format()
    if not isinstance(options.label, str) or file_format not in ("parquet", "saved"):
        return None
    names: tuple[str, ...] | None = Reference("peekbench_files.parquet:read_class_names")(path, options.label)
    return names


def _lines(path: Path, options: FileOptions) -> Iterator[str]:
    remedy = "set `encoding` to cp1252, if the file is from Windows, or to its own, such as latin-1"
    return read_lines(path, options.encoding, remedy=remedy)


def _read_csv(path: Path, columns: Sequence[str], options: FileOptions) -> Iterator[Row]:
    quotes = ('"', "'") if options.quote == '"' else (options.quote,)
    head = islice(_lines(path, options), SAMPLE)
    dialect = find_dialect(head, DELIMITERS[f".{options.file_format()}"], quotes, columns)
    positions = [column_position(column, dialect.header, path) for column in columns]
    for line, fields in dialect.read_rows(_lines(path, options), path):
        yield Row(f"line {line}", [fields[position] for position in positions])


def _read_json(path: Path, columns: Sequence[str], options: FileOptions) -> Iterator[Row]:
    keys: dict[str, None] = {}
    for place, record in read_objects(_lines(path, options), str(path)):
        values = dict(_nested_values(record)) | record
        keys.update(dict.fromkeys(values))
        yield Row(place, [values.get(column) for column in columns])
    for column in columns:
        column_position(column, list(keys), path)


def _nested_values(record: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values within objects, or lists of objects, with names such as 'data.text' and 'labels.0.name'."""
    for key, value in record.items():
        yield f"{prefix}{key}", value
        if isinstance(value, list) and all(isinstance(part, dict) for part in value):
            value = dict(enumerate(value))
        if isinstance(value, dict):
            yield from _nested_values(value, f"{prefix}{key}.")
