"""The data source `files`: convert the rows of a file to texts and labels. Rows are dropped only on request."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from reprlib import repr as short_repr
from typing import Any, Literal, get_args

from peekbench import DataError, Dataset, Folders
from peekbench.data import hash_rows
from peekbench.data.label_sets import (
    LabelSet,
    LabelSets,
    find_unlabeled,
    is_label_set,
    name_label_sets,
    read_indicators,
    read_label_set,
    refuse_hidden_sets,
    refuse_other_separators,
    refuse_written_list,
)
from peekbench.data.labels import (
    HOLD_OUT,
    ClassNames,
    align_classes,
    find_missing,
    group_key,
    name_classes,
    read_reference,
    refuse_hidden,
    refuse_joined,
    refuse_missing,
)
from peekbench.formatting import pluralize
from peekbench.identity import key_of
from peekbench.plugins.names import find_nearest_file
from peekbench.records import Split, TaskKind
from peekbench.records.data import Reference
from peekbench_files.options import FileOptions
from peekbench_files.reading import NoColumnError, Row, nested_values, read, read_class_names

MAX_FILES = 1000  # of each folder
VALIDATION = "use the validation split, with `test_path`, or `test_split` for a folder"


def suggest_file(path: Path, folder: Path) -> str:
    """Return a question that names the nearest file; empty if there is none.

    Parameters
    ----------
    path
        Path that does not exist.
    folder
        Folder where relative paths start. It, its folders, its parent and the current folder are searched.
    """
    searched = dict.fromkeys([path.parent, folder, *_list(folder, folders=True), folder.parent, Path.cwd()])
    files: dict[str, Path] = {}
    for nearby in searched:
        for found in _list(nearby):
            files.setdefault(found.name, found)
    name = path.name if path.name in files else find_nearest_file(path.name, files)
    if not name:
        return ""
    file = files[name]
    return f"did you mean {file.relative_to(folder) if file.is_relative_to(folder) else file}?"


def _list(folder: Path, *, folders: bool = False) -> Iterator[Path]:
    try:
        yield from (file for file in islice(folder.iterdir(), MAX_FILES) if file.is_dir() == folders)
    except OSError:  # no folder, or one that cannot be read
        return


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
    paths = [_resolve(path, folders) for path in (options.path, options.test_path) if path is not None]
    extra_paths = [_resolve(path, folders) for path in (options.extra_path,) if path is not None]
    for path in (*paths, *extra_paths):
        if not path.exists():
            remedy = suggest_file(path, folders.spec) or "check the path."
            raise DataError(
                f"cannot read {path}: No such file or directory; {remedy} Relative paths start at the spec's folder"
            )
    class_names: ClassNames = options.class_names
    paths = find_splits(paths, options.test_split)
    feature_names, numbers = align_classes([read_class_names(path, options) for path in paths])
    class_names = class_names or feature_names
    contents = []
    for path in paths:
        try:
            contents.append(read(path, options.columns(), options))
        except NoColumnError as error:
            if path == paths[0] or repr(options.label) not in str(error):
                raise
            raise DataError(
                f"the labels of {path.name} are not public; {VALIDATION}, or {HOLD_OUT}. {error}"
            ) from error
    examples = [
        example
        for path, split, rows, new in zip(paths, get_args(Split), contents, numbers, strict=False)
        for example in _renumber(_check_rows(rows, options, path, split), new)
    ]
    is_multilabel = any(example.labels is not None for example in examples)
    num_read = sum(map(len, contents))
    num_complete = len(examples)
    if options.drop_shared_groups:
        of_test = {example.group for example in examples if example.split == "test"}
        examples = [example for example in examples if example.split == "test" or example.group not in of_test]
    num_shared = num_complete - len(examples)
    names: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    labels: Sequence[Any] = [0] * len(examples)
    if is_multilabel:
        examples, (names, labels, left_out) = _read_label_sets(examples, options, paths, class_names)
    elif options.kind == "generation":
        labels = [example.key for example in examples]
    elif options.label is not None:
        examples = _drop_missing_labels(examples, options, paths, class_names)
        counts = Counter(example.key for example in examples)
        first = {example.key: example.location for example in reversed(examples)}
        names, positions = name_classes(counts, class_names, " and ".join(map(str, paths)), first.__getitem__)
        labels = [positions[example.key] for example in examples]
    dropped = {"missing": num_read - num_shared - len(examples), "duplicate": 0}
    if num_shared:
        dropped["group of the test split"] = num_shared
    if options.drop_duplicates != "none":
        prompts = [example.text for example in examples]
        kept = _find_distinct(prompts, labels, options.drop_duplicates, is_generation=options.kind == "generation")
        dropped["duplicate"] = len(examples) - len(kept)
        examples, labels = [examples[row] for row in kept], [labels[row] for row in kept]
    _check_content(options, paths, [example.split for example in examples], labels)
    kind: TaskKind = options.kind or ("multilabel" if is_multilabel else "classification")
    if options.label is None:
        labels, kind = [], "language_modeling"
    details: dict[str, Any] = {
        "file": ", ".join(path.name for path in (*paths, *extra_paths)),
        "rows_read": num_read,
        "dropped": dropped,
        "drop_duplicates": options.drop_duplicates,
    }
    if left_out:
        details["labels left out"] = ", ".join(left_out)
    texts = tuple(example.text for example in examples)
    groups = {example.group for example in examples if options.group}
    extra = [text for path in extra_paths for text in _read_extra(path, options, groups)]
    if extra and options.drop_duplicates != "none":
        pooled = (*texts, *extra)
        kept = _find_distinct(pooled, [0] * len(pooled), options.drop_duplicates)
        dropped["duplicate"] += len(pooled) - len(kept)
        extra = [pooled[row] for row in kept if row >= len(texts)]
    if extra_paths and not extra:
        raise DataError(f"{extra_paths[0]}: no row is left for extra texts; add rows, or remove `extra_path`")
    return Dataset(
        inputs=texts,
        labels=tuple(labels),
        class_names=names,
        kind=kind,
        instruction=options.instruction,
        fingerprint=hash_rows(texts, labels or [""] * len(texts), names),
        details=details,
        splits=tuple(example.split for example in examples) if len(paths) > 1 else (),
        extra=tuple(extra),
        groups=tuple(example.group for example in examples) if options.group else (),
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
    for row in _check_rows(rows, plain, path, "test"):
        if row.group in groups:
            raise DataError(
                f"{row.location}: the group {short_repr(row.group)} is in an official split, so this text is not "
                "independent; remove it"
            )
        yield row.text


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
    splits = [paths[0] / split for split in ("train", test_split)]
    if test_split == "train" or not all(split.is_dir() for split in splits):
        names = sorted(folder.name for folder in _list(paths[0], folders=True))
        if "train" not in names and len(names) > 1:  # such as train_clean
            first = next((name for name in names if name.startswith("train")), names[0])
            other = next(name for name in sorted(names, key=lambda name: name != test_split) if name != first)
            raise DataError(
                f"{paths[0]}: its splits are {', '.join(names)}, and none is called train; set `path` to "
                f"{paths[0] / first} and `test_path` to {paths[0] / other}, or to others"
            )
        raise DataError(
            f"{paths[0]}: its splits are {', '.join(names) or 'missing'}, but train and "
            f"{'another one' if test_split == 'train' else test_split} are needed; set "
            f"`test_split` to another one, or `path` to one split, such as {paths[0] / next(iter(names), 'train')}"
        )
    return splits


def _renumber(examples: Iterable[Example], numbers: Mapping[int, int]) -> Iterator[Example]:
    """Yield examples with the numbers of classes that `align_classes` gives."""
    new = {str(old): str(number) for old, number in numbers.items() if old != number}
    for example in examples:
        if not new:
            yield example
        elif example.labels is None:
            yield replace(example, key=new.get(example.key, example.key))
        else:
            yield replace(example, labels=tuple(new.get(label, label) for label in example.labels))


def _read_label_sets(
    examples: Sequence[Example], options: FileOptions, paths: Sequence[Path], class_names: ClassNames
) -> tuple[list[Example], LabelSets]:
    """Return the rows whose labels are known, and these labels."""
    for example in examples:
        if example.labels is None and example.key:
            raise DataError(
                f"{example.location}: the label {short_repr(example.key)} is no list, as those of other rows are; "
                "store a list in each row"
            )
    for path, split in zip(paths, get_args(Split), strict=False):
        if len(paths) > 1:
            sets = [example.labels for example in examples if example.split == split]
            refuse_hidden_sets(sets, path.name, VALIDATION)
    place = f"column {options.label!r}"
    if class_names is None and isinstance(options.label, tuple):
        class_names = options.label
    refuse_other_separators([example.labels for example in examples], options.label_separator, class_names, place)
    is_unlabeled = find_unlabeled(
        [example.labels for example in examples], class_names, place, drop_missing=options.drop_missing,
        locate=lambda row: examples[row].location,
    )  # fmt: skip
    kept = [example for example, drops in zip(examples, is_unlabeled, strict=True) if not drops]
    return kept, name_label_sets([example.labels for example in kept], class_names, place)


def _drop_missing_labels(
    examples: Sequence[Example], options: FileOptions, paths: Sequence[Path], class_names: ClassNames
) -> list[Example]:
    """Return the rows that have a label; on request, or else raise an error if some have none."""
    counts = Counter(example.key for example in examples)
    if class_names is None:
        refuse_joined(counts, f"column {options.label!r}")
    missing = find_missing(counts, class_names)
    for path, split in zip(paths, get_args(Split), strict=False):
        keys = {example.key for example in examples if example.split == split}
        if len(paths) > 1:
            refuse_hidden(keys, counts, class_names, path.name, VALIDATION)
    if not options.drop_missing:
        first = next((example.location for example in examples if example.key in missing), "")
        refuse_missing(counts, class_names, f"column {options.label!r}", first=first)
    return [example for example in examples if example.key not in missing]


def _resolve(path: Path, folders: Folders) -> Path:
    try:
        return folders.spec / path.expanduser()
    except RuntimeError as error:
        raise DataError(f"cannot read {path}: {error}; write the path of the folder") from error


def _check_content(options: FileOptions, paths: Sequence[Path], splits: Sequence[Split], labels: Sequence[Any]) -> None:
    for path, split in zip(paths, get_args(Split), strict=False):
        if split not in splits and labels:
            raise DataError(f"{path}: no row is left for the {split} split; add rows, or give another file")
    if options.label is None:
        if not labels:
            raise DataError(f"{' and '.join(map(str, paths))}: no row has a text; add rows")
        return
    if options.kind is None and len(set(labels)) < 2 and not isinstance(next(iter(labels), None), tuple):
        raise DataError(
            f"{' and '.join(map(str, paths))}: {pluralize(len(labels), 'row')} of "
            f"{pluralize(len(set(labels)), 'class', 'classes')} in column {options.label!r}; classification needs rows "
            "of at least two classes, name another column as `label`"
        )


@dataclass(frozen=True, slots=True)
class Example:
    """A row with a text and, unless the task is language modeling, a label."""

    location: str
    """File and position of the row."""
    text: str
    key: Any
    """Label, as `key_of` returns it; empty without a label. In generation, the reference."""
    labels: LabelSet
    """Labels of a multi-label task; None in other tasks."""
    split: Split
    """Split of the row's file."""
    group: str
    """Group of the row; empty without groups."""


