"""The data source `tabular.file`: a CSV, TSV or Parquet file of numbers and categories."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from peekbench import DataError, Dataset, Folders
from peekbench.data.text_files import DELIMITERS, SAMPLE, find_dialect, read_lines
from peekbench.formatting import pluralize
from peekbench.plugins import Reference
from peekbench.plugins.names import find_nearest_file
from peekbench_tabular.options import FileOptions
from peekbench_tabular.table import LIKE_A_NUMBER, NUMBER, Column, Table, make_dataset

MAX_ROWS = 10_000_000
READ_PARQUET = Reference("peekbench_tabular.parquet:read_columns")  # pyarrow is optional


def load(*, options: FileOptions, folders: Folders) -> Dataset:
    """Load the file, or the files of the official splits.

    Parameters
    ----------
    options
        Files and columns.
    folders
        Folders of the spec and the cache.

    Raises
    ------
    DataError
        If a file cannot be read or is malformed, or a column is missing or unsuitable.
    """
    paths = [folders.spec / path.expanduser() for path in (options.path, options.test_path) if path is not None]
    parts = [_read(path, options) for path in paths]
    first = parts[0]
    for path, part in zip(paths[1:], parts[1:], strict=True):
        if sorted(column.name for column in part) != sorted(column.name for column in first):
            own = {column.name for column in part}
            differing = sorted(own.symmetric_difference(column.name for column in first))
            listed = ", ".join(differing)
            raise DataError(f"{paths[0]} and {path} differ in the columns {listed}; remove or rename them in the files")
    by_name = [{column.name: column for column in part} for part in parts]
    columns = [
        Column(
            column.name,
            [value for part in by_name for value in part[column.name].values],
        )
        for column in first
    ]
    sizes = [len(part[0].values) for part in parts]
    table = Table(columns, list(zip(map(str, paths), sizes, strict=True)))
    details = {"file": ", ".join(path.name for path in paths), "rows_read": sum(sizes)}
    return make_dataset(table, options, details)


def _read(path: Path, options: FileOptions) -> list[Column]:
    """Read all columns of a file."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # reading a pipe could wait forever
            raise DataError(f"{path} is not a file; give a CSV, TSV or Parquet file")
        if not status.st_size:
            raise DataError(f"{path} is an empty file; write the rows into it, or give another path")
        if options.file_format() == "parquet":
            columns: list[Column] = READ_PARQUET(path)
        else:
            columns = _read_csv(path, options)
    except FileNotFoundError as error:
        near = find_nearest_file(path.name, [file.name for file in _list(path.parent)])
        hint = f"did you mean {near}? " if near else ""
        raise DataError(f"cannot read {path}: no such file; {hint}Relative paths start at the spec's folder") from error
    except (OSError, ValueError) as error:  # ValueError: the path has a null byte
        raise DataError(f"cannot read {path}: {error}; check the path and its permissions") from error
    if not columns or not len(columns[0].values):
        raise DataError(f"{path} has no rows; write the rows into it, or give another path")
    return columns


def _list(folder: Path) -> list[Path]:
    try:
        return list(islice(folder.iterdir(), 1000))
    except OSError:
        return []


def _lines(path: Path, options: FileOptions) -> Iterator[str]:
    return read_lines(path, options.encoding, remedy="set `encoding` to its own, such as cp1252 or latin-1")


def _read_csv(path: Path, options: FileOptions) -> list[Column]:
    head = list(islice(_lines(path, options), SAMPLE))
    wanted = () if options.header else [str(options.label)]
    delimiters = options.delimiter or DELIMITERS[f".{options.file_format()}"]
    dialect = find_dialect(head, delimiters, ('"', "'"), wanted)
    header = [name.strip() or f"column {number}" for number, name in enumerate(dialect.header, start=1)]
    if options.header:
        if len(options.header) != len(header):
            raise DataError(
                f"{path}: `header` names {pluralize(len(options.header), 'column')}, but the first line has "
                f"{pluralize(len(header), 'field')}; name each"
            )
        header = list(options.header)
    elif options.label not in header and all(map(NUMBER.fullmatch, header)):
        names = json.dumps([f"column {number}" for number in range(1, len(header))] + ["label"])
        raise DataError(
            f"{path}: its first line has only numbers; if it is a row, set `header` to names, as in {names}"
        )
    rows = dialect.read_rows(
        _lines(path, options), len(header), path, skip_first=not options.header,
        suggest=lambda: ", or set `delimiter`",
    )  # fmt: skip
    values: list[list[Any]] = [[] for _ in header]
    known: dict[str, str] = {}  # one text for all equal cells saves most of the memory
    for _, fields in rows:
        for column, field in zip(values, fields, strict=True):
            column.append(known.setdefault(field, field))
        if len(values[0]) > MAX_ROWS:
            raise DataError(f"{path} has more than {MAX_ROWS:,} rows; sample rows")
    columns = [Column(name, column) for name, column in zip(header, values, strict=True)]
    if options.decimal == ",":
        texts = {*options.drop, *options.categorical, options.group}
        if options.kind == "classification":
            texts.add(options.label)
        columns = [column if column.name in texts else _with_points(column, path) for column in columns]
    return columns


def _with_points(column: Column, path: Path) -> Column:
    """Return a column whose numbers have a decimal point instead of a comma; other texts stay as they are."""
    values = []
    for row, field in enumerate(column.values, start=1):
        text = field.strip()
        if "." in text and (NUMBER.fullmatch(text) or ("," in text and LIKE_A_NUMBER.fullmatch(text))):
            raise DataError(
                f"{path}, row {row}: column {column.name!r} has {text!r}, but `decimal` is ','; write 1234,5 without a "
                "point, or add the column to `categorical` or `drop`"
            )
        changed = text.replace(",", ".")
        values.append(changed if NUMBER.fullmatch(changed) else field)
    return Column(column.name, values)
