"""Reads the inputs of rows that users hold: texts, arrays and data frames of features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from peekbench.data.held_labels import as_array
from peekbench.data.labels import read_reference
from peekbench.data.loading import hash_rows
from peekbench.data.overlap import number_copies
from peekbench.data.texts import keep_first
from peekbench.errors import DataError
from peekbench.formatting import pluralize, shorten
from peekbench.plugins.estimators import accepts_missing, accepts_strings, selected_columns
from peekbench.plugins.protocols import is_estimator
from peekbench.records import Dataset, IntArray, TaskKind

GENERATION: TaskKind = "generation"
Likeness: TypeAlias = Literal["none", "exact", "near"]


def read_inputs(inputs: Any, name: str, method: Any, *, drop_missing: bool) -> Any:
    """Return texts as a tuple, and features as an array or, for an estimator, as the data frame that they are.

    Parameters
    ----------
    inputs
        A list, a series or an array of texts; or an array or a data frame of features, (n, n_features).
    name
        Name of the data, for messages.
    method
        The method. An estimator decides which columns are read, and whether values may be missing.
    drop_missing
        Whether rows without a text are dropped later.

    Raises
    ------
    DataError
        If they are neither, or values are missing.

    Examples
    --------
    >>> read_inputs(["It crashes."], "tickets", None, drop_missing=False)
    ('It crashes.',)
    """
    if hasattr(inputs, "toarray"):
        raise DataError(
            f"{name}: X is sparse. If its rows are texts, give the texts and put the vectorizer into the "
            "pipeline, since a vectorizer that has seen all texts hides what peekbench measures; otherwise give "
            "X.toarray()"
        )
    is_own = is_estimator(method)
    if hasattr(inputs, "to_pandas"):
        inputs = inputs.to_pandas()
    selected, sees_others = selected_columns(method) if is_own else ([], True)
    _check_selected(name, selected, list(getattr(inputs, "columns", ())))
    if isinstance(inputs, pd.DataFrame):
        others = inputs.columns[[dtype.kind not in "biuf" for dtype in inputs.dtypes]]
        for column in () if is_own and accepts_strings(method) else others:
            encoder = f"((OneHotEncoder(handle_unknown='ignore'), [{column!r}]), remainder=StandardScaler())"
            raise DataError(
                f"{name}: column {column!r} of X is {inputs[column].dtype}, not numbers; give "
                f"X[{column!r}] if it has the texts, or begin with make_column_transformer{encoder}"
            )
        if is_own:
            seen = inputs if sees_others else inputs[selected]
            numbers = seen.drop(columns=others, errors="ignore").to_numpy(np.float64, na_value=np.nan)
            _check_numbers(numbers, name, method)
            return inputs
    array = as_array(inputs)
    if array.ndim == 1 and array.dtype.kind not in "biuf":
        texts = tuple(array.tolist())
        if not drop_missing:
            refuse_missing_values(name, "no text", find_blank(texts), ", or set drop_missing=True")
        return texts
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise DataError(
            f"{name}: X has shape {array.shape} and the type {array.dtype}; give a list of texts, or numbers "
            "of shape (n, n_features)"
        )
    array = array.astype(np.float64)
    _check_numbers(array, name, method)
    return array


def _check_selected(name: str, selected: Sequence[str], present: Sequence[Any]) -> None:
    for column in (column for column in selected if column not in present):
        columns = f"has only {shorten(', '.join(map(str, present)), 200)}; rename one, or select others"
        raise DataError(
            f"{name}: the ColumnTransformer selects {column!r}, but X "
            + (columns if present else "has no names; give a data frame, or select columns by number")
        )


def _check_numbers(array: Any, name: str, method: Any) -> None:
    if is_estimator(method) and not accepts_missing(method):
        remedy = ", or put SimpleImputer() first in the pipeline"
        refuse_missing_values(name, "a missing or infinite value", ~np.isfinite(array).all(axis=1), remedy)


def refuse_missing_values(name: str, what: str, is_missing: Any, remedy: str = "") -> None:
    """Refuse rows that miss a value, and name the first one."""
    if is_missing.any():
        raise DataError(
            f"{name}: row {int(is_missing.argmax())} has {what}; drop or fill "
            f"{pluralize(int(is_missing.sum()), 'row')}{remedy}"
        )


def check_kind(name: str, options: Mapping[str, Any]) -> None:
    """Refuse unknown kinds, and options of classes for references.

    Raises
    ------
    DataError
        If the options `kind` and others contradict each other.
    """
    kind = options.get("kind", "")
    if kind not in ("", GENERATION):
        raise DataError(f"{name}: kind is {kind!r}; use {GENERATION!r}, or leave it out for classes, labels or numbers")
    useless = [option for option in ("class_names", "label_separator") if options.get(option)]
    if kind and (useless or not isinstance(options.get("label", ""), str)):
        useless = useless or ["all but one column of `label`"]
        raise DataError(f"{name}: kind is {kind!r}, which has no classes; leave out {', '.join(useless)}")


def read_references(
    labels: Any, name: str, names: Sequence[str] | None, *, drop_missing: bool
) -> tuple[Any, Callable[[list[int], Any], dict[str, Any]]]:
    """Return whether the reference of each row is missing, and a function that returns those of selected rows.

    Parameters
    ----------
    labels
        Texts, numbers, or lists or arrays of them.
    name
        Name of the task, for messages.
    names
        Names of the codes of a ClassLabel, of which -1 has none.
    drop_missing
        Whether rows without a reference are dropped. Otherwise, they are an error.

    Raises
    ------
    DataError
        If a reference is of another type, or missing.
    """
    by_code: dict[Any, str | None] = {}
    if names:
        by_code = {**dict(enumerate(names)), -1: None}
    values = map(_as_plain, labels)
    named = (by_code.get(value, value) if isinstance(value, int) else value for value in values)
    references = [read_reference(value, f"{name}, row {row}") for row, value in enumerate(named)]
    is_missing = np.array([not reference for reference in references], dtype=bool)
    if not drop_missing:
        refuse_missing_values(name, "no reference", is_missing)
    return is_missing, lambda kept, _: {"labels": [references[row] for row in kept], "kind": GENERATION}


def _as_plain(value: Any) -> Any:
    """Return a value of pandas or numpy as one of Python."""
    if value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, list | tuple):
        return [*map(_as_plain, value)]
    if isinstance(value, np.ndarray):
        return _as_plain(value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    return value


def check_columns(train: Any, test: Any, name: str) -> None:
    """Refuse features of official splits that have other columns, which would be missing values of each other.

    Raises
    ------
    DataError
        If a column is only in one of the splits, or arrays differ in width.
    """
    if isinstance(train, pd.DataFrame):
        for one, other, places in ((train, test, ("train", "test")), (test, train, ("test", "train"))):
            for column in one.columns.difference(other.columns, sort=False):
                raise DataError(
                    f"{name}: {places[0]} has the column {column!r}, but {places[1]} does not; rename, add or drop it"
                )
    elif np.ndim(train) == 2 and np.shape(train)[1] != np.shape(test)[1]:
        raise DataError(
            f"{name}: train has {np.shape(train)[1]:,} features, but test has {np.shape(test)[1]:,}; give the same ones"
        )


def join_inputs(parts: Sequence[Any]) -> Any:
    """Return the rows of several inputs of the same type."""
    if isinstance(parts[0], pd.Series | pd.DataFrame):
        return pd.concat(parts, ignore_index=True)
    if isinstance(parts[0], list | tuple):
        return [row for part in parts for row in part]
    return np.concatenate(parts)


def find_blank(texts: Sequence[Any]) -> Any:
    """Return whether each row has no text, as the data source `files` decides it."""
    return np.array([not isinstance(text, str) or not text.strip() for text in texts])


def identify(dataset: Dataset) -> Dataset:
    """Return a data set with a fingerprint if its inputs are a data frame, of which types and names count."""
    frame: Any = dataset.inputs
    if not isinstance(frame, pd.DataFrame):
        return dataset
    rows = pd.util.hash_pandas_object(frame, index=False, categorize=False).astype(str).tolist()
    extra: Any = dataset.extra
    if len(extra):
        hashes = pd.util.hash_pandas_object(extra, index=False, categorize=False).astype(str).tolist()
        rows[0] += hash_rows(hashes, [""] * len(hashes))
    columns = [f"{name}: {dtype}" for name, dtype in frame.dtypes.items()]
    return replace(dataset, fingerprint=hash_rows(rows, dataset.labels, [*columns, *dataset.class_names]))


def is_hugging_face(data: Any) -> bool:
    """Return whether data are of the library `datasets`."""
    return type(data).__module__.partition(".")[0] == "datasets"


def official_splits(data: Mapping[str, Any], test_split: str, name: str) -> dict[str, Any]:
    """Return the official splits of a `DatasetDict`."""
    if test_split != "train" and {"train", test_split} <= data.keys():
        return {"train": data["train"], "test": data[test_split]}
    others = sorted((split for split in data if split != "train"), key=lambda split: split != test_split)
    remedy = f"give one split, as in data[{next(iter(data), 'train')!r}]"
    if others and "train" in data:
        remedy = f"set test_split={others[0]!r}"
    elif len(others) > 1:  # such as train_clean
        first = next((split for split in others if str(split).startswith("train")), others[-1])
        other = next(split for split in others if split != first)
        remedy = f"give two of them, as in train=data[{first!r}], test=data[{other!r}]"
    needed = test_split
    if test_split == "train":
        needed = "another one"
    raise DataError(f"{name}: its splits are {', '.join(map(str, data))}, but train and {needed} are needed; {remedy}")


def take_rows(rows: Any, kept: Any) -> Any:
    """Return some rows of a data frame or an array."""
    return rows.iloc[kept] if isinstance(rows, pd.DataFrame) else rows[kept]


def drop_copies(dataset: Dataset, likeness: Likeness, name: str) -> Dataset:
    """Return the first row of each group of copies, or none if their labels differ.

    Raises
    ------
    DataError
        If the likeness is none of 'none', 'exact' and 'near'.
    """
    if likeness == "none":
        return dataset
    if likeness != "exact" and likeness != "near":
        raise DataError(f"{name}: drop_duplicates is {likeness!r}; use 'none', 'exact' or 'near'")
    groups: IntArray = np.array(number_copies(dataset, likeness), dtype=np.int64)
    values: Any = dataset.labels
    if isinstance(values, np.ndarray):
        values = values.tolist()
    labels = np.unique([repr(value) for value in values], return_inverse=True)[1]
    kept: list[int] = np.flatnonzero(keep_first(groups[: len(labels)], labels)).tolist()
    extra: list[int] = np.flatnonzero(groups[len(labels) :] == np.arange(len(labels), len(groups))).tolist()
    dropped = {**dataset.details["dropped"], "duplicate": len(groups) - len(kept) - len(extra)}
    rows = {field: _take(getattr(dataset, field), kept) for field in ("inputs", "labels", "splits", "groups")}
    return replace(dataset, **rows, extra=_take(dataset.extra, extra), details={**dataset.details, "dropped": dropped})


def _take(values: Any, kept: Sequence[int]) -> Any:
    if isinstance(values, Sequence):
        return tuple(values[row] for row in kept if values)
    return take_rows(values, kept)
