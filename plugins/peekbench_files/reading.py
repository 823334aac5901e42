"""Read the requested columns of a file, together with the position of each row for error messages."""

from __future__ import annotations

import csv
import json
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from reprlib import repr as short_repr
from typing import Any, Literal, TextIO

from peekbench import DataError
from peekbench.plugins import Reference
from peekbench_files.options import FileOptions

MAX_LISTED = 30  # columns that a message lists
MAX_NAME = 100  # characters of a name that is compared with those of columns


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file."""

    position: str
    """Position in the file, such as 'line 3' or 'row 3', counted from 1; the last line of a row with several lines."""
    values: Sequence[Any]
    """Values of the requested columns, in the requested order."""


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
    DataError
        If the column is missing or duplicated.
    """
    if header.count(column) != 1:
        problem = f"{header.count(column)} columns" if column in header else "no column"
        available = ", ".join(map(short_repr, header[:MAX_LISTED])) or "none"
        if len(header) > MAX_LISTED:
            available += f" and {len(header) - MAX_LISTED} more"
        close = get_close_matches(column[:MAX_NAME], header, n=1) if column not in header else []
        hint = f"did you mean {close[0]}? " if close else ""
        raise DataError(
            f"{path}: {problem} {column!r}; {hint}available columns: {available}. Set `text` and `label` to two of "
            "them, or `label: null` for texts without labels"
        )
    return header.index(column)


MAX_CHARACTERS = 2**24  # of a line or a field; the csv module refuses more than 131,072 by default


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
        rows = _read_json_lines(path, columns, options) if file_format == "jsonl" else _read_csv(path, columns, options)
        return list(rows)
    except UnicodeError as error:
        raise DataError(f"{path} is not {options.encoding}: {error}; set `encoding` to the file's encoding") from error
    except (OSError, ValueError) as error:  # ValueError: the path has a null byte
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read {path}: {reason}; check the path and its permissions") from error


def _encoding(options: FileOptions) -> str:
    """Return the encoding, in a variant that skips a byte order mark."""
    return "utf-8-sig" if options.encoding.lower().replace("_", "-") in ("utf-8", "utf8") else options.encoding


def _read_lines(file: TextIO, path: Path) -> Iterator[str]:
    """Yield the lines of a file. Refuse lines that are too long before they fill the memory."""
    number = 0
    while line := file.readline(MAX_CHARACTERS + 1):
        number += 1
        if len(line) > MAX_CHARACTERS:
            raise DataError(
                f"{path}, line {number}: more than {MAX_CHARACTERS:,} characters; check the format of the file, or "
                "shorten the text"
            )
        yield line


def _read_csv(path: Path, columns: Sequence[str], options: FileOptions) -> Iterator[Row]:
    delimiter = options.delimiter or ("\t" if options.file_format() == "tsv" else ",")
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if options.quote else csv.QUOTE_NONE
    with path.open(encoding=_encoding(options), newline="") as file:
        csv.field_size_limit(MAX_CHARACTERS)
        reader = csv.reader(
            _read_lines(file, path), delimiter=delimiter, quotechar=options.quote or None, quoting=quoting, strict=True
        )
        try:
            header = next(reader, [])
            positions = [column_position(column, header, path) for column in columns]
            for fields in reader:
                if not fields:  # an empty line
                    continue
                if len(fields) != len(header):
                    raise DataError(
                        f"{path}, line {reader.line_num}: {len(fields)} fields, but the header has {len(header)}; "
                        f"quote texts that contain {delimiter!r}, or set `delimiter` and `quote` to those of the file"
                    )
                yield Row(f"line {reader.line_num}", [fields[position] for position in positions])
        except csv.Error as error:
            raise DataError(
                f"{path}, line {reader.line_num}: {error}; fix the line, or set `delimiter` and `quote` to those of "
                "the file"
            ) from error


def _read_json_lines(path: Path, columns: Sequence[str], options: FileOptions) -> Iterator[Row]:
    keys: dict[str, None] = {}
    with path.open(encoding=_encoding(options)) as file:
        for number, line in enumerate(_read_lines(file, path), start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DataError(
                    f"{path}, line {number}: not valid JSON ({error}); write one object per line"
                ) from error
            if not isinstance(record, dict):
                raise DataError(
                    f"{path}, line {number}: a JSON {type(record).__name__} instead of an object; write one object per "
                    'line, like {"text": "...", "label": "..."}'
                )
            keys.update(dict.fromkeys(record))
            yield Row(f"line {number}", [record.get(column) for column in columns])
    for column in columns:
        column_position(column, list(keys), path)