def _check_rows(rows: Iterable[Row], options: FileOptions, path: Path, split: Split) -> Iterator[Example]:
    """Yield the rows as examples; rows without a value are dropped on request."""
    for row in rows:
        location = f"{path}, {row.position}"
        texts = row.values[: len(options.text)]
        missing = [column for column, text in zip(options.text, texts, strict=True) if key_of(text) == ""]
        group = ""
        if options.group is not None:
            group = group_key(row.values[-1], f"{location}, column {options.group!r}")
            if not group:
                missing.append(options.group)
        reference: Reference | None = None
        if options.kind == "generation":
            reference = read_reference(row.values[len(texts)], f"{location}, column {options.label!r}")
        if reference in ("", ()):
            missing.append(str(options.label))
        if missing and options.drop_missing:
            continue
        if missing:
            raise DataError(
                f"{location}: no value in column {missing[0]!r}; add one, or set `drop_missing` to True to drop such "
                "rows"
            )
        for column, text in zip(options.text, texts, strict=True):
            _refuse_objects(text, column, "text", location)
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
        if options.label is None or reference is not None:
            yield Example(location, options.joined_by.join(texts), reference or "", None, split, group)
            continue
        label = row.values[len(texts)]
        _refuse_objects(label, str(options.label), "label", location)
        labels = None
        if isinstance(options.label, tuple):
            values = row.values[len(texts) : len(texts) + len(options.label)]
            labels, label = read_indicators(values, options.label, location), ""
        elif options.label_separator or is_label_set(label):
            labels, label = read_label_set(label, options.label_separator, location), ""
        else:
            refuse_written_list(label, location)
        if labels and SURROGATE.search("".join(labels)):
            label = "".join(labels)
        key = key_of(label)
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
        yield Example(location, options.joined_by.join(texts), key, labels, split, group)


def _refuse_objects(value: Any, column: str, option: str, location: str) -> None:
    """Refuse an object of JSON, or a list of objects, with the name of a value in it."""
    for name, inner in nested_values(value, column):
        if not isinstance(inner, dict | list):
            raise DataError(
                f"{location}: {short_repr(value)} in column {column!r} is no {option}, but contains values; name one, "
                f"such as `{option}: {name}`"
            )


def _find_distinct(
    texts: Sequence[str], labels: Sequence[Any], likeness: Literal["exact", "near"], *, is_generation: bool = False
) -> list[int]:
    """Return the first row of each text, and none of a text whose labels differ."""
    import numpy as np  # noqa: PLC0415 - files load without numpy unless duplicates are dropped

    from peekbench.data import group_duplicates, keep_first  # noqa: PLC0415 - they import numpy

    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    codes = np.array([numbers[label] for label in labels])
    references = codes.tolist() if is_generation else None
    rows: list[int] = np.flatnonzero(keep_first(group_duplicates(texts, likeness, references), codes)).tolist()
    return rows
