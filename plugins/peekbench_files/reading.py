"""Read the requested columns of a file, together with the position of each row for error messages."""

from __future__ import annotations

import csv
import json
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from reprlib import repr as short_repr
from typing import Any

from peekbench import DataError
from peekbench.data.text_files import DELIMITERS, SAMPLE, Dialect, find_dialect, read_lines, read_objects, try_dialect
from peekbench.formatting import list_names, pluralize
from peekbench.plugins import Reference
from peekbench_files.options import FileOptions

MAX_LISTED = 30  # columns that a message lists
MAX_TRIED = 20_000  # lines that are divided by other delimiters and quotes
MAX_NAME = 100  # characters of a name that is compared with those of columns


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file."""

    position: str
    """Position in the file, such as 'line 3' or 'row 3', counted from 1; the last line of a row with several lines."""
    values: Sequence[Any]
    """Values of the requested columns, in the requested order."""


class NoColumnError(DataError):
    """A column that is missing or duplicated."""


LIKE_A_VALUE = re.compile(r"^-?[0-9][0-9.]*$|\s\S+\s|[.!?]\s*$")
"""Numbers and texts of three words, which are hardly names of columns."""


NUMBER = r"[-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?"


def _name_columns(values: Sequence[str]) -> list[str]:
    """Return names for the columns of a first row: the longest value is the text, the shortest the label."""
    names = [f"column {number}" for number in range(1, len(values) + 1)]
    sizes = [len(value) for value in values]
    names[sizes.index(min(sizes))] = "label"
    names[sizes.index(max(sizes))] = "text"
    return names


REMEDY = "Set `text` and `label` to two of them; `group` is another one, if rows have groups"
UNLABELED = "; set `label` to null for texts without labels"
TABULAR = (
    "If the rows are numbers, load them with the data source tabular.file, which `peekbench show tabular.file` shows"
)


def column_position(column: str, header: Sequence[str], path: Path, remedy: str = REMEDY) -> int:
    """Return the position of a column in the header.

    Parameters
    ----------
    column
        Name of the column.
    header
        Names of all columns.
    path
        Path of the file, for error messages.
    remedy
        What the user can do.

    Raises
    ------
    NoColumnError
        If the column is missing or duplicated.
    """
    if header.count(column) != 1:
        problem = f"{header.count(column)} columns" if column in header else "no column"
        available = list_names(list(map(short_repr, header)), MAX_LISTED) or "none"
        close = get_close_matches(column[:MAX_NAME], header, n=1) if column not in header else []
        hint = f"did you mean {close[0]}? " if close else ""
        raise NoColumnError(f"{path}: {problem} {column!r}; {hint}available columns: {available}. {remedy}")
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
        Format, encoding, delimiter and quote.

    Raises
    ------
    DataError
        If the file cannot be read, is not in its format, or lacks a column.
    """
    file_format = options.file_format()
    try:
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():  # reading a pipe could wait forever
            raise DataError(f"{path} is not a file; save the rows in a file first")
        if not path.is_dir() and path.stat().st_size == 0:
            raise DataError(f"{path} is an empty file; write the rows into it, or give another path")
        if file_format in ("parquet", "arrow"):
            name = "read_rows" if file_format == "parquet" else "read_saved_rows"
            read_rows = Reference(f"peekbench_files.parquet:{name}")  # pyarrow is optional
            return list(read_rows(path, columns, options.max_gigabytes))
        read_format = _read_csv if file_format in ("csv", "tsv") else _read_json
        return list(read_format(path, columns, options))
    except (OSError, ValueError) as error:  # ValueError: the path has a null byte
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read {path}: {reason}; check the path and its permissions") from error


def read_class_names(path: Path, options: FileOptions) -> tuple[str, ...] | None:
    """Return the names of a `ClassLabel` that the library `datasets` wrote; None if the labels have no names."""
    if not isinstance(options.label, str):
        return None
    if options.file_format() == "parquet":
        names: tuple[str, ...] | None = Reference("peekbench_files.parquet:read_class_names")(path, options.label)
        return names
    if options.file_format() != "arrow":
        return None
    folder = path if path.is_dir() else path.parent
    try:
        feature = json.loads((folder / "dataset_info.json").read_text("utf-8"))["features"][options.label]
        return tuple(map(str, feature.get("feature", feature)["names"]))  # of a label, or of a list of labels
    except (OSError, ValueError, KeyError, TypeError):  # the data need no names
        return None


