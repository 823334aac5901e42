"""Turn a table of numbers and categories into the rows of a task.

Categories become features before any set is drawn, with the categories of the whole table in sorted order, or in the
order that the file declares. This depends neither on labels nor on the number of rows of a category, and it is the same
in all arms, so it adds nothing to the difference between arms.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from decimal import Decimal
from difflib import get_close_matches
from reprlib import repr as short_repr
from typing import Any, get_args

import numpy as np
import pandas as pd

from peekbench import DataError, Dataset
from peekbench.data import hash_rows
from peekbench.data.labels import (
    MISSING,
    find_missing,
    group_key,
    name_classes,
    refuse_hidden,
    refuse_missing,
)
from peekbench.formatting import list_names, pluralize, shorten, visible
from peekbench.identity import key_of
from peekbench.records import BoolArray, FloatArray, Split
from peekbench_tabular.options import TableOptions

NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
LIKE_A_NUMBER = re.compile(r"[€$£]? ?[-+]?[0-9][0-9.,' ]*(?: ?[%€$£])?")
"""Numbers with a decimal comma, separators of thousands, signs of units or leading zeros."""
LIKE_A_DATE = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}(?:[T ].*)?|\d{1,4}[./]\d{1,2}[./]\d{1,4}(?:[T ].*)?|\d{1,2}:\d{2}(?::\d{2}.*)?"
)
MAX_LISTED = 30  # columns that a message lists
MAX_SHOWN = 8  # classes or columns that the description of a table lists
MAX_FEATURES, MAX_CELLS = 20_000, 250_000_000  # of one-hot codes; 2 GB
MIN_ROWS = 20  # fewer rows show nothing about a column
COMMON_CODES = 0.5  # share of distinct values of a column that is probably an identifier


@dataclass(frozen=True, slots=True)
class Column:
    """A column as it is read."""

    name: str
    values: Sequence[Any]
    """Text, number, truth value or None for each row."""


@dataclass(frozen=True, slots=True)
class Table:
    """The columns of one file, or of the files of both official splits."""

    columns: Sequence[Column]
    parts: Sequence[tuple[str, int]]
    """Name and number of rows of each file."""

    @property
    def place(self) -> str:
        """Names of the files, for messages."""
        return " and ".join(name for name, _ in self.parts)

    @property
    def splits(self) -> tuple[Split, ...]:
        """Split of each row; empty if there is one file."""
        if len(self.parts) == 1:
            return ()
        (_, num_train), (_, num_test) = self.parts
        train, test = get_args(Split)
        return (train,) * num_train + (test,) * num_test

    def locate(self, row: int) -> str:
        """Return the file and the number of a row, counted from 1, for messages."""
        for name, number in self.parts:
            if row < number:
                return f"{name}, row {row + 1}"
            row -= number
        raise IndexError(row)


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


def make_dataset(table: Table, options: TableOptions, details: Mapping[str, Any]) -> Dataset:
    """Return the rows of a table as those of a task.

    Parameters
    ----------
    table
        Columns as they are read.
    options
        Which columns are features, and how categories are encoded; `label` is not None.
    details
        Facts about the data; the number of dropped rows, a description and warnings are added.

    Raises
    ------
    DataError
        If a column is missing, has values that are neither numbers nor categories, or a label is missing.
    """
    chosen = _choose(table, options)
    label = next(column for column in table.columns if column.name == options.label)
    signs = (MISSING | {*options.missing, *map(_number, options.missing)}) - {None}
    keys, missing, targets = _read_labels(table, label, options, signs)
    groups = _read_groups(table, options, signs)
    is_kept = np.array([key not in missing for key in keys])
    if groups:
        is_kept &= np.array(groups) != ""
    dropped = {"missing": int((~is_kept).sum())}
    if options.drop_shared_groups and not table.splits:
        raise DataError(f"{table.place}: drop_shared_groups is True, but there is no test split; remove it")
    if options.drop_shared_groups:
        of_test = {group for group, split in zip(groups, table.splits, strict=True) if split == "test"}
        is_shared = [group in of_test and split == "train" for group, split in zip(groups, table.splits, strict=True)]
        dropped["group of the test split"] = int((is_kept & is_shared).sum())
        is_kept &= ~np.array(is_shared)
    kept = np.flatnonzero(is_kept)
    features = [_read_feature(table, column, options, signs) for column in chosen]
    features = [replace(feature, values=feature.values[kept]) for feature in features]
    class_names: tuple[str, ...] = ()
    labels: Any = targets[kept]
    if options.kind == "classification":
        counts = Counter(keys[row] for row in kept)
        class_names, positions = name_classes(counts, options.class_names, table.place)
        labels = np.array([positions[keys[row]] for row in kept], dtype=np.int64)
    inputs = _encode(features, options, table.place)
    identity = [f"{feature.name}: {feature.categories or 'number'}" for feature in features]
    frame = inputs
    if isinstance(frame, pd.DataFrame):
        frame = _codes(features)
    splits = tuple(table.splits[row] for row in kept) if table.splits else ()
    for split, (name, _) in zip(get_args(Split), table.parts, strict=False):
        if splits and split not in splits:
            raise DataError(f"{name}: no row is left for the {split} split; add rows, or give another file")
    return Dataset(
        inputs,
        labels,
        class_names,
        options.kind,
        fingerprint=hash_rows(frame, labels, [options.encode, *identity, *class_names]),
        details={
            **details,
            "dropped": dropped,
            "contents": "; ".join(_describe(features, labels, class_names, inputs)),
            "warnings": list(_find_doubtful(features)),
        },
        splits=splits,
        groups=tuple(groups[row] for row in kept) if groups else (),
    )


def _choose(table: Table, options: TableOptions) -> list[Column]:
    """Return the columns of the features; refuse names of columns that do not exist."""
    names = [column.name for column in table.columns]
    doubled = [name for name, number in Counter(names).items() if number > 1]
    if doubled:
        raise DataError(f"{table.place}: two columns have the name {doubled[0]!r}; rename one")
    named: dict[str, tuple[str, ...]] = {
        "label": (str(options.label),),
        "group": tuple(filter(None, (options.group,))),
        "columns": options.columns,
        "drop": options.drop,
        "categorical": options.categorical,
    }
    for option, listed in named.items():
        for name in listed:
            if name not in names:
                close = get_close_matches(name[:100], names, n=1, cutoff=0.5)
                hint = f"did you mean {close[0]!r}? " if close else ""
                raise DataError(
                    f"{table.place}: no column {name!r}, which `{option}` names; {hint}available columns: "
                    f"{list_names(list(map(short_repr, names)), MAX_LISTED)}"
                )
    chosen = [
        column
        for column in table.columns
        if column.name not in (options.label, options.group)
        and column.name not in options.drop
        and (not options.columns or column.name in options.columns)
    ]
    if not chosen:
        raise DataError(f"{table.place}: no column is left for the features; shorten `drop`")
    return chosen


# Labels


def _read_labels(
    table: Table, label: Column, options: TableOptions, signs: Collection[Any]
) -> tuple[list[str], set[str], FloatArray]:
    """Return the label of each row as text, the labels that stand for a missing one, and the targets."""
    keys: list[str] = []
    for row, value in enumerate(label.values):
        plain = _plain(value, signs)
        key = key_of(plain)
        if options.kind == "regression":
            key = "" if plain is None else str(plain)
        if key is None or isinstance(plain, date | time):
            raise DataError(
                f"{table.locate(row)}: the label {short_repr(value)} is neither text nor a whole number; for a number "
                "to predict, set `kind` to regression"
            )
        keys.append(key)
    counts = Counter(keys)
    missing = {""}
    if options.kind == "classification":
        _refuse_numbers(table, label, counts)
        missing = {*find_missing(counts, options.class_names)}
        for (name, number), start in zip(table.parts[1:], [table.parts[0][1]], strict=False):
            remedy = "use the validation split as `test_path`"
            refuse_hidden(keys[start : start + number], counts, options.class_names, name, remedy)
    first = next((table.locate(row) for row, key in enumerate(keys) if key in missing), "")
    if first and not options.drop_missing and options.kind == "classification":
        refuse_missing(counts, options.class_names, f"column {label.name!r}", first=first)
    if first and not options.drop_missing:
        raise DataError(
            f"{first}: no target in column {label.name!r}, as in {pluralize(counts[''], 'row')}; add targets, or set "
            "`drop_missing` to True to drop such rows"
        )
    targets: FloatArray = np.zeros(len(keys))
    if options.kind == "regression":
        column = Column(label.name, [None if key in missing else key for key in keys])
        feature = _read_feature(table, column, options, signs)
        if feature.categories is not None:
            raise DataError(
                f"{table.place}: column {label.name!r} has values such as {feature.categories[0]!r}, but `kind` is "
                "regression; set it to classification, or name another column as `label`"
            )
        targets = feature.values
    return keys, missing, targets


def _refuse_numbers(table: Table, label: Column, counts: Mapping[str, int]) -> None:
    """Refuse fractions as classes."""
    numbers = [key for key in counts if NUMBER.fullmatch(key)]
    fraction = next((key for key in numbers if not float(key).is_integer()), "")
    if fraction and len(numbers) == len([key for key in counts if key]):
        raise DataError(
            f"{table.place}: column {label.name!r} has numbers such as {fraction}, which are no classes; set `kind` to "
            "regression"
        )


def _read_groups(table: Table, options: TableOptions, signs: Collection[Any]) -> list[str]:
    """Return the group of each row, empty if it is missing and such rows are dropped; no list without groups."""
    groups = []
    for row, value in enumerate(
        value for column in table.columns if column.name == options.group for value in column.values
    ):
        group = group_key(_plain(value, signs), f"{table.locate(row)}, column {options.group!r}")
        if not group and not options.drop_missing:
            raise DataError(
                f"{table.locate(row)}: no group in column {options.group!r}; add one, or set `drop_missing` to True to "
                "drop such rows"
            )
        groups.append(group)
    return groups


# Features


def _plain(value: Any, signs: Collection[Any]) -> Any:
    """Return a cell as text, a number, a date or None, the same for Parquet and CSV."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        value = value.strip()
    elif isinstance(value, bool):
        value = str(value).lower()
    elif isinstance(value, Decimal):
        value = float(value)
    if value is None or value != value or str(value) in signs or _number(value) in signs:
        return None
    return value


