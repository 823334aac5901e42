"""Checks of the rows that data sources and users give: their form, classes, and whether they suffice for a design."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from itertools import compress
from typing import Any, get_args

from peekbench.data.labels import check_class_names
from peekbench.errors import DataError
from peekbench.formatting import pluralize, shorten
from peekbench.identity import DIFFERENCES, find_alike, key_of
from peekbench.records.data import Dataset, Split, TaskKind, as_texts
from peekbench.spec.design import Design

MAX_CLASSES_PER_ROW = 1 / 3  # more classes are no classes: most would have one or two rows


def check_dataset(dataset: Dataset, use: str) -> None:
    """Refuse malformed rows. The content of texts is up to the data source.

    Parameters
    ----------
    dataset
        The rows to check.
    use
        Name of the data source, for messages.

    Raises
    ------
    DataError
        If there are no rows, inputs are neither texts nor an array of features, their number differs from the number
        of labels, labels are not among 0..C-1, splits are not 'train' or 'test', a group is in both splits, targets are
        not finite, or inputs for language modeling are not texts.
    """
    _check_types(dataset, use)
    if len(dataset.inputs) != len(dataset.labels):
        raise DataError(
            f"{use}: {pluralize(len(dataset.inputs), 'input')} but {pluralize(len(dataset.labels), 'label')}; "
            "each row needs one of each"
        )
    if not len(dataset.inputs):
        raise DataError(f"{use}: it has no rows; check the path of the data, and the conditions that select rows")
    _check_splits(dataset, use)
    _check_groups(dataset, use)
    _check_extra(dataset, use)
    if dataset.kind in ("language_modeling", "generation"):
        if dataset.class_names:
            raise DataError(f"{use}: {dataset.kind} has no classes; leave out class_names")
        _check_references(dataset, use)
        return
    if dataset.kind == "regression":
        invalid = [row for row, target in enumerate(dataset.labels) if not math.isfinite(target)]
        if invalid:
            raise DataError(
                f"{use}: the target of row {invalid[0]} is not a finite number; fix or drop "
                f"{pluralize(len(invalid), 'row')}"
            )
        return
    names = list(dataset.class_names)
    if len(names) < 2:
        found, needing = pluralize(len(names), "class", "classes"), "classification needs two or more"
        if dataset.kind == "multilabel":
            found, needing = pluralize(len(names), "label"), "a multi-label task needs two or more"
        raise DataError(f"{use}: {found}; {needing}")
    if len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
        raise DataError(f"{use}: the class names {names} are not distinct texts; rename some")
    counts = class_counts(dataset)
    if dataset.kind == "multilabel":
        _check_label_sets(dataset, use)
    for label, number in counts.items():
        if label not in range(len(names)):
            raise DataError(
                f"{use}: label {label!r} is outside 0..{len(names) - 1}, the indices of its class names; drop "
                f"{pluralize(number, 'row')}, or add a class to class_names and give them its index"
            )
    check_class_names({names[label]: number for label, number in counts.items()}, use)


def _check_references(dataset: Dataset, use: str) -> None:
    """Refuse references of generation that are no texts."""
    references: Sequence[Any] = ()
    if dataset.kind == "generation":
        references = list(dataset.labels)
    for row, reference in enumerate(references):
        texts: Any = as_texts(reference)
        if not isinstance(texts, tuple) or not texts or not all(isinstance(text, str) for text in texts):
            raise DataError(
                f"{use}: the reference of row {row} is {shorten(repr(reference), 100)}; give a text, as str(...) does "
                "of a number, or a list of texts of which the best grade counts"
            )


def _check_label_sets(dataset: Dataset, use: str) -> None:
    """Refuse rows of a multi-label task that are not 0 or 1 for each label."""
    for row, labels in enumerate(dataset.labels):
        if len(labels) != len(dataset.class_names) or not {*labels} <= {0, 1}:
            raise DataError(
                f"{use}: the labels of row {row} are {shorten(repr(list(labels)), 100)}; give 0 or 1 for each of its "
                f"{len(dataset.class_names)} labels"
            )


def _check_splits(dataset: Dataset, use: str) -> None:
    counts = Counter(dataset.splits)
    if counts and (set(counts) != set(get_args(Split)) or counts.total() != len(dataset.labels)):
        found = shorten(repr(dict(counts)), 200)
        raise DataError(
            f"{use}: splits are {found} of {pluralize(len(dataset.labels), 'row')}; give 'train' "
            "or 'test' for each row, both at least once, or no splits"
        )


def _check_groups(dataset: Dataset, use: str) -> None:
    groups = dataset.groups
    if not groups:
        return
    if len(groups) != len(dataset.labels) or not all(isinstance(group, int | str) for group in groups):
        raise DataError(
            f"{use}: {pluralize(len(groups), 'group')} such as {shorten(repr(groups[0]), 40)} for "
            f"{pluralize(len(dataset.labels), 'row')}; give a text or an integer for each row, or no groups"
        )
    for variants in find_alike(key_of(group) or "" for group in groups):
        raise DataError(
            f"{use}: the groups {' and '.join(map(json.dumps, variants))} differ only by {DIFFERENCES}; "
            "write one of them in all rows, or rename one if they are different groups"
        )
    if len(set(groups)) == 1:
        raise DataError(f"{use}: all rows are of the group {shorten(repr(groups[0]), 40)}; sets need different groups")
    if shared := groups_in_both(groups, dataset.splits):
        raise DataError(
            f"{use}: both official splits have rows of {pluralize(len(shared), 'group')}, such as "
            f"{shorten(repr(shared[0]), 40)}, so the splits leak; drop those of the train split (in tasks of `files`, "
            "`tabular.file` and `hf.dataset`, and in `measure`, set `drop_shared_groups` to True)"
        )


def _check_extra(dataset: Dataset, use: str) -> None:
    extra: Any = dataset.extra
    if not len(extra):
        return
    if isinstance(extra, Sequence) and dataset.input_kind == "texts":
        is_valid = all(isinstance(text, str) for text in extra)
    else:
        is_valid = getattr(extra, "shape", ())[1:] == getattr(dataset.inputs, "shape", (0, 0))[1:]
    if not is_valid:
        raise DataError(f"{use}: extra inputs are not of the form of the inputs; give texts or features as there")


def groups_in_both(groups: Sequence[int | str], splits: Sequence[Split]) -> list[int | str]:
    """Return the groups that have rows in both official splits, in the order of the rows.

    Examples
    --------
    >>> groups_in_both(["ann", "bob", "ann"], ["train", "train", "test"])
    ['ann']
    """
    pairs = dict.fromkeys(zip(groups, splits, strict=False))
    return [group for group in dict.fromkeys(groups) if {(group, "train"), (group, "test")} <= pairs.keys()]


def _check_types(dataset: Dataset, use: str) -> None:
    """Refuse wrong types of kind, inputs, labels and details."""
    inputs: Any = dataset.inputs
    labels: Any = dataset.labels
    if dataset.kind not in get_args(TaskKind):
        raise DataError(f"{use}: unknown kind {dataset.kind!r}; use one of {', '.join(get_args(TaskKind))}")
    if dataset.kind in ("language_modeling", "generation") and not isinstance(inputs, Sequence):
        raise DataError(f"{use}: inputs are a {type(inputs).__name__}; {dataset.kind} needs a list of texts")
    is_frame = hasattr(inputs, "iloc") and dataset.fingerprint  # which `pb.measure` has read for an estimator
    if not _is_numeric_array(inputs, ndim=2) and not is_frame:
        if not isinstance(inputs, Sequence) or isinstance(inputs, str):
            raise DataError(
                f"{use}: inputs are a {type(inputs).__name__}; give a list of texts, or an array of numbers of shape "
                "(n, n_features)"
            )
        if isinstance(inputs, list | tuple):  # other sequences may be large and on disk
            for row, text in enumerate(inputs):
                if not isinstance(text, str):
                    raise DataError(f"{use}: the input of row {row} is {text!r}, not a text; fix or drop the row")
    ndim, shape = 1, "(n,)"
    if dataset.kind == "multilabel":
        ndim, shape = 2, "(n, n_labels)"
    if not _is_numeric_array(labels, ndim=ndim) and not isinstance(labels, Sequence):
        raise DataError(f"{use}: labels are a {type(labels).__name__}; give a list or an array of shape {shape}")


def _is_numeric_array(values: Any, ndim: int) -> bool:
    """Return whether a value is a numpy array of numbers, without importing numpy."""
    return getattr(values, "ndim", None) == ndim and getattr(getattr(values, "dtype", None), "kind", "") in "biuf"


def class_counts(dataset: Dataset, split: Split | None = None) -> dict[int, int]:
    """Return the number of rows by class or label, of all rows or of those in one official split."""
    labels: Any = dataset.labels
    if not isinstance(labels, Sequence):
        labels = labels.tolist()
    if split is not None and dataset.splits:
        labels = [label for label, place in zip(labels, dataset.splits, strict=True) if place == split]
    if dataset.kind == "multilabel":
        labels = (label for row in labels for label in compress(range(len(row)), row))
    return dict(Counter(labels))


def find_absent_class(dataset: Dataset) -> str:
    """Return a clause about the first class without a row that train sets can contain; empty if there is none.

    Every train set contains every class, so no design fits such a dataset.
    """
    counts = class_counts(dataset, "train")
    absent = [name for label, name in enumerate(dataset.class_names) if not counts.get(label)]
    if not absent:
        return ""
    what = "label" if dataset.kind == "multilabel" else "class"
    remedy = "remove it from its class names, or add rows"
    if num_test := class_counts(dataset).get(list(dataset.class_names).index(absent[0]), 0):
        remedy = f"drop its {pluralize(num_test, 'test row')}, or add train rows"
    return f"train sets need a row of each {what}, but none has {absent[0]!r}; {remedy}"


def rows_per_class(num_train: int, num_classes: int) -> int:
    """Return the number of train rows drawn from each class."""
    return num_train // num_classes


def rows_behind(design: Design) -> int:
    """Return the number of rows that the largest sets of a subsample and the shared unlabeled texts take."""
    num_test = max(design.num_test)
    return design.num_sets * num_test + design.num_shared(num_test)


def check_sizes(dataset: Dataset, design: Design, task: str) -> None:
    """Refuse a design for which a task has too few rows.

    Raises
    ------
    DataError
        If there are too few rows. The message names the task, the class or the split, and the number of rows.
    """
    num_train, num_test = max(design.num_train), max(design.num_test)
    needed, sets, sizes = rows_behind(design), f"{design.num_sets} x num_test {num_test}", "num_test"
    if shared := design.num_shared(num_test):
        sets, sizes = f"{sets} + {shared} shared unlabeled texts", "num_unlabeled or num_test"
    if dataset.class_names:
        num_train = _check_classes(dataset, design, task)
    if not dataset.splits:
        if len(dataset.extra):
            raise DataError(f"task {task}: private extra texts need an official train and test split; name both")
        if len(dataset.labels) < num_train + needed:
            raise DataError(
                f"task {task}: {pluralize(len(dataset.labels), 'row')}, but num_train {num_train} + {sets} = "
                f"{num_train + needed} are needed; lower {sizes} or num_train"
            )
        return
    rows = Counter(dataset.splits)
    if rows["train"] < num_train:
        raise DataError(
            f"task {task}: {pluralize(rows['train'], 'row')} in its train split, but num_train is {num_train}; lower "
            "num_train, or do not use official splits"
        )
    if len(dataset.extra) and not design.folds:
        raise DataError(f"task {task}: private extra texts need folds; set `design` to official, or remove these texts")
    if design.folds:
        largest = -(-rows["test"] // max(design.folds))
        if 0 < len(dataset.extra) < largest:
            raise DataError(
                f"task {task}: {pluralize(len(dataset.extra), 'extra text')}, too few to take the place of a fold of "
                f"{largest:,}; add some, or use more folds"
            )
        needed = 2 * max(design.folds)
        if rows["test"] < needed:
            raise DataError(
                f"task {task}: {pluralize(rows['test'], 'row')} in its test split, too few for {max(design.folds)} "
                f"folds; use at most {rows['test'] // 2}"
            )
        return
    if rows["test"] < needed:
        raise DataError(
            f"task {task}: {pluralize(rows['test'], 'row')} in its test split, but {sets} = {needed} are needed for "
            f"test and extra rows; lower {sizes}, or do not use official splits"
        )


def _check_classes(dataset: Dataset, design: Design, task: str) -> int:
    """Refuse train sets without some class or label, or with too few rows of it. Return the number of train rows."""
    num_train, num_classes = max(design.num_train), len(dataset.class_names)
    if num_classes > MAX_CLASSES_PER_ROW * len(dataset.labels):
        raise DataError(
            f"task {task}: {num_classes} classes in {pluralize(len(dataset.labels), 'row')}; these labels are numbers "
            "of a scale, or identifiers. Name another column as the label, or replace the numbers by a few ranges"
        )
    if min(design.num_train) < num_classes:
        what, named = "classes", "class"
        if dataset.kind == "multilabel":
            what, named = "labels", "label"
        raise DataError(
            f"task {task}: num_train {min(design.num_train)} is below the number of {what}, {num_classes}, so train "
            f"sets may lack a {named}; use num_train of at least {num_classes}"
        )
    needed = 1
    if design.train == "balanced" and dataset.kind == "classification":
        needed = rows_per_class(num_train, num_classes)
        num_train = needed * num_classes
    counts = class_counts(dataset, "train")
    for label, class_name in enumerate(dataset.class_names):
        if not counts.get(label):
            raise DataError(f"task {task}: {find_absent_class(dataset)}")
        if counts[label] < needed:
            raise DataError(
                f"task {task}, class {class_name!r}: {pluralize(counts[label], 'row')} for train sets, but num_train "
                f"{max(design.num_train)} needs {needed} from each of {num_classes} classes; lower num_train, set "
                "`train` to natural in the design, or merge the class with another one in the data"
            )
    return num_train
