"""The data source `files`: convert the rows of a file to texts and labels. Rows are dropped only on request."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from reprlib import repr as short_repr
from typing import Any

from peekbench import DataError, Dataset, Folders
from peekbench.data import hash_rows
from peekbench.data.labels import HOLD_OUT, read_indicators
from peekbench.data.overlap import drop_copies
from peekbench.data.rows import Columns, Reading, select_rows
from peekbench.identity import key_of
from peekbench_files.options import FileOptions
from peekbench_files.reading import NoColumnError, Row, read, read_class_names

VALIDATION = "use the validation split, with `test_path`, or `test_split` for a folder"
SURROGATE = re.compile("[\ud800-\udfff]")
"""Characters that JSON can escape but no encoding can store: halves of a surrogate pair."""


def load(*, options: FileOptions, folders: Folders) -> Dataset:
    """Load the file, or the files of the official splits.

    Parameters
    ----------
    options
        Files, columns and classes.
    folders
        Folders of the spec and the cache.

    Raises
    ------
    DataError
        If a file cannot be read or is malformed, a text or a label is missing or has the wrong type, a label has no
        class, the rows have fewer than two classes, or a split has no rows.
    """
    paths = [folders.spec / path.expanduser() for path in (options.path, options.test_path) if path is not None]
    paths = find_splits(paths, options.test_split)
    contents = [read(paths[0], options.columns(), options)]
    try:
        contents += [read(path, options.columns(), options) for path in paths[1:]]
    except NoColumnError as error:
        if repr(options.label) not in str(error):
            raise
        raise DataError(f"the labels of the test split are not public; {VALIDATION}, or {HOLD_OUT}. {error}") from error
    texts = [_read_text(row, options, path) for path, rows in zip(paths, contents, strict=True) for row in rows]
    class_names = options.class_names
    if class_names is None and isinstance(options.label, tuple):
        class_names = options.label
    reading = Reading(
        f"column {options.label!r}",
        kind="language_modeling" if options.label is None else options.kind or "",
        class_names=class_names,
        separator=options.label_separator,
        drop_missing=options.drop_missing,
        drop_shared_groups=options.drop_shared_groups,
        other_split=VALIDATION,
    )
    columns = [_make_columns(path, rows, options) for path, rows in zip(paths, contents, strict=True)]
    kept, fields = select_rows(columns, [not text for text in texts], reading)
    details = {**fields.pop("details"), "drop_duplicates": options.drop_duplicates}
    files = [*paths]
    extra: tuple[str, ...] = ()
    if options.extra_path is not None:
        files.append(folders.spec / options.extra_path.expanduser())
        extra = tuple(_read_extra(files[-1], options, {*fields["groups"]}))
        if not extra:
            raise DataError(f"{files[-1]}: no row is left for extra texts; add rows, or remove `extra_path`")
    details["file"] = ", ".join(path.name for path in files)
    dataset = Dataset(
        tuple(texts[row] for row in kept),
        **fields,
        details=details,
        extra=extra,
        instruction=options.instruction,
    )
    dataset = drop_copies(dataset, options.drop_duplicates)
    labels = dataset.labels
    if options.label is None:
        labels = [""] * len(dataset.inputs)
    return replace(dataset, fingerprint=hash_rows(dataset.inputs, labels, dataset.class_names))


def _make_columns(path: Path, rows: Sequence[Row], options: FileOptions) -> Columns:
    first = len(options.text)
    labels: list[Any] = [None] * len(rows)
    if isinstance(options.label, str):
        labels = [_check_characters(row.values[first], f"{path}, {row.position}") for row in rows]
    elif options.label is not None:
        names = options.label
        labels = [
            read_indicators(row.values[first : first + len(names)], names, f"{path}, {row.position}") for row in rows
        ]
    return Columns(
        labels,
        [row.values[-1] for row in rows] if options.group else None,
        read_class_names(path, options),
        path.name,
        lambda row: f"{path}, {rows[row].position}",
    )


def _read_extra(path: Path, options: FileOptions, groups: Collection[str]) -> Iterator[str]:
    """Yield the texts of a file of private texts, whose labels are not read, and refuse those of groups of splits."""
    plain = options.model_copy(update={"label": None, "kind": None})
    try:
        rows = read(path, plain.columns(), plain)
    except NoColumnError as error:
        if options.group is None or repr(options.group) not in str(error):
            raise
        plain = plain.model_copy(update={"group": None})  # nothing is known of their groups
        rows = read(path, plain.columns(), plain)
    for row in rows:
        if plain.group is not None and key_of(row.values[-1]) in groups:
            raise DataError(
                f"{path}, {row.position}: the group {short_repr(row.values[-1])} is in an official split, so this text "
                "is not independent; remove it"
            )
        if text := _read_text(row, plain, path):
            yield text
        elif not options.drop_missing:
            raise DataError(f"{path}, {row.position}: no text; add it, or set `drop_missing` to True")


def find_splits(paths: list[Path], test_split: str) -> list[Path]:
    """Return the folders of the splits `train` and `test_split` of a saved `DatasetDict`, and other paths as they are.

    Raises
    ------
    DataError
        If it does not have these splits.
    """
    if len(paths) > 1 or not (paths[0] / "dataset_dict.json").is_file():
        if test_split != "test":
            raise DataError(
                f"{paths[0]}: `test_split` is {test_split!r}, but this is no folder of a DatasetDict; remove it, or "
                "set `test_path` to the file of that split"
            )
        return paths
    splits = [paths[0] / "train", paths[0] / test_split]
    if test_split == "train" or not all(split.is_dir() for split in splits):
        names = ", ".join(sorted(folder.name for folder in paths[0].iterdir() if folder.is_dir()))
        raise DataError(
            f"{paths[0]}: its splits are {names or 'missing'}, but train and {test_split} are needed; set "
            "`test_split` to another one, or `path` and `test_path` to the folders of two splits"
        )
    return splits


def _read_text(row: Row, options: FileOptions, path: Path) -> str:
    """Return the text of a row; empty if one of its columns has no value."""
    texts = row.values[: len(options.text)]
    if any(key_of(text) == "" for text in texts):
        return ""
    for column, text in zip(options.text, texts, strict=True):
        if not isinstance(text, str):
            raise DataError(
                f"{path}, {row.position}: {short_repr(text)} in column {column!r} is {type(text).__name__}, not text; "
                "store it as text, or name another column as `text`"
            )
        _check_characters(text, f"{path}, {row.position}")
    return "\n".join(texts)


def _check_characters(value: Any, place: str) -> Any:
    """Return a value without halves of surrogate pairs."""
    if isinstance(value, str) and SURROGATE.search(value):
        raise DataError(
            f"{place}: {short_repr(value)} has half of a surrogate pair, which is no character and cannot be stored; "
            "replace it"
        )
    return value