def _read_feature(table: Table, column: Column, options: TableOptions, signs: Collection[Any]) -> _Feature:
    plain = {value: _plain(value, signs) for value in _distinct(table, column)}
    values = [value for value in plain.values() if value is not None]
    if column.name not in options.categorical:
        _refuse_dates(table, column.name, values)
        numbers = {value: number for value, cell in plain.items() if (number := _number(cell)) is not None}
        present = [value for value, cell in plain.items() if cell is not None]
        if len(numbers) == len(present):
            _refuse_infinite(table, column.name, numbers.values())
            return _Feature(column.name, np.array([numbers.get(value, np.nan) for value in column.values], dtype=float))
        _refuse_notations(table, column, [value for value in present if value not in numbers], len(numbers))
    texts = {value: None if cell is None else _text(table, column.name, cell) for value, cell in plain.items()}
    categories = tuple(_sort({text for text in texts.values() if text is not None}))
    position: dict[str | None, int] = {name: number for number, name in enumerate(categories)}
    codes = np.array([position.get(texts[value], np.nan) for value in column.values], dtype=float)
    return _Feature(column.name, codes, categories)


def _distinct(table: Table, column: Column) -> dict[Any, None]:
    try:
        return dict.fromkeys(column.values)
    except TypeError:  # a list or a dictionary
        row = next(row for row, value in enumerate(column.values) if value.__hash__ is None)
        raise DataError(
            f"{table.locate(row)}: {short_repr(column.values[row])} in column {column.name!r} is neither a number nor "
            "a category; add the column to `drop`"
        ) from None


