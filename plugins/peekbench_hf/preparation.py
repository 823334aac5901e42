"""Convert the columns of a task's files to rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from peekbench import DataError, Dataset
from peekbench.data import hash_rows
from peekbench.data.labels import INTEGER, ClassNames, is_label_set
from peekbench.data.overlap import drop_copies
from peekbench.data.rows import TEST, TRAIN, Columns, Reading, select_rows
from peekbench_hf.definition import HubTask
from peekbench_hf.reading import SplitColumns


def make_rows(
    splits: Sequence[SplitColumns], task: HubTask, label: str, drop_duplicates: str, details: Mapping[str, Any]
) -> Dataset:
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
    texts = [_join_texts(values, task) for split in splits for values in split.texts]
    class_names: ClassNames = task.classes
    numbered: tuple[str, ...] | None = None
    if task.classes and task.is_in_order:
        if any(map(is_label_set, splits[0].labels)):
            class_names = tuple(task.classes)  # a list, which selects labels
        elif not all(map(INTEGER.fullmatch, task.classes)):
            numbered = tuple(task.classes)
    columns = [
        Columns(split.labels, split.groups, split.class_names or numbered, name, f"row {{}} of the {name} split".format)
        for split, name in zip(splits, (TRAIN, TEST), strict=False)
    ]
    longest = task.max_characters
    reading = Reading(
        f"column {label!r}",
        kind="generation" if task.is_generation else "",
        class_names=class_names,
        drop_missing=task.drop_missing,
        drop_shared_groups=task.drop_shared_groups,
        other_split="set `test_split` to validation",
        dropped={"long": [longest is not None and len(text) > longest for text in texts]},
    )
    kept, fields = select_rows(columns, [not text for text in texts], reading)
    if fields.get("kind") != "generation":
        fields["labels"] = np.array(fields["labels"], dtype=np.int64)
    facts = {**details, **fields.pop("details"), "drop_duplicates": drop_duplicates}
    dataset = drop_copies(Dataset([texts[row] for row in kept], **fields, details=facts), drop_duplicates)
    return replace(dataset, fingerprint=_fingerprint(dataset))


def _join_texts(values: tuple[Any, ...], task: HubTask) -> str:
    """Return the text of a row; empty if a column has no value, or all are blank."""
    for value, name in zip(values, task.text, strict=True):
        if value is not None and not isinstance(value, str):
            raise DataError(f"column {name!r} contains {type(value).__name__}, not text; name another column")
    text = "" if None in values else "\n".join(values)
    return text if text.strip() else ""


def _fingerprint(dataset: Dataset) -> str:
    """Return the SHA-256 of class names, texts and labels."""
    labels: Any = dataset.labels
    if dataset.kind == "generation":
        return hash_rows(dataset.inputs, labels)
    digest = hashlib.sha256(json.dumps(list(dataset.class_names)).encode())
    digest.update(np.array([len(text.encode()) for text in dataset.inputs], dtype=np.int64).tobytes())
    for text in dataset.inputs:
        digest.update(text.encode())
    digest.update(labels.tobytes())
    return digest.hexdigest()
