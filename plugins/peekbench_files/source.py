"""The data source: rows of a file to texts and labels. No row is dropped unless the options say so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as short
from typing import Literal

from peekbench import DataError, Dataset, Folders
from peekbench.data import group_duplicates, hash_rows, keep_first
from peekbench.formatting import pluralize
from peekbench_files.labels import assign_classes, label_key
from peekbench_files.options import FileOptions
from peekbench_files.reading import Row, read


def load(*, options: FileOptions, folders: Folders) -> Dataset:
    """Load the file.

    Raises
    ------
    DataError
        Where the file cannot be read or is malformed, a text or a label is missing or of the wrong type, a label has no
        class, or there are rows of fewer than two classes.
    """
    path = folders.spec / options.path.expanduser()
    rows = read(path, [*options.text, options.label], options)
    examples = list(_examples(rows, options, path))
    texts = [example.text for example in examples]
    class_names, labels = assign_classes(
        [example.key for example in examples], [example.place for example in examples], options.class_names
    )
    dropped = {"missing": len(rows) - len(texts), "duplicate": 0}
    if options.drop_duplicates != "none":
        texts, labels = _without_duplicates(texts, labels, options.drop_duplicates)
        dropped["duplicate"] = len(rows) - dropped["missing"] - len(texts)
    details = {
        "file": options.path.name,
        "rows_read": len(rows),
        "dropped": dropped,
        "drop_duplicates": options.drop_duplicates,
    }
    if len(set(labels)) < 2:
        raise DataError(
            f"{path}: {pluralize(len(labels), 'row')} of {pluralize(len(set(labels)), 'class', 'classes')} by column "
            f"{options.label!r}; classification needs rows of two or more"
        )
    return Dataset(
        inputs=tuple(texts),
        labels=tuple(labels),
        class_names=class_names,
        instruction=options.instruction,
        fingerprint=hash_rows(texts, labels, class_names),
        details=details,
    )


@dataclass(frozen=True, slots=True)
class Example:
    """A row with a text and a label."""

    place: str
    text: str
    key: str
    """The label, as `label_key` gives it."""


def _examples(rows: Iterable[Row], options: FileOptions, path: Path) -> Iterator[Example]:
    """Check row after row, and leave those out that lack a value where the options say so."""
    columns = [*options.text, options.label]
    for row in rows:
        place = f"{path}, {row.place}"
        missing = [column for column, value in zip(columns, row.values, strict=True) if _is_missing(value)]
        if missing and options.drop_missing:
            continue
        if missing:
            raise DataError(
                f"{place}: nothing in column {missing[0]!r}; fill it in, or set `drop_missing: true` to leave such "
                "rows out"
            )
        *texts, label = row.values
        for column, text in zip(options.text, texts, strict=True):
            if not isinstance(text, str):
                raise DataError(
                    f"{place}: {short(text)} in column {column!r} is {type(text).__name__}, not text; store it as "
                    "text, or name another column as `text`"
                )
        key = label_key(label)
        if key is None:
            raise DataError(
                f"{place}: {short(label)} in column {options.label!r} is {type(label).__name__}, and a label is text "
                "or a whole number; store it as one of them, or name another column as `label`"
            )
        yield Example(place, options.joined_by.join(texts), key)


def _is_missing(value: object) -> bool:
    return value is None or value != value or (isinstance(value, str) and not value.strip())  # the second is NaN


def _without_duplicates(
    texts: list[str], labels: list[int], likeness: Literal["exact", "near"]
) -> tuple[list[str], list[int]]:
    """The first row of each text, unless its labels differ."""
    import numpy as np

    rows = np.flatnonzero(keep_first(group_duplicates(texts, likeness), np.asarray(labels))).tolist()
    return [texts[row] for row in rows], [labels[row] for row in rows]
