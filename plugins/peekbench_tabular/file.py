"""The data source `tabular.file`: a CSV, TSV or Parquet file of numbers and categories.

Categories become features before any set is drawn, with the categories of the whole table in sorted order. This depends
neither on labels nor on the number of rows of a category, and it is the same in all arms, so it adds nothing to the
difference between arms.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from reprlib import repr as short_repr
from typing import Any

import numpy as np
import pandas as pd

from peekbench import DataError, Dataset, Folders
from peekbench.data import hash_rows
from peekbench.data.labels import MISSING
from peekbench.data.rows import Columns, Reading, select_rows
from peekbench.data.text_files import DELIMITERS, SAMPLE, check_file, find_dialect, read_lines, suffix_of
from peekbench.formatting import list_names
from peekbench.identity import key_of
from peekbench.plugins.names import ask_for_column
from peekbench.records import BoolArray, FloatArray
from peekbench_tabular.options import FileOptions

NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
LIKE_A_NUMBER = re.compile(r"[€$£]? ?[-+]?[0-9][0-9.,' ]*(?: ?[%€$£])?")
"""Numbers with a decimal comma, separators of thousands, signs of units or leading zeros."""
MAX_LISTED = 30  # columns that a message lists
MAX_CELLS = 250_000_000  # of one-hot codes; 2 GB
MIN_ROWS, COMMON_CODES = 20, 0.5  # rows, and share of distinct values, of a column that is probably an identifier

Table = Mapping[str, Sequence[Any]]
"""Cells of each column: text, number, truth value or None."""


@dataclass(frozen=True, slots=True)
class _Feature:
    name: str
    values: FloatArray
    """Numbers, or positions of categories; NaN if missing."""
    categories: tuple[str, ...] | None = None
    """None for a column of numbers."""

    @property
    def is_missing(self) -> BoolArray:
        return np.isnan(self.values)


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
    for path, part in zip(paths[1:], parts[1:], strict=True):
        if part.keys() != parts[0].keys():
            listed = ", ".join(sorted(part.keys() ^ parts[0].keys()))
            raise DataError(f"{paths[0]} and {path} differ in the columns {listed}; remove or rename them in the files")
    place = " and ".join(map(str, paths))
    names = _choose(list(parts[0]), options, place)
    signs = (MISSING | {*options.missing, *map(_number, options.missing)}) - {None}
    columns = [
        Columns(
            [_plain(value, signs) for value in part[options.label]],
            [_plain(value, signs) for value in part[options.group]] if options.group else None,
            name=path.name,
            locate=_locator(path),
        )
        for path, part in zip(paths, parts, strict=True)
    ]
    if options.kind == "regression":
        columns = [replace(part, labels=[_as_target(value) for value in part.labels]) for part in columns]
    reading = Reading(
        f"column {options.label!r}",
        kind="regression" if options.kind == "regression" else "",
        class_names=options.class_names,
        drop_missing=options.drop_missing,
        drop_shared_groups=options.drop_shared_groups,
        other_split="use the validation split as `test_path`",
    )
    kept, fields = select_rows(columns, [False] * sum(len(part.labels) for part in columns), reading)
    features = []
    for name in names:
        feature = _read_feature(name, list(chain.from_iterable(part[name] for part in parts)), options, signs, place)
        features.append(replace(feature, values=feature.values[kept]))
    inputs = _encode(features, options, place)
    labels = np.array(fields.pop("labels"))
    class_names = fields.get("class_names", ())
    identity = [f"{feature.name}: {feature.categories or 'number'}" for feature in features]
    codes = _codes(features) if options.encode == "none" else inputs
    details = {"file": ", ".join(path.name for path in paths), **fields.pop("details")}
    fingerprint = hash_rows(codes, labels, [options.encode, *identity, *class_names])
    return Dataset(inputs, labels, **fields, fingerprint=fingerprint, details=details)


def _locator(path: Path) -> Any:
    return lambda row: f"{path}, row {row + 1}"


def _read(path: Path, options: FileOptions) -> Table:
    """Read all columns of a file."""
    with check_file(path):
        if suffix_of(path) in DELIMITERS:
            head = islice(read_lines(path, options.encoding), SAMPLE)
            dialect = find_dialect(head, DELIMITERS[suffix_of(path)], ('"', "'"), [options.label])
            header = [name.strip() or f"column {number}" for number, name in enumerate(dialect.header, start=1)]
            remedy = "set `encoding` to its own, such as cp1252 or latin-1"
            rows = dialect.read_rows(read_lines(path, options.encoding, remedy=remedy), path)
            cells = list(zip(*(fields for _, fields in rows), strict=True))
        else:
            import pyarrow as pa  # noqa: PLC0415 - pyarrow is optional
            import pyarrow.parquet as pq  # noqa: PLC0415 - as above

            try:
                table = pq.read_table(path)
            except pa.ArrowException as error:
                raise ValueError(error) from error
            header, cells = table.column_names, [column.to_pylist() for column in table.columns]
    for name in header:
        if header.count(name) > 1:
            raise DataError(f"{path}: two columns have the name {name!r}; rename one")
    if not cells or not cells[0]:
        raise DataError(f"{path} has no rows; write the rows into it, or give another path")
    return dict(zip(header, cells, strict=True))


def _choose(names: Sequence[str], options: FileOptions, place: str) -> list[str]:
    """Return the columns of the features; refuse names of columns that do not exist."""
    for name in filter(None, (options.label, options.group, *options.drop, *options.categorical)):
        if name not in names:
            raise DataError(
                f"{place}: no column {name!r}; {ask_for_column(name, names)}available columns: "
                f"{list_names(list(map(short_repr, names)), MAX_LISTED)}"
            )
    chosen = [name for name in names if name not in (options.label, options.group, *options.drop)]
    if not chosen:
        raise DataError(f"{place}: no column is left for the features; shorten `drop`")
    return chosen


def _plain(value: Any, signs: Collection[Any]) -> Any:
    """Return a cell as text, a number or None, the same for Parquet and CSV."""
    if isinstance(value, str):
        value = value.strip()
    elif isinstance(value, bool):
        value = str(value).lower()
    elif value is not None and not isinstance(value, int | float):  # a date or a decimal
        value = str(value)
    if value is None or value != value or value in signs or _number(value) in signs:
        return None
    return value


def _number(cell: Any) -> float | None:
    if isinstance(cell, str):
        return float(cell) if NUMBER.fullmatch(cell) else None
    return float(cell)


def _as_target(value: Any) -> Any:
    """Return a target as a number, if it is one or missing."""
    number = None if value is None else _number(value)
    return value if number is None else number


def _read_feature(
    name: str, cells: Sequence[Any], options: FileOptions, signs: Collection[Any], place: str
) -> _Feature:
    plain = {value: _plain(value, signs) for value in dict.fromkeys(cells)}
    present = [cell for cell in plain.values() if cell is not None]
    if name not in options.categorical:
        numbers = {value: _number(cell) for value, cell in plain.items() if cell is not None}
        others = [cell for cell, number in zip(present, numbers.values(), strict=True) if number is None]
        if not others:
            return _Feature(name, np.array([numbers.get(value, np.nan) for value in cells], dtype=float))
        are_like_numbers = all(LIKE_A_NUMBER.fullmatch(str(cell)) for cell in others)
        if are_like_numbers or 2 * len(others) < len(present):
            raise DataError(
                f"{place}: column {name!r} has numbers, but also {short_repr(str(others[0]))}. Write numbers as "
                f"1234.5, without units; if it stands for a missing value, set `missing` to [{others[0]}]; for codes "
                f"of categories, add {name!r} to `categorical`; or add it to `drop`"
            )
        if len(cells) >= MIN_ROWS and len(present) > COMMON_CODES * len(cells):
            raise DataError(
                f"{place}: column {name!r} has {len(present):,} different values in {len(cells):,} rows, such as "
                "dates, identifiers or free text; add it to `drop`, or to `categorical` if new rows have such values"
            )
    texts = {value: _text(cell) for value, cell in plain.items()}
    categories = tuple(_sort({text for text in texts.values() if text is not None}))
    position: dict[str | None, int] = {text: number for number, text in enumerate(categories)}
    codes = np.array([position.get(texts[value], np.nan) for value in cells], dtype=float)
    return _Feature(name, codes, categories)


def _text(cell: Any) -> str | None:
    if cell is None or isinstance(cell, str):
        return cell
    return key_of(cell) or str(cell)


def _sort(categories: Collection[str]) -> list[str]:
    if all(map(NUMBER.fullmatch, categories)):
        return sorted(categories, key=lambda text: (float(text), text))
    return sorted(categories)


def _codes(features: Sequence[_Feature]) -> FloatArray:
    """Return numbers and positions of categories, NaN if missing: (n, n_columns)."""
    return np.column_stack([feature.values for feature in features])


def _as_column(feature: _Feature) -> Any:
    if feature.categories is None:
        return feature.values
    codes = np.where(feature.is_missing, -1, feature.values).astype(np.int64)
    return pd.Categorical.from_codes(codes, pd.Index(feature.categories))


def _encode(features: Sequence[_Feature], options: FileOptions, place: str) -> Any:
    if options.encode == "ordinal":
        return _codes(features)
    if options.encode == "none":
        return pd.DataFrame({feature.name: _as_column(feature) for feature in features})
    number = sum(len(feature.categories or ()) for feature in features)
    if number * len(features[0].values) > MAX_CELLS:
        raise DataError(f"{place}: one-hot codes would be {number:,} features; set `encode` to ordinal")
    columns: list[Any] = []
    for feature in features:
        column = feature.values[:, None]
        if feature.categories is not None:
            column = column == np.arange(len(feature.categories))
        columns.append(column)
    return np.column_stack(columns).astype(float)
