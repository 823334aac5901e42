"""Convert the columns of a task's files to rows."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from peekbench import DataError
from peekbench.data import group_duplicates, keep_first
from peekbench.data.label_sets import find_unlabeled, name_label_sets, read_label_set, refuse_hidden_sets
from peekbench.data.labels import (
    INTEGER,
    ClassNames,
    find_missing,
    name_classes,
    read_reference,
    refuse_hidden,
    refuse_missing,
)
from peekbench.formatting import pluralize
from peekbench.identity import key_of
from peekbench.records.answers import number_label_sets
from peekbench_hf.definition import HubTask
from peekbench_hf.options import DropDuplicates
from peekbench_hf.prepared import PreparedTask
from peekbench_hf.reading import Columns

VALIDATION = "set `test_split` to validation"
PERCENTILES = (5, 25, 50, 75, 95)


def make_rows(
    splits: Sequence[Columns], task: HubTask, label: str, drop_duplicates: DropDuplicates, details: Mapping[str, Any]
) -> PreparedTask:
    """Convert columns to rows according to the task's definition.

    Parameters
    ----------
    splits
        Columns of the train split, and of the test split if train and test rows are kept apart.
    task
        Definition of the task.
    label
        Name of the label column in these files.
    drop_duplicates
        `none`, `exact` or `near`.
    details
        Facts for reports, to which those about the rows are added.

    Raises
    ------
    DataError
        If a text or a label is missing, has the wrong type, or does not match the definition.
    """
    rows = pd.DataFrame(
        {
            "text": pd.Series(_join_texts([texts for split in splits for texts in split.texts], task), dtype=object),
            "label": pd.Series([value for split in splits for value in split.labels], dtype=object),
            "group": pd.Series([value for split in splits for value in split.groups], dtype=object),
            "is_test": np.repeat([False, True][: len(splits)], [len(split.labels) for split in splits]),
        }
    )
    place = f"column {label!r}"
    rows["group"] = _make_keys(rows["group"], f"column {task.group!r}")
    is_missing = (rows["text"] == "") | (bool(task.group) & (rows["group"] == ""))
    if is_missing.any() and not task.drop_missing:
        columns = " or ".join(map(repr, filter(None, (*task.text, task.group))))
        raise _missing_error(is_missing, f"no value in column {columns}")
    read = _read_labels
    if task.is_generation:
        read = _read_references
    elif rows["label"].map(lambda value: isinstance(value, list)).any():
        read = _read_label_sets
    class_names, is_unlabeled = read(rows, splits, task, place)
    num_read = len(rows)
    rows = rows[~(is_missing | is_unlabeled)]
    dropped = {"missing": num_read - len(rows), "long": 0, "duplicate": 0}
    if task.drop_shared_groups:
        is_shared = ~rows["is_test"] & rows["group"].isin(set(rows["group"][rows["is_test"]]))
        dropped["group of the test split"] = int(is_shared.sum())
        rows = rows[~is_shared]
    if task.max_characters is not None:
        is_long = rows["text"].map(len) > task.max_characters
        dropped["long"] = int(is_long.sum())
        rows = rows[~is_long]
    facts: dict[str, Any] = {"rows_read": num_read, "dropped": dropped, "drop_duplicates": drop_duplicates}
    labels: NDArray[np.int64]
    if read is _read_label_sets:
        names, indicators, left_out = name_label_sets(rows["label"].tolist(), class_names, place)
        labels = np.array(indicators, dtype=np.int64).reshape(len(rows), -1)
        if left_out:
            facts["labels left out"] = ", ".join(left_out)
    else:
        counts = Counter(rows["label"])
        names, positions = tuple(counts), {reference: number for number, reference in enumerate(counts)}
        if not task.is_generation:
            names, positions = name_classes(counts, class_names, place)
        labels = rows["label"].map(positions).to_numpy(dtype=np.int64)
    if drop_duplicates != "none":
        numbers = number_label_sets(labels)
        references = numbers.tolist() if task.is_generation else None
        is_kept = keep_first(group_duplicates(rows["text"].tolist(), drop_duplicates, references), numbers)
        dropped["duplicate"] = len(rows) - int(is_kept.sum())
        rows, labels = rows[is_kept], labels[is_kept]
    if rows.empty:
        raise DataError("no rows are left; check max_characters and the names of the columns")
    num_test = int(rows["is_test"].sum())
    if len(splits) > 1 and not 0 < num_test < len(rows):
        raise DataError(
            f"no rows of the {'train' if num_test else 'test'} split are left; check max_characters, or set "
            "`drop_duplicates` to none"
        )
    texts = rows["text"].tolist()
    groups = tuple(rows["group"]) if task.group else ()
    details = {**details, **facts, **measure(texts)}
    return PreparedTask(texts, labels, groups, names, _hash_rows(texts, labels, names), details, num_test)


def measure(texts: Sequence[str]) -> dict[str, Any]:
    """Count duplicate texts and compute percentiles of the texts' lengths.

    Returns
    -------
    dict
        `exact_duplicates`, the number of texts that repeat an earlier one, and `characters`, a mapping from
        percentiles to lengths.
    """
    lengths = np.percentile([len(text) for text in texts], PERCENTILES)
    return {
        "exact_duplicates": len(texts) - len(set(texts)),
        "characters": {str(percentile): round(length) for percentile, length in zip(PERCENTILES, lengths, strict=True)},
    }


def _join_texts(texts: Iterable[tuple[Any, ...]], task: HubTask) -> list[str]:
    """Return the text of each row; empty if a column has no value, or all are blank."""
    joined = []
    for values in texts:
        for value, name in zip(values, task.text, strict=True):
            if value is not None and not isinstance(value, str):
                raise DataError(f"column {name!r} contains {type(value).__name__}, not text; name another column")
        text = "" if None in values else "\n".join(values)
        joined.append(text if text.strip() else "")
    return joined


def _make_keys(values: Iterable[Any], place: str) -> list[str]:
    """Return the keys of labels or groups; empty if they are missing."""
    keys = []
    for value in values:
        key = key_of(value)
        if key is None:
            raise DataError(
                f"{place} contains values such as {value!r}, which cannot be labels or groups, because they "
                "are neither texts nor whole numbers; name another column"
            )
        keys.append(key)
    return keys


def _missing_error(is_missing: pd.Series[bool], problem: str) -> DataError:
    return DataError(
        f"row {int(is_missing.to_numpy().argmax()) + 1}: {problem}; {pluralize(int(is_missing.sum()), 'row')} in "
        "total. Drop such rows, with `drop_missing` True in hf.dataset, or use data that have all values"
    )


def _read_references(
    rows: pd.DataFrame, splits: Sequence[Columns], task: HubTask, place: str
) -> tuple[None, pd.Series[bool]]:
    """Replace labels by references in JSON, empty if there is none; return whether each row has none."""
    references = [read_reference(value, f"{place}, row {row}") for row, value in enumerate(rows["label"], start=1)]
    rows["label"] = [json.dumps(reference, ensure_ascii=False) if reference else "" for reference in references]
    is_unlabeled = rows["label"] == ""
    if is_unlabeled.any() and not task.drop_missing:
        raise _missing_error(is_unlabeled, f"no reference in {place}")
    return None, is_unlabeled


def _read_label_sets(
    rows: pd.DataFrame, splits: Sequence[Columns], task: HubTask, place: str
) -> tuple[ClassNames, pd.Series[bool]]:
    """Replace lists of labels by tuples of keys; return the names of the labels, and whether each row has no list."""
    sets = [read_label_set(value, "", place) for value in rows["label"]]
    rows["label"] = pd.Series(sets, dtype=object)
    class_names: ClassNames = task.classes or _feature_names(splits)
    if task.classes and task.is_in_order:
        class_names = tuple(task.classes)
    refuse_hidden_sets(rows["label"][rows["is_test"]].tolist(), "the test split", VALIDATION)
    refuse_hidden_sets(sets, "the data", "use a split that has labels")
    return class_names, pd.Series(find_unlabeled(sets, class_names, place, drop_missing=task.drop_missing))


def _read_labels(
    rows: pd.DataFrame, splits: Sequence[Columns], task: HubTask, place: str
) -> tuple[ClassNames, pd.Series[bool]]:
    """Replace labels by their keys; return the names of the classes, and whether each row has no label."""
    labels = _make_keys(rows["label"], place)
    names, keys = _feature_names(splits), tuple(task.classes or ())
    if names is not None and not all(split.class_names for split in splits):
        train, test = (split.class_names for split in splits)
        raise DataError(
            f"{place} has the classes {train} in the train split, but {test} in the test split; set `splits` to pooled"
        )
    if names is not None and keys:
        others = {label for label in labels if label not in names}
        named = tuple(key for key in keys if key not in others)
        if set(named) != set(names) or (task.is_in_order and named != names):
            raise DataError(
                f"{place} is a ClassLabel with the labels {', '.join(names)}, but class_names has {', '.join(keys)}; "
                "name the same labels in the same order"
            )
    are_numbers = all(INTEGER.fullmatch(label) for label in {*labels} - {""})
    if names is None and task.is_in_order and are_numbers and not all(map(INTEGER.fullmatch, keys)):
        by_number = {str(number): key for number, key in enumerate(keys)}
        labels = [by_number.get(label, label) for label in labels]
    rows["label"] = labels
    class_names, counts = task.classes or names, Counter(labels)
    refuse_hidden(set(rows["label"][rows["is_test"]]), counts, class_names, "the test split", VALIDATION)
    if not task.drop_missing:
        refuse_missing(counts, class_names, place)
    return class_names, rows["label"].isin(find_missing(counts, class_names))


def _feature_names(splits: Sequence[Columns]) -> tuple[str, ...] | None:
    """Return the names of a `ClassLabel`, which may have another order in each split."""
    return tuple(dict.fromkeys(name for split in splits for name in split.class_names or ())) or None


def _hash_rows(texts: Sequence[str], labels: NDArray[np.int64], names: Sequence[str]) -> str:
    """Return the SHA-256 of class names, texts and labels."""
    digest = hashlib.sha256(json.dumps(list(names)).encode())
    digest.update(np.array([len(text.encode()) for text in texts], dtype=np.int64).tobytes())
    for text in texts:
        digest.update(text.encode())
    digest.update(labels.tobytes())
    return digest.hexdigest()
