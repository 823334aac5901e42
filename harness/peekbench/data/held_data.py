"""Reads what users hold as the rows of a task: data frames, arrays, data sets of Hugging Face, functions of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from peekbench.data.labels import ClassNames, is_label_set, read_indicators
from peekbench.data.loading import fingerprint, hash_rows
from peekbench.data.overlap import drop_copies, take_rows
from peekbench.data.rows import TEST, TRAIN, Columns, Reading, select_rows
from peekbench.errors import DataError
from peekbench.formatting import pluralize, shorten, visible
from peekbench.identity import key_of
from peekbench.plugins.estimator_parts import tags_of
from peekbench.plugins.names import ask_for_column
from peekbench.plugins.protocols import is_estimator
from peekbench.records import Dataset
from peekbench.records.data import OfficialSplits

HELD = (
    "names of tasks, a data frame, (texts, labels), (X, y), (X, y, groups), a data set of Hugging Face, the folder of "
    "its `save_to_disk`, a function that returns one of these, or a dictionary of them by name"
)


def read_held(data: Any, name: str, methods: Sequence[Any], **options: Any) -> Dataset:
    """Return data in memory as the rows of a task, which all methods read in the same way.

    Parameters
    ----------
    data
        A data frame, a pair of inputs and labels, a data set of Hugging Face, or a function that returns one of them.
    name
        Name of the task, for messages.
    methods
        The methods. An estimator decides whether labels are classes or numbers; for others, floats are numbers.
    **options
        `text`, `label`, `label_separator`, `group`, `class_names`, `drop_missing`, `drop_shared_groups`,
        `drop_duplicates`, `test_split` and `kind`, as options of the data source `files`.

    Raises
    ------
    DataError
        If data have none of these forms, values are missing, or they do not suit a method.

    Examples
    --------
    >>> read_held((["It crashes.", "How do I log in?"], ["bug", "question"]), "tickets", [None]).class_names
    ('bug', 'question')
    """
    data = data() if callable(data) else data
    if isinstance(data, Dataset) and options:
        raise DataError(
            f"{name}: a Dataset has its texts and classes; change it instead of setting {', '.join(options)}"
        )
    allowed = {"kind": ("", "generation"), "drop_duplicates": ("none", "exact", "near")}
    for option, values in allowed.items():
        if options.get(option, values[0]) not in values:
            raise DataError(f"{name}: {option} is {options[option]!r}; use one of {', '.join(map(repr, values))}")
    class_names = options.get("class_names")
    if isinstance(class_names, Mapping):
        options["class_names"] = {key_of(key) or "": str(value) for key, value in class_names.items()}
    first, *others = (_Reader(name, method, **options).read(data) for method in methods)
    for number, dataset in enumerate(others, start=1):
        if (dataset.kind, fingerprint(dataset)) != (first.kind, fingerprint(first)):
            one, two = (
                getattr(methods[position], "__name__", type(methods[position]).__name__.lower())
                for position in (0, number)
            )
            raise DataError(
                f"{name}: {one} and {two} read it differently, such as classes and numbers; measure them in two calls"
            )
    return first


class _Part(NamedTuple):
    """All rows, or those of a split."""

    inputs: Any
    labels: Any
    groups: Any = None
    code_names: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class _Reader:
    name: str
    method: Any
    text: str = "text"
    label: str | Sequence[str] = "label"
    label_separator: str = ""
    group: str | None = None
    class_names: ClassNames = None
    drop_missing: bool = False
    drop_shared_groups: bool = False
    drop_duplicates: str = "none"
    test_split: str = TEST
    kind: str = ""

    def read(self, data: Any) -> Dataset:
        if isinstance(data, Dataset):
            return data
        parts, extra = [data], None
        if isinstance(data, OfficialSplits):
            parts, extra = [data.train, data.test], data.extra
        elif _is_hugging_face(data) and isinstance(data, Mapping):
            if self.test_split == TRAIN or not {TRAIN, self.test_split} <= data.keys():
                raise DataError(
                    f"{self.name}: its splits are {', '.join(map(str, data))}, but train and {self.test_split} are "
                    "needed; set `test_split` to another one, or give two of them as `train` and `test`"
                )
            parts = [data[TRAIN], data[self.test_split]]
        elif self.test_split != TEST:
            raise DataError(f"{self.name}: test_split names a split of a DatasetDict, but these rows have none")
        pairs = [self._read_part(part() if callable(part) else part) for part in parts]
        inputs = [read_inputs(pair.inputs, self.name, self.method) for pair in pairs]
        rows = _join(inputs, self.name)
        is_blank = [False] * len(rows)
        if isinstance(rows, tuple):
            is_blank = [_is_blank(text) for text in rows]
        labels, class_names, kind = self._read_labels(pairs)
        for part, own in zip(inputs, labels, strict=True):
            if len(part) != len(own):
                raise DataError(
                    f"{self.name}: {pluralize(len(part), 'row')}, but labels of shape {np.shape(own)}; give one label "
                    "for each row, as an array of shape (n,), or 0 or 1, of shape (n, n_labels)"
                )
        names = [TRAIN, TEST] if len(pairs) > 1 else [""]
        columns = [
            Columns(own, self._read_groups(pair), pair.code_names, name, partial(self._locate, name))
            for pair, own, name in zip(pairs, labels, names, strict=True)
        ]
        reading = Reading(
            self.name,
            kind=kind,
            class_names=class_names,
            separator=self.label_separator,
            sorts_texts=True,
            drop_missing=self.drop_missing,
            drop_shared_groups=self.drop_shared_groups,
            other_split="use the validation split, with test_split='validation'",
        )
        kept, fields = select_rows(columns, is_blank, reading)
        dataset = Dataset(take_rows(rows, kept), **fields)
        if extra is not None:
            dataset = replace(dataset, extra=self._read_extra(extra() if callable(extra) else extra, dataset))
        return identify(drop_copies(dataset, self.drop_duplicates))

    def _locate(self, split: str, row: int) -> str:
        return f"{self.name} {split}".strip() + f": row {row}"

    def _read_part(self, data: Any) -> _Part:
        """Return the inputs, labels and groups of all rows, or of those of a split."""
        label = self.label if isinstance(self.label, str) else list(self.label)
        code_names = None
        if _is_hugging_face(data) and data.features is None:
            data = list(data)  # a stream
        if _is_hugging_face(data):
            feature = data.features.get(label) if isinstance(label, str) else None
            code_names = getattr(getattr(feature, "feature", feature), "names", None)  # of a label, or of a list
        frame = as_frame(data)
        if isinstance(frame, pd.DataFrame):
            wanted = [self.text, *([label] if isinstance(label, str) else label), *filter(None, [self.group])]
            self._check_columns(wanted, list(frame.columns))
            part = _Part(frame[self.text], frame[label], frame.get(self.group), code_names)
        elif isinstance(data, tuple) and len(data) in (2, 3) and self.group is None:
            part = _Part(*data)
        else:
            raise DataError(
                f"{self.name}: cannot read an object of the type {type(data).__name__}; data are {HELD}. The option "
                "`group` is for data frames"
            )
        for name, values in (("y", part.labels), ("groups", part.groups)):
            self._refuse_reordered(part.inputs, values, name)
        return part

    def _check_columns(self, wanted: Sequence[str], present: Sequence[Any]) -> None:
        for column in wanted:
            if present.count(column) != 1 or wanted.count(column) > 1:
                hint = ask_for_column(column, map(str, present)) if column not in present else ""
                raise DataError(
                    f"{self.name}: text, label and group are the columns {', '.join(map(repr, wanted))}, but it has "
                    f"{present.count(column)} named {column!r}; {hint}name one column each as `text`, `label` and "
                    f"`group`, or give (X, y). Its columns are {shorten(visible(', '.join(map(str, present))), 200)}"
                )

    def _read_labels(self, parts: Sequence[_Part]) -> tuple[list[Any], ClassNames, str]:
        """Return the labels of the rows of each part, the names of the classes, and the kind of the task."""
        found = [_find_indicators(part.labels) for part in parts]
        if all(indicators is not None for indicators in found):
            names = getattr(parts[0].labels, "columns", self.class_names)
            if names is None:
                if all((indicators.sum(axis=1) == 1).all() for indicators in found):
                    raise DataError(
                        f"{self.name}: each row of the labels has exactly one 1; for classes, give y.argmax(axis=1); "
                        "for a multi-label task, name the labels with class_names"
                    )
                names = range(found[0].shape[1])
            names = [str(name) for name in names]
            sets = [
                [
                    read_indicators(row, names, self._locate("", number))
                    for number, row in enumerate(indicators.tolist())
                ]
                for indicators in found
            ]
            return list(sets), self.class_names or names, ""
        values = [_as_series(part.labels) for part in parts]
        if self.kind:
            if self.class_names or self.label_separator:
                raise DataError(f"{self.name}: {self.kind} has no classes; leave out class_names and label_separator")
            return [[_as_plain(value) for value in own] for own in values], None, self.kind
        joined = pd.concat(values, ignore_index=True).infer_objects()
        kind = ""
        estimator = tags_of(self.method).estimator_type
        if estimator == "regressor" or (estimator is None and joined.dtype.kind == "f"):
            kind = "regression"
        ends = np.cumsum([len(own) for own in values])[:-1]
        labels = [joined.tolist()[start:stop] for start, stop in zip((0, *ends), (*ends, None), strict=True)]
        return labels, self.class_names, kind

    def _read_groups(self, part: _Part) -> list[Any] | None:
        if part.groups is None:
            return None
        if np.shape(part.groups) != (len(part.inputs),):
            raise DataError(
                f"{self.name}: {pluralize(len(part.inputs), 'row')}, but groups of shape {np.shape(part.groups)}; give "
                "one for each"
            )
        groups: list[Any] = _as_series(part.groups).infer_objects().tolist()
        return groups

    def _read_extra(self, extra: Any, dataset: Dataset) -> Any:
        """Return private texts or features in the form of other inputs, without labels if they are given."""
        name, groups = f"{self.name}, extra", None
        if isinstance(extra, tuple) and len(extra) in (2, 3) and not isinstance(extra[0], str):
            extra, _, groups = (*extra, None)[:3]
        frame = as_frame(extra)
        if isinstance(frame, pd.DataFrame):
            columns = [self.text]
            if dataset.input_kind == "features":
                columns = list(getattr(dataset.inputs, "columns", frame.columns))
            self._check_columns(columns, list(frame.columns))
            groups = frame.get(self.group, groups)
            extra = frame[columns]
            if dataset.input_kind == "texts":
                extra = frame[self.text]
        rows = read_inputs(extra, name, self.method)
        _join([take_rows(dataset.inputs, [0]), rows], name)  # which refuses other forms
        for group in {*map(key_of, _as_series(groups))} & {*dataset.groups} if groups is not None else ():
            raise DataError(
                f"{name}: it has rows of the group {shorten(repr(group), 40)}, which is in train or test, so they are "
                "not independent; drop them"
            )
        if isinstance(rows, tuple):
            if any(map(_is_blank, rows)) and not self.drop_missing:
                raise DataError(f"{name}: a row has no text; drop it, or set `drop_missing` to True")
            rows = tuple(text for text in rows if not _is_blank(text))
        return rows

    def _refuse_reordered(self, inputs: Any, values: Any, name: str) -> None:
        rows, others = (getattr(part, "index", None) for part in (inputs, values))
        if not isinstance(rows, pd.Index) or not isinstance(others, pd.Index):
            return
        if not rows.equals(others) and rows.is_unique and set(rows) == set(others):
            raise DataError(
                f"{self.name}: {name} has the index of X in another order, so labels would belong to other rows; give "
                f"{name}.loc[X.index], or {name}.to_numpy() if the order is right"
            )


def read_inputs(inputs: Any, name: str, method: Any) -> Any:
    """Return texts as a tuple, and features as an array or, for an estimator, as the data frame that they are.

    Parameters
    ----------
    inputs
        A list, a series or an array of texts; or an array or a data frame of features, (n, n_features).
    name
        Name of the data, for messages.
    method
        The method.

    Raises
    ------
    DataError
        If they are neither.

    Examples
    --------
    >>> read_inputs(["It crashes."], "tickets", None)
    ('It crashes.',)
    """
    if hasattr(inputs, "toarray"):
        raise DataError(
            f"{name}: X is sparse. If its rows are texts, give the texts and put the vectorizer into the "
            "pipeline, since a vectorizer that has seen all texts hides what peekbench measures; otherwise give "
            "X.toarray()"
        )
    if hasattr(inputs, "to_pandas"):
        inputs = inputs.to_pandas()
    if isinstance(inputs, pd.DataFrame) and is_estimator(method):
        return inputs
    try:
        array = _as_array(inputs)
    except ValueError as error:  # rows of different lengths
        raise DataError(f"{name}: X is not an array: {error}; give a list of texts, or numbers") from error
    if array.ndim == 1 and array.dtype.kind not in "biuf":
        return tuple(array.tolist())
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise DataError(
            f"{name}: X has shape {array.shape} and the type {array.dtype}; give a list of texts, or numbers of shape "
            "(n, n_features)"
        )
    return array.astype(np.float64)


def as_frame(data: Any) -> Any:
    """Return columns, records, and frames of other libraries as a data frame of pandas; other data as they are."""
    if hasattr(data, "to_pandas"):
        return data.to_pandas()  # of Hugging Face, or of polars
    if isinstance(data, dict) or (isinstance(data, list) and data and isinstance(data[0], dict)):
        try:
            return pd.DataFrame(data)
        except ValueError as error:
            raise DataError(f"{error}; give columns of equal lengths") from error
    return data


def _join(parts: Sequence[Any], name: str) -> Any:
    """Return the rows of several inputs of the same form and with the same columns."""
    first, *others = parts
    for other in others:
        if type(first) is not type(other) or np.shape(first)[1:] != np.shape(other)[1:]:
            raise DataError(
                f"{name}: its parts are a {type(first).__name__} of shape {np.shape(first)} and a "
                f"{type(other).__name__} of shape {np.shape(other)}; give train, test and extra in the same form"
            )
        if isinstance(first, pd.DataFrame) and (differing := {*first.columns} ^ {*other.columns}):
            raise DataError(
                f"{name}: only one of its parts has the column {min(differing, key=str)!r}; rename or drop it"
            )
    if isinstance(first, pd.DataFrame):
        return pd.concat(parts, ignore_index=True)
    if isinstance(first, tuple):
        return sum(parts, ())
    return np.concatenate(parts)


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


def _find_indicators(labels: Any) -> Any:
    """Return labels as an array if they have two or more columns of 0 and 1; lists of labels are no such columns."""
    if hasattr(labels, "toarray"):
        labels = labels.toarray()
    if isinstance(labels, list | tuple):
        if not all(is_label_set(row) and len(row) > 1 and set(row) <= {0, 1} for row in labels):
            return None
        if len({len(row) for row in labels}) > 1:
            return None
    elif getattr(labels, "ndim", 0) != 2:
        return None
    array = np.asarray(labels)
    return array if array.ndim == 2 and array.shape[1] > 1 else None


def _is_hugging_face(data: Any) -> bool:
    """Return whether data are of the library `datasets`."""
    return type(data).__module__.partition(".")[0] == "datasets"


def _is_blank(text: Any) -> bool:
    return not isinstance(text, str) or not text.strip()


def _as_array(values: Any) -> Any:
    """Return values as an array; numpy would make texts of the other values of a list with texts, as of NaN."""
    array = np.asarray(values)
    is_list = array.dtype.kind == "U" and not hasattr(values, "dtype")
    return np.asarray(values, dtype=object) if is_list else array


def _as_series(values: Any) -> Any:
    if isinstance(values, list | tuple) and any(map(is_label_set, values)):
        return pd.Series(list(values), dtype=object)
    array = _as_array(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array.ravel()
    return pd.Series(list(array) if array.ndim > 1 else array)


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