def _number(cell: Any) -> float | None:
    if isinstance(cell, str):
        return float(cell) if NUMBER.fullmatch(cell) else None
    return float(cell) if isinstance(cell, int | float | np.number) else None


def _text(table: Table, name: str, cell: Any) -> str:
    text = cell if isinstance(cell, str) else key_of(cell) or str(cell)
    if not text.isprintable() and visible(text) != text:
        raise DataError(
            f"{table.place}: column {name!r} has the category {short_repr(text)} with control characters, so it is "
            "probably free text; add the column to `drop`"
        )
    return text


def _sort(categories: Collection[str]) -> list[str]:
    if all(map(NUMBER.fullmatch, categories)):
        return sorted(categories, key=lambda text: (float(text), text))
    return sorted(categories)


def _refuse_dates(table: Table, name: str, values: Sequence[Any]) -> None:
    dates = [
        value
        for value in values
        if isinstance(value, date | datetime | time) or (isinstance(value, str) and LIKE_A_DATE.fullmatch(value))
    ]
    if dates and len(dates) == len(values):
        raise DataError(
            f"{table.place}: column {name!r} has dates or times such as {dates[0]}, which are neither numbers nor "
            "categories; add it to `drop`, or store what matters of them as numbers, such as the year"
        )


def _refuse_infinite(table: Table, name: str, numbers: Collection[float]) -> None:
    if not all(map(np.isfinite, numbers)):
        raise DataError(f"{table.place}: column {name!r} has infinite numbers; replace them, or leave them empty")


