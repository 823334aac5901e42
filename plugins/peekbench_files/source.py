"""The data source `files`: convert the rows of a file to texts and labels. Rows are dropped only on request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as short_repr
from typing import Literal

from peekbench import DataError, Dataset, Folders
from peekbench.data import hash_rows
from peekbench.formatting import pluralize
from peekbench_files.labels import assign_classes, label_key
from peekbench_files.options import FileOptions
from peekbench_files.reading import read
from peekbench_files.row import Row

SURROGATE = re.compile("[\ud800-\udfff]")
"""Characters that JSON can escape but no encoding can store: halves of a surrogate pair."""


def load(*, options: FileOptions, folders: Folders) -> Dataset:
    """Load the file.

    Parameters
    ----------
    options
        File, columns and classes.
    folders
        Folders of the spec and the cache.

    Raises
    ------
    DataError
        If the file cannot be read or is malformed, a text or a label is missing or has the wrong type, a label has no
        class, or the rows have fewer than two classes.
    """
    try:
        path = folders.spec / options.path.expanduser()
    except RuntimeError as error:
        raise DataError(f"cannot read {options.path}: {error}; write the path of the folder") from error
    rows = read(path, [*options.text, options.label], options)
    examples = list(_check_rows(rows, options, path))
    texts = [example.text for example in examples]
    class_names, labels = assign_classes(
        [example.key for example in examples], [example.location for example in examples], options.class_names
    )
    dropped = {"missing": len(rows) - len(texts), "duplicate": 0}
    if options.drop_duplicates != "none":
        texts, labels = _drop_duplicates(texts, labels, options.drop_duplicates)
        dropped["duplicate"] = len(rows) - dropped["missing"] - len(texts)
    details = {
        "file": options.path.name,
        "rows_read": len(rows),
        "dropped": dropped,
        "drop_duplicates": options.drop_duplicates,
    }
    if len(set(labels)) < 2:
        raise DataError(
            f"{path}: {pluralize(len(labels), 'row')} of {pluralize(len(set(labels)), 'class', 'classes')} in column "
            f"{options.label!r}; classification needs rows of at least two classes, name another column as `label`"
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

    location: str
    """File and position of the row."""
    text: str
    key: str
    """Label, as `label_key` returns it."""


def _check_rows(rows: Iterable[Row], options: FileOptions, path: Path) -> Iterator[Example]:
    """Yield the rows as examples; rows without a value are dropped on request."""
    columns = [*options.text, options.label]
    for row in rows:
        location = f"{path}, {row.position}"
        missing = [column for column, value in zip(columns, row.values, strict=True) if _is_missing(value)]
        if missing and options.drop_missing:
            continue
        if missing:
            raise DataError(
                f"{location}: no value in column {missing[0]!r}; add one, or set `drop_missing: true` to drop such rows"
            )
        *texts, label = row.values
        for column, text in zip(options.text, texts, strict=True):
            if not isinstance(text, str):
                raise DataError(
                    f"{location}: {short_repr(text)} in column {column!r} is {type(text).__name__}, not text; store it "
                    "as text, or name another column as `text`"
                )
            if SURROGATE.search(text):
                raise DataError(
                    f"{location}: column {column!r} has half of a surrogate pair, {short_repr(text)}, which is no "
                    "character and cannot be stored; replace it"
                )
        key = label_key(label)
        if key is not None and SURROGATE.search(key):
            raise DataError(
                f"{location}: the label {short_repr(key)} has half of a surrogate pair, which is no character and "
                "cannot be stored; replace it"
            )
        if key is None:
            raise DataError(
                f"{location}: {short_repr(label)} in column {options.label!r} is {type(label).__name__}, but a label "
                "is text or an integer; store it as one of them, or name another column as `label`"
            )
        yield Example(location, options.joined_by.join(texts), key)


def _is_missing(value: object) -> bool:
    return value is None or value != value or (isinstance(value, str) and not value.strip())  # NaN differs from itself


def _drop_duplicates(
    texts: list[str], labels: list[int], likeness: Literal["exact", "near"]
) -> tuple[list[str], list[int]]:
    """Keep the first row of each text; if the labels of a text differ, keep none."""
    import numpy as np  # noqa: PLC0415 - files load without numpy unless duplicates are dropped

    from peekbench.data import group_duplicates, keep_first  # noqa: PLC0415 - they import numpy

    rows = np.flatnonzero(keep_first(group_duplicates(texts, likeness), np.asarray(labels))).tolist()
    return [texts[row] for row in rows], [labels[row] for row in rows]