def _advise(options: FileOptions) -> str:
    """Return the remedy of a missing column; texts without labels have no official splits."""
    if options.test_path is None:
        return REMEDY + UNLABELED
    return REMEDY


def _lines(path: Path, options: FileOptions) -> Iterator[str]:
    remedy = "set `encoding` to cp1252, if the file is from Windows, or to its own, such as latin-1"
    return read_lines(path, options.encoding, max_gigabytes=options.max_gigabytes, remedy=remedy)


def _read_csv(path: Path, columns: Sequence[str], options: FileOptions) -> Iterator[Row]:
    delimiters = options.delimiter or DELIMITERS[f".{options.file_format()}"]
    quotes = ('"', "'") if options.quote == '"' else (options.quote,)
    head = list(islice(_lines(path, options), SAMPLE))
    dialect = find_dialect(head, delimiters, quotes, () if options.header else columns)
    header = options.header or dialect.header
    if len(header) != len(dialect.header):
        raise DataError(
            f"{path}: `header` names {pluralize(len(header), 'column')}, but the first line has "
            f"{pluralize(len(dialect.header), 'field')}, {', '.join(map(short_repr, dialect.header))}; name each"
        )
    remedy = _advise(options)
    if _are_numbers(head, dialect):
        remedy = TABULAR
    others = find_dialect(head, DELIMITERS[".csv"], quotes, columns)
    if others.is_regular and others.delimiter != dialect.delimiter:
        listed = ", ".join(map(short_repr, others.header[:MAX_LISTED]))
        remedy = f"Set `delimiter` to {json.dumps(others.delimiter)}, which gives the columns {listed}"
    elif dialect.repeats_header or any(map(LIKE_A_VALUE.search, header)):
        names = json.dumps(_name_columns(header), ensure_ascii=False)
        remedy = f"If these are the first row of a file without a header, set `header` to {names}"
    if options.delimiter and options.delimiter not in "".join(head[:1]):
        remedy = f"The first line does not contain {options.delimiter!r}; remove `delimiter`. {remedy}"
    positions = [column_position(column, header, path, remedy) for column in columns]
    rows = dialect.read_rows(
        _lines(path, options), len(header), path, skip_first=not options.header,
        suggest=lambda: _suggest(path, options, dialect),
    )  # fmt: skip
    for line, fields in rows:
        yield Row(f"line {line}", [fields[position] for position in positions])


def _are_numbers(head: Sequence[str], dialect: Dialect) -> bool:
    """Return whether the first row below the header has numbers, and at most one other value, such as a class."""
    try:
        fields: list[str] = next(islice(dialect.reader(head), 1, None), [])
    except csv.Error:  # reading the whole file reports it
        return False
    numbers = [field for field in fields if re.fullmatch(NUMBER, field.strip())]
    return len(numbers) >= max(2, len(fields) - 1)


def _suggest(path: Path, options: FileOptions, used: Dialect) -> str:
    """Return the delimiter and the quote that divide the lines into the same number of fields; empty if none does."""
    for delimiter in dict.fromkeys((used.delimiter, *DELIMITERS[".csv"])):
        for quote in ('"', "'", ""):
            tried = try_dialect(islice(_lines(path, options), MAX_TRIED), delimiter, quote)
            if tried.is_regular:
                listed = ", ".join(map(short_repr, tried.header[:MAX_LISTED]))
                remedy = f", or set `delimiter` to {json.dumps(delimiter)}"
                if quote != used.quote:
                    remedy += f" and `quote` to {json.dumps(quote)}"
                return f"{remedy}, which gives the columns {listed} for `text` and `label`"
    return ""


def nested_values(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values within an object with names such as 'data.text', or 'data.0.text' within a list of objects."""
    parts: dict[Any, Any] = {}
    if isinstance(value, dict):
        parts = value
    elif isinstance(value, list) and all(isinstance(part, dict) for part in value):
        parts = dict(enumerate(value))
    for key, part in parts.items():
        inner = f"{name}.{key}".removeprefix(".")
        yield inner, part
        yield from nested_values(part, inner)


def _read_json(path: Path, columns: Sequence[str], options: FileOptions) -> Iterator[Row]:
    keys: dict[str, None] = {}
    for place, record in read_objects(_lines(path, options), str(path)):
        values = dict(nested_values(record)) | record
        keys.update(dict.fromkeys(values))
        yield Row(place, [values.get(column) for column in columns])
    for column in columns:
        column_position(column, list(keys), path, _advise(options))