def _refuse_notations(table: Table, column: Column, others: Sequence[Any], num_numbers: int) -> None:
    """Refuse a column of numbers in which some are written in another way, or are no numbers."""
    name, first = column.name, others[0]
    shown = f"{short_repr(str(first))} ({table.locate(list(column.values).index(first))})"
    if all(isinstance(value, str) and LIKE_A_NUMBER.fullmatch(value.strip()) for value in others):
        raise DataError(
            f"{table.place}: column {name!r} has {shown}, which is a number in another notation, or a code. Write "
            f"numbers as 1234.5, without units, or set `decimal` to ','; for codes, add {name!r} to `categorical`"
        )
    if num_numbers > len(others):
        listed = ", ".join(short_repr(str(value)) for value in others[:3])
        raise DataError(
            f"{table.place}: column {name!r} has numbers, but also {shown}. If it stands for a missing value, set "
            f"`missing` to [{listed}]; for codes of categories, add {name!r} to `categorical`; or add it to `drop`"
        )


def _codes(features: Sequence[_Feature]) -> FloatArray:
    """Return numbers and positions of categories, NaN if missing: (n, n_columns)."""
    return np.column_stack([feature.values for feature in features])


def _as_column(feature: _Feature) -> Any:
    if feature.categories is None:
        return feature.values
    codes = np.where(feature.is_missing, -1, feature.values).astype(np.int64)
    return pd.Categorical.from_codes(codes, pd.Index(feature.categories))


def _encode(features: Sequence[_Feature], options: TableOptions, place: str) -> Any:
    if options.encode == "ordinal":
        return _codes(features)
    if options.encode == "none":
        return pd.DataFrame({feature.name: _as_column(feature) for feature in features})
    sizes = {feature.name: len(feature.categories or ()) for feature in features}
    number, num_rows = sum(sizes.values()), len(features[0].values)
    if number > MAX_FEATURES or number * num_rows > MAX_CELLS:
        worst = max(sizes, key=lambda name: sizes[name])
        raise DataError(
            f"{place}: one-hot codes of {num_rows:,} rows would be {number:,} features, of which {worst!r} has "
            f"{sizes[worst]:,}; add it to `drop`, or set `encode` to ordinal"
        )
    columns: list[Any] = []
    for feature in features:
        column = feature.values[:, None]
        if feature.categories is not None:
            column = column == np.arange(len(feature.categories))
        columns.append(column)
    return np.column_stack(columns).astype(float)


# Descriptions


def _describe(features: Sequence[_Feature], labels: Any, class_names: Sequence[str], inputs: Any) -> Iterator[str]:
    """Yield clauses on rows, classes, columns and missing values."""
    rows = pluralize(len(labels), "row")
    if class_names:
        counts = np.bincount(labels, minlength=len(class_names))
        listed = list_names([f"{name} {count:,}" for name, count in zip(class_names, counts, strict=True)], MAX_SHOWN)
        yield f"{rows} of {pluralize(len(class_names), 'class', 'classes')} ({listed})"
    else:
        yield f"{rows} with targets from {labels.min():g} to {labels.max():g}"
    numbers = [feature.name for feature in features if feature.categories is None]
    others = [f"{feature.name} {len(feature.categories)}" for feature in features if feature.categories is not None]
    columns = []
    if numbers:
        columns.append(f"{pluralize(len(numbers), 'column')} of numbers")
    if others:
        columns.append(f"{len(others)} of categories ({list_names(others, MAX_SHOWN)})")
    yield f"{' and '.join(columns)}, as {pluralize(inputs.shape[1], 'feature')}"
    missing = {feature.name: int(feature.is_missing.sum()) for feature in features}
    affected = [f"{name} {count:,}" for name, count in missing.items() if count]
    if affected:
        yield f"{sum(missing.values()):,} missing values ({list_names(affected, MAX_SHOWN)})"
    else:
        yield "no missing values"


def _find_doubtful(features: Sequence[_Feature]) -> Iterator[str]:
    """Yield sentences on columns that are constant or like identifiers."""
    num_rows = len(features[0].values)
    if num_rows < MIN_ROWS:
        return
    for feature in features:
        name, present = shorten(visible(repr(feature.name)), 60), feature.values[~feature.is_missing]
        num_distinct = len(np.unique(present))
        is_whole = feature.categories is None and bool((present % 1 == 0).all())
        is_counter = is_whole and num_distinct == num_rows == np.ptp(present) + 1
        if num_distinct <= 1 and len(present) == num_rows:
            yield f"Column {name} is constant, so it tells methods nothing: add it to `drop`"
        elif not len(present):
            yield f"Column {name} has no values: add it to `drop`"
        elif is_counter or (feature.categories is not None and num_distinct > COMMON_CODES * len(present)):
            yield (
                f"Column {name} has {num_distinct:,} different values in {num_rows:,} rows, like an identifier or free "
                "text: add it to `drop` unless new rows would have such values"
            )
