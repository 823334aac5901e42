"""Reads the columns that are asked for, and remembers where each row stands, so that errors can say so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from peekbench import DataError
from peekbench_files.options import FileOptions


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file."""

    place: str
    """'line 3' or 'row 3', counted from 1; a row of several lines stands where it ends."""
    values: Sequence[Any]
    """Of the columns asked for, in that order."""


def read(path: Path, columns: Sequence[str], options: FileOptions) -> list[Row]:
    """All rows of the file.

    Raises
    ------
    DataError
        Where the file cannot be read, is not in its format, or lacks a column.
    """
    file_format = options.file_format()
    try:
        if file_format == "parquet":
            return _read_parquet(path, columns)
        rows = _read_json_lines(path, columns, options) if file_format == "jsonl" else _read_csv(path, columns, options)
        return list(rows)
    except UnicodeError as error:
        raise DataError(f"{path} is not {options.encoding}: {error}; set `encoding` to what it is") from error
    except (OSError, ValueError) as error:  # the second where the path has a null byte
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read {path}: {reason}; check the path and its permissions") from error


def _encoding(options: FileOptions) -> str:
    """The encoding, with any byte order mark taken off."""
    return "utf-8-sig" if options.encoding.lower().replace("_", "-") in ("utf-8", "utf8") else options.encoding


def _read_csv(path: Path, columns: Sequence[str], options: FileOptions) -> Iterator[Row]:
    import csv

    delimiter = options.delimiter or ("\t" if options.file_format() == "tsv" else ",")
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if options.quote else csv.QUOTE_NONE
    with path.open(encoding=_encoding(options), newline="") as file:
        reader = csv.reader(file, delimiter=delimiter, quotechar=options.quote or None, quoting=quoting, strict=True)
        try:
            header = next(reader, [])
            positions = [_position(column, header, path) for column in columns]
            for fields in reader:
                if not fields:  # an empty line
                    continue
                if len(fields) != len(header):
                    raise DataError(
                        f"{path}, line {reader.line_num}: {len(fields)} fields, but the header has {len(header)}; "
                        f"quote texts that hold {delimiter!r}, or set `delimiter` and `quote` to what the file uses"
                    )
                yield Row(f"line {reader.line_num}", [fields[position] for position in positions])
        except csv.Error as error:
            raise DataError(
                f"{path}, line {reader.line_num}: {error}; mend the line, or set `delimiter` and `quote` to what the "
                "file uses"
            ) from error


def _read_json_lines(path: Path, columns: Sequence[str], options: FileOptions) -> Iterator[Row]:
    keys: dict[str, None] = {}
    with path.open(encoding=_encoding(options)) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DataError(
                    f"{path}, line {number}: not valid JSON ({error}); each line must be one object"
                ) from error
            if not isinstance(record, dict):
                raise DataError(
                    f"{path}, line {number}: a JSON {type(record).__name__}; each line must be one object, like "
                    '{"text": "...", "label": "..."}'
                )
            keys.update(dict.fromkeys(record))
            yield Row(f"line {number}", [record.get(column) for column in columns])
    for column in columns:
        _position(column, list(keys), path)


def _read_parquet(path: Path, columns: Sequence[str]) -> list[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            for column in columns:
                _position(column, names, path)
            table = file.read(columns=list(dict.fromkeys(columns)))
            values = [table.column(column).to_pylist() for column in columns]
    except pa.ArrowException as error:
        raise DataError(f"{path} is no Parquet file: {error}; write it anew, or set `format`") from error
    return [Row(f"row {number}", row) for number, row in enumerate(zip(*values, strict=True), start=1)]


def _position(column: str, header: Sequence[str], path: Path) -> int:
    """Where the column stands.

    Raises
    ------
    DataError
        Where it does not, or does more than once.
    """
    if header.count(column) != 1:
        problem = f"{header.count(column)} columns" if column in header else "no column"
        there = ", ".join(map(repr, header)) or "none"
        raise DataError(f"{path}: {problem} {column!r}; there are {there}. Set `text` and `label` to two of them")
    return header.index(column)
