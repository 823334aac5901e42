"""Reads what users hold as the rows of a task: data frames, arrays, data sets of Hugging Face, functions of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import combinations, compress
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from peekbench.data.dataset_checks import groups_in_both
from peekbench.data.held_inputs import (
    GENERATION,
    Likeness,
    check_columns,
    check_kind,
    drop_copies,
    find_blank,
    identify,
    is_hugging_face,
    join_inputs,
    official_splits,
    read_inputs,
    read_references,
    refuse_missing_values,
    take_rows,
)
from peekbench.data.held_labels import HeldLabels, as_array, find_label_sets, join_labels
from peekbench.data.label_sets import find_unlabeled, name_label_sets, refuse_hidden_sets, refuse_other_separators
from peekbench.data.labels import (
    ClassNames,
    align_classes,
    find_missing,
    group_key,
    name_classes,
    refuse_hidden,
    refuse_joined,
    refuse_missing,
)
from peekbench.data.loading import fingerprint
from peekbench.errors import DataError
from peekbench.formatting import pluralize, shorten, visible
from peekbench.identity import key_of
from peekbench.plugins.estimator_parts import tags_of
from peekbench.records import Dataset, Split
from peekbench.records.data import OfficialSplits

HELD = (
    "names of tasks, a data frame, (texts, labels), (X, y), (X, y, groups), a data set of Hugging Face, the folder of "
    "its `save_to_disk`, a function that returns one of these, or a dictionary of them by name"
)
NESTED = (list, tuple, dict, set, np.ndarray)
TRAIN: Split = "train"
TEST: Split = "test"
VALIDATION = "use the validation split, with test_split='validation'"
MAX_CLASSES_PER_ROW = 1 / 3  # floats and texts with more different values are no classes
_Finish: TypeAlias = Callable[[list[int], dict[str, Any]], dict[str, Any]]
"""Takes the numbers of the rows that are kept, and facts about the data to add to; returns fields of a `Dataset`."""


class _Pair(NamedTuple):
    inputs: Any
    labels: Any
    groups: Any = None
    class_names: Sequence[str] | None = None


def read_held(data: Any, name: str, methods: Sequence[Any], **options: Any) -> Dataset:
    """Return what a user holds as the rows of a task, which all methods read in the same way.

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
    check_kind(name, options)
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
    drop_duplicates: Likeness = "none"
    test_split: str = "test"
    kind: str = ""

    @property
    def columns(self) -> dict[str, str]:
        columns = {"text": self.text}
        if isinstance(self.label, str):
            columns["label"] = self.label
        else:
            columns |= {f"label {number}": column for number, column in enumerate(self.label)}
        if self.group is not None:
            columns["group"] = self.group
        return columns

    def read(self, data: Any) -> Dataset:
        if isinstance(data, Dataset):
            self._refuse_reordered(data.inputs, data.labels)
            return data
        parts = {"": data}
        if isinstance(data, OfficialSplits):
            parts = {TRAIN: data.train, TEST: data.test}
        elif is_hugging_face(data) and isinstance(data, Mapping):
            parts = official_splits(data, self.test_split, self.name)
        pairs = {
            split: self._with_label_sets(self._pair_of(part() if callable(part) else part, split))
            for split, part in parts.items()
        }
        splits: list[Split] = []
        if len(pairs) > 1:
            splits = [TRAIN] * len(pairs[TRAIN].inputs) + [TEST] * len(pairs[TEST].inputs)
        first, *others = pairs.values()
        if others and type(others[0].inputs) is not type(first.inputs):
            kinds = (type(pair.inputs).__name__ for pair in pairs.values())
            raise DataError(f"{self.name}: train is {' and test is '.join(kinds)}; give both in the same form")
        inputs, labels, groups, class_names = first
        if others:
            for pair in pairs.values():
                self._refuse_reordered(pair.inputs, pair.labels)
            check_columns(first.inputs, others[0].inputs, self.name)
            inputs = join_inputs([pair.inputs for pair in pairs.values()])
            class_names, numbers = align_classes([pair.class_names for pair in pairs.values()])
            labels = join_labels([pair.labels for pair in pairs.values()], numbers, self.name)
            of_splits = [pair.groups for pair in pairs.values()]
            if groups is not None and all(part is not None for part in of_splits):
                groups = join_inputs([as_array(part) for part in of_splits])
            elif any(part is not None for part in of_splits):
                raise DataError(f"{self.name}: only one of train and test has groups; give those of both")
        dataset = self._read_pair(inputs, labels, class_names, splits, groups)
        if isinstance(data, OfficialSplits) and data.extra is not None:
            extra = data.extra() if callable(data.extra) else data.extra
            dataset = replace(dataset, extra=self._read_extra(extra, first.inputs, dataset))
        return identify(drop_copies(dataset, self.drop_duplicates, self.name))

    def _read_extra(self, extra: Any, inputs: Any, dataset: Dataset) -> Any:
        """Return private texts or features in the form of other inputs, without labels if they are given."""
        name, groups = f"{self.name}, extra", None
        if isinstance(extra, tuple) and len(extra) in (2, 3) and not isinstance(extra[0], str):
            extra, _, groups = (*extra, None)[:3]
        if hasattr(extra, "to_pandas"):
            extra = extra.to_pandas()  # of Hugging Face, or of polars
        if isinstance(extra, dict) or (isinstance(extra, list) and extra and isinstance(extra[0], dict)):
            extra = pd.DataFrame(extra)
        if isinstance(extra, pd.DataFrame):
            columns = list(getattr(inputs, "columns", extra.columns))
            if dataset.input_kind == "texts":
                columns = [self.text]
            for column in columns:
                if column not in extra.columns:
                    raise DataError(f"{name}: no column has the name {column!r}, as in train; rename or add it")
            groups = extra.get(self.group, groups)
            extra = extra[columns]
            if dataset.input_kind == "texts":
                extra = extra[self.text]
        elif isinstance(dataset.inputs, pd.DataFrame):
            raise DataError(f"{name}: this is no data frame, as train is; give one with the same columns")
        if groups is not None:
            for group in set(self._read_groups(groups, len(extra))) & {*dataset.groups}:
                raise DataError(
                    f"{name}: it has rows of the group {shorten(repr(group), 40)}, which is in train or test, so they "
                    "are not independent; drop them"
                )
        rows = read_inputs(extra, name, self.method, drop_missing=self.drop_missing)
        if isinstance(rows, tuple):
            rows = tuple(compress(rows, ~find_blank(rows)))
        return rows

    def _with_label_sets(self, pair: _Pair) -> _Pair:
        """Return a pair whose labels are `HeldLabels` if rows have any number of them."""
        self._refuse_reordered(pair.inputs, pair.labels)
        if self.kind == GENERATION:
            return pair._replace(labels=pd.Series(list(pair.labels), dtype=object))
        chosen = self.class_names
        if isinstance(chosen, Mapping):
            chosen = None
        held = find_label_sets(pair.labels, self.name, self.label_separator, pair.class_names, chosen)
        return pair if held is None else pair._replace(labels=held)

    def _pair_of(self, data: Any, split: str) -> _Pair:
        """Return the inputs and labels of all rows, or of those of a split."""
        text, label = self.text, self.label
        if not isinstance(label, str):
            label = list(label)
        if is_hugging_face(data) and data.features is None:
            data = list(data)  # a stream
        if is_hugging_face(data):
            self._check_columns(data.column_names)
            frame = data.select_columns([*self.columns.values()]).to_pandas()
            names = None
            if isinstance(label, str):
                feature = data.features[label]
                names = getattr(getattr(feature, "feature", feature), "names", None)  # of a label, or of a list of them
                if names is not None:
                    names = [key_of(name) for name in names]
            return _Pair(frame[text], frame[label], frame.get(self.group), names)
        if hasattr(data, "to_pandas"):
            data = data.to_pandas()  # of polars
        if isinstance(data, dict) or (isinstance(data, list) and data and isinstance(data[0], dict)):
            try:
                data = pd.DataFrame(data)
            except ValueError as error:
                raise DataError(f"{self.name}: {error}; give columns of equal lengths") from error
        if isinstance(data, pd.DataFrame):
            self._check_columns(list(data.columns))
            return _Pair(data[text], data[label], data.get(self.group))
        if isinstance(data, tuple) and len(data) in (2, 3):
            if self.group is not None:
                raise DataError(
                    f"{self.name}: group={self.group!r} names a column of a data frame of texts and labels; for "
                    "(X, y), leave it out and give (X, y, groups)"
                )
            return _Pair(*data)
        place = f"{self.name}, {split}" if split else self.name
        raise DataError(f"{place}: cannot read an object of the type {type(data).__name__}; data are {HELD}")

    def _check_columns(self, present: Sequence[Any]) -> None:
        for (first, column), (second, other) in combinations(self.columns.items(), 2):
            if column == other:
                raise DataError(f"{self.name}: {first} and {second} are the same column, {column!r}; name two columns")
        for column in self.columns.values():
            if present.count(column) != 1:
                near = get_close_matches(column, map(str, present), n=1)
                text, label = map(repr, present if len(present) == 2 else ("TEXT", "LABEL"))
                remedy = (
                    f"name those of texts and labels, as in text={text}, label={label}, or give (X, y) for features"
                )
                if column == self.group:
                    remedy = "name that of the groups as `group`, or leave it out"
                remedy = f"did you mean {near[0]!r}?" if near else remedy
                raise DataError(
                    f"{self.name}: {'two columns have' if column in present else 'no column has'} the name {column!r}; "
                    f"its columns are {shorten(visible(', '.join(map(str, present))), 200)}; "
                    + ("drop or rename one" if column in present else remedy)
                )

    def _read_pair(
        self, inputs: Any, labels: Any, feature_names: Sequence[str] | None, splits: Sequence[Split], groups: Any
    ) -> Dataset:
        if self.test_split != TEST and not splits:
            raise DataError(
                f"{self.name}: test_split={self.test_split!r} names a split of a DatasetDict, and these rows "
                "have no splits; leave it out, or give a DatasetDict"
            )
        self._refuse_reordered(inputs, labels)
        self._refuse_reordered(inputs, groups, "groups")
        self._refuse_nested(inputs, () if self.kind == GENERATION else labels)
        if not isinstance(labels, HeldLabels) and self.kind != GENERATION:
            self._refuse_swapped(inputs, labels)
        rows = read_inputs(inputs, self.name, self.method, drop_missing=self.drop_missing)
        shape = (len(labels.sets),) if isinstance(labels, HeldLabels) else np.shape(labels)
        if shape not in ((len(rows),), (len(rows), 1)):
            raise DataError(
                f"{self.name}: {pluralize(len(rows), 'row')}, but labels of shape {shape}; give one label for each "
                "row, as an array of shape (n,), or those of a multi-label task, 0 or 1, of shape (n, n_labels)"
            )
        if isinstance(labels, HeldLabels):
            of_test = [own for own, split in zip(labels.sets, splits, strict=False) if split == TEST]
            refuse_hidden_sets(of_test, f"the split {self.test_split}", VALIDATION)
            is_missing, finish = self._read_label_sets(labels, feature_names)
        elif self.kind == GENERATION:
            is_missing, finish = read_references(labels, self.name, feature_names, drop_missing=self.drop_missing)
        else:
            is_missing, finish = self._read_labels(labels, feature_names, splits)
        return self._select(rows, is_missing, splits, groups, finish)

    def _read_label_sets(self, labels: HeldLabels, feature_names: Sequence[str] | None) -> tuple[Any, _Finish]:
        """Return whether the labels of each row are unknown, and a function that names those of selected rows."""
        class_names = self._name_features(feature_names) or labels.names
        refuse_other_separators(labels.sets, self.label_separator, class_names, self.name)
        is_missing = find_unlabeled(labels.sets, class_names, self.name, drop_missing=self.drop_missing)

        def finish(kept: list[int], details: dict[str, Any]) -> dict[str, Any]:
            names, indicators, left_out = name_label_sets([labels.sets[row] for row in kept], class_names, self.name)
            if left_out:
                details["labels left out"] = ", ".join(left_out)
            return {"labels": indicators, "class_names": names, "kind": "multilabel"}

        return np.array(is_missing, dtype=bool), finish

    def _read_labels(
        self, labels: Any, feature_names: Sequence[str] | None, splits: Sequence[Split]
    ) -> tuple[Any, _Finish]:
        """Return whether the label of each row is missing, and a function that reads those of selected rows."""
        series = pd.Series(as_array(labels).ravel()).infer_objects()
        is_missing = series.isna().to_numpy()
        present = series[~is_missing]
        kind, is_float = tags_of(self.method).estimator_type, series.dtype.kind == "f"
        known = f"{type(self.method).__name__} is a {kind}"
        if kind == "regressor" and series.dtype.kind not in "iuf":
            values = series.tolist()
            row = next(
                row for row, label in enumerate(values) if not isinstance(label, Real) or isinstance(label, bool)
            )
            raise DataError(
                f"{self.name}: row {row} has the label {values[row]!r}, and {known}; give numbers or a classifier"
            )
        if kind == "classifier" and is_float:
            count = present.nunique()
            if (present % 1 != 0).any() or count > MAX_CLASSES_PER_ROW * len(series):
                raise DataError(
                    f"{self.name}: labels are {count:,} different numbers such as {series[0]:g}, and {known}; give "
                    "classes or a regressor"
                )
        is_regression = kind == "regressor" or (kind is None and is_float)
        keys = [] if is_regression else self._read_keys(series, feature_names)
        counts, class_names = Counter(keys), self._name_features(feature_names)
        if is_regression and not self.drop_missing:
            refuse_missing_values(self.name, "no label", is_missing)
        elif not is_regression:
            is_missing = self._find_unlabeled(keys, counts, class_names, splits)

        def finish(kept: list[int], details: dict[str, Any]) -> dict[str, Any]:
            if is_regression:
                return {"labels": series.to_numpy(dtype=np.float64)[kept], "kind": "regression"}
            found, order = Counter(keys[row] for row in kept), class_names
            if order is None and all(isinstance(label, str) for label in present):
                order = sorted(found)  # as scikit-learn does, whose columns a plain array has: "1", "10", "2"
            names, positions = name_classes(found, order, self.name)
            return {"labels": tuple(positions[keys[row]] for row in kept), "class_names": names}

        return is_missing, finish

    def _select(self, rows: Any, is_missing: Any, splits: Sequence[Split], groups: Any, finish: _Finish) -> Dataset:
        """Return the rows that have a text, a label and a group, if rows have groups."""
        if isinstance(rows, tuple):
            is_missing = is_missing | find_blank(rows)
        of_rows = self._read_groups(groups, len(rows))
        if of_rows:
            is_missing = is_missing | (np.array(of_rows, dtype=object) == "")
        is_shared = np.zeros(len(rows), dtype=bool)
        if self.drop_shared_groups:
            shared = set(groups_in_both(of_rows, splits))
            is_shared = ~is_missing & [
                group in shared and split == TRAIN for group, split in zip(of_rows, splits, strict=False)
            ]
        kept: list[int] = np.flatnonzero(~(is_missing | is_shared)).tolist()
        if len(kept) < len(rows):
            rows = tuple(rows[row] for row in kept) if isinstance(rows, tuple) else take_rows(rows, kept)
        dropped = {"missing": int(is_missing.sum())}
        if is_shared.any():
            dropped["group of the test split"] = int(is_shared.sum())
        own: dict[str, Any] = {"details": {"dropped": dropped}, "splits": ()}
        if of_rows:
            own["groups"] = tuple(of_rows[row] for row in kept)
        if splits:
            own["splits"] = tuple(splits[row] for row in kept)
        return Dataset(rows, **finish(kept, own["details"]), **own)

    def _name_features(self, names: Sequence[str] | None) -> ClassNames:
        """Return the user's names of the classes; lists and numbers are those of the classes of a ClassLabel."""
        chosen = self.class_names
        if names is None or chosen is None:
            return chosen or names
        if not isinstance(chosen, Mapping):
            return chosen if set(names) <= set(chosen) else dict(zip(names, chosen, strict=False))
        known = {str(number): name for number, name in enumerate(names)}
        return {known.get(str(label), label): name for label, name in chosen.items()}

    def _read_keys(self, labels: pd.Series, feature_names: Sequence[str] | None) -> list[str]:
        """Return the labels as texts; numbers of a ClassLabel become their names."""
        keys = []
        for row, value in enumerate(labels):
            key = key_of(value)
            if key is None:
                raise DataError(
                    f"{self.name}: row {row} has the label {shorten(repr(value), 40)}, but a label is text or an "
                    "integer; give one of them"
                )
            keys.append(key)
        names = {str(number): name for number, name in enumerate(feature_names or ())}
        return [names.get(key, key) for key in keys]

    def _read_groups(self, groups: Any, num_rows: int) -> list[str]:
        """Return the group of each row as text, which is empty if it is missing; an empty list without groups."""
        if groups is None:
            if self.drop_shared_groups:
                raise DataError(f"{self.name}: drop_shared_groups needs groups; name their column as `group`")
            return []
        if np.shape(groups) != (num_rows,):
            raise DataError(
                f"{self.name}: {pluralize(num_rows, 'row')}, but groups of shape {np.shape(groups)}; give one for each"
            )
        keys = []
        for row, group in enumerate(pd.Series(as_array(groups)).infer_objects()):
            keys.append(group_key(group, f"{self.name}, row {row}"))
        if not self.drop_missing:
            refuse_missing_values(self.name, "no group", np.array(keys) == "", ", or set drop_missing=True")
        return keys

    def _find_unlabeled(
        self, keys: Sequence[str], counts: Mapping[str, int], class_names: ClassNames, splits: Sequence[Split]
    ) -> Any:
        """Return whether each row has no label. If such rows are not to be dropped, raise an error."""
        if class_names is None:
            refuse_joined(counts, self.name)
        tests = {key for key, split in zip(keys, splits, strict=False) if split == TEST}
        refuse_hidden(tests, counts, class_names, f"the split {self.test_split}", VALIDATION)
        missing = find_missing(counts, class_names)
        if not self.drop_missing:
            first = next((f"row {row}" for row, key in enumerate(keys) if key in missing), "")
            refuse_missing(counts, class_names, self.name, first=first)
        return np.array([key in missing for key in keys], dtype=bool)

    def _refuse_nested(self, inputs: Any, labels: Any) -> None:
        """Refuse lists and dictionaries as texts or labels."""
        for row, label in enumerate(labels if isinstance(labels, list | tuple | pd.Series) else ()):
            if isinstance(label, NESTED):
                raise DataError(
                    f"{self.name}: row {row} has the label {shorten(repr(label), 40)}, a {type(label).__name__}; give "
                    "one text or integer for each row"
                )
        for row, text in enumerate(inputs if isinstance(inputs, list | tuple | pd.Series) else ()):
            place = f"{self.name}: row {row} has {shorten(repr(text), 40)}"
            if isinstance(text, dict | set):
                raise DataError(f"{place}, a {type(text).__name__}; give the text in it")
            if isinstance(text, NESTED) and any(isinstance(part, str) for part in text):
                raise DataError(f"{place}, a list of tokens; join them, as in [' '.join(tokens) for tokens in texts]")
            if isinstance(text, NESTED) and len(text) != len(inputs[0] if isinstance(inputs, list | tuple) else ()):
                raise DataError(f"{place}, which has another length than row 0; give numbers of shape (n, n_features)")

    def _refuse_reordered(self, inputs: Any, labels: Any, name: str = "y") -> None:
        rows, others = (getattr(values, "index", None) for values in (inputs, labels))
        if not isinstance(rows, pd.Index) or not isinstance(others, pd.Index):
            return
        if not rows.equals(others) and rows.is_unique and set(rows) == set(others):
            raise DataError(
                f"{self.name}: {name} has the index of X in another order, so labels would belong to other rows; give "
                f"{name}.loc[X.index], or {name}.to_numpy() if the order is right"
            )

    def _refuse_swapped(self, inputs: Any, labels: Any) -> None:
        first, second = (as_array(values) for values in (inputs, labels))
        if first.ndim == 1 == second.ndim and all(isinstance(label, str) for label in second.tolist()):
            counts = pd.Series(first).nunique(), pd.Series(second).nunique()
            limit = MAX_CLASSES_PER_ROW * len(second)
            if counts[1] > limit and (counts[0] <= limit or first.dtype.kind in "biuf"):
                raise DataError(
                    f"{self.name}: {counts[1]:,} different labels such as {shorten(second[0], 40)!r}, but the texts "
                    f"are {counts[0]:,} different values such as {first.tolist()[0]!r}; labels and texts seem to be "
                    "swapped. Give texts first, as in (texts, labels), or their column as `text`"
                )
