"""Loads the data of tasks through their data sources, checks them, and caches them in the process."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from pydantic import ValidationError

from peekbench.cache import cache_folder
from peekbench.data.labels import check_class_names
from peekbench.errors import DataError, PluginError, public
from peekbench.formatting import pluralize, shorten
from peekbench.identity import describe_difference, find_alike, key_of, spell
from peekbench.plugins import registry
from peekbench.plugins.boundary import Foreign
from peekbench.plugins.entries import DataSourceEntry
from peekbench.plugins.graders import describe_grader, find_grader
from peekbench.plugins.names import locate_code
from peekbench.plugins.validation import DATA_SUFFIXES
from peekbench.records.data import Dataset, Folders, SourceRef, Split, Task, TaskKind, as_texts
from peekbench.spec.components import TaskSpec, make_component
from peekbench.spec.experiment import ExperimentSpec

GIGABYTE = 10**9
MAX_RATIO = 50  # unpacked size relative to the size of the file
ALWAYS_ALLOWED = GIGABYTE // 4  # bytes
NEVER_ALLOWED = 16 * GIGABYTE  # bytes, unless the user allows more


@public
def load_dataset(
    source: SourceRef | str,
    options: Mapping[str, Any] | None = None,
    *,
    folder: Path | None = None,
    kind: Literal["language_modeling"] | None = None,
) -> Dataset:
    r"""Load a task's rows. Rows that this process has loaded before come from memory.

    Parameters
    ----------
    source
        `Task.source`, or the name of a data source such as 'docstrings.numpy'.
    options
        Options of a source given by name, as in a spec.
    folder
        Folder that relative paths in options start from; the current folder by default.
    kind
        'language_modeling' to leave out the labels of a source given by name.

    Returns
    -------
    Dataset
        All rows.

    Raises
    ------
    PluginError
        If the data source does not exist, or its code raises an exception.
    DataError
        If its data are unavailable or malformed.
    SpecError
        If the options are invalid.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "tickets.csv"
    ...     _ = path.write_text("text,label\nIt crashes.,bug\nHow do I log in?,question\n")
    ...     dataset = load_dataset("files", {"path": str(path)})
    >>> dataset.class_names
    ('bug', 'question')
    """
    if isinstance(source, str) and source.endswith(DATA_SUFFIXES):
        raise DataError(f"{source!r} is a file, not a data source; write load_dataset('files', {{'path': {source!r}}})")
    if isinstance(source, Mapping):
        raise DataError("a data source is a name, not a mapping; write load_dataset(USE, OPTIONS)")
    if isinstance(source, str):
        source = SourceRef(source, options or {}, folder or Path.cwd(), kind)
    key = _key(source)
    if key in _remembered:
        return _remembered[key]
    if key not in _loaded:
        _loaded[key] = _load(*key)
    return _loaded[key]


def remember(source: SourceRef, dataset: Dataset) -> None:
    """Use these rows for a source in this process instead of loading them."""
    _remembered[_key(source)] = dataset


def forget() -> None:
    """Load rows again from now on, because files may have changed. Rows passed to `remember` stay in use."""
    _loaded.clear()


Key: TypeAlias = tuple[str, str, Path, TaskKind | None]
_loaded: dict[Key, Dataset] = {}
_remembered: dict[Key, Dataset] = {}


def _key(source: SourceRef) -> Key:
    use = locate_code(source.use, source.folder)
    return use, json.dumps(dict(source.options), sort_keys=True, default=str), source.folder, source.kind


def _load(use: str, options: str, folder: Path, kind: TaskKind | None) -> Dataset:
    entry = registry.find(use, DataSourceEntry)
    try:
        parsed = entry.options.model_validate_json(options)
    except ValidationError:
        make_component(TaskSpec, use, json.loads(options))  # raises an error that names the option and the nearest one
        raise
    folders = Folders(spec=folder, cache=cache_folder())
    source = Foreign(f"data source {use}", use, parsed)
    try:
        dataset: Dataset = source.call(entry.load, returns=Dataset, options=parsed, folders=folders)
    except PluginError as error:
        if isinstance(error.__cause__, OSError):
            remedy = "check that the file exists and is readable"
            raise DataError(f"{use}: {error.__cause__}; {remedy}") from error.__cause__
        raise
    check_dataset(dataset, use)
    if kind is not None:
        return leave_out_labels(dataset, use)
    return dataset


def leave_out_labels(dataset: Dataset, use: str) -> Dataset:
    """Return the texts of a dataset as data for language modeling.

    Parameters
    ----------
    dataset
        Rows with or without labels.
    use
        Name of the data source, for messages.

    Raises
    ------
    DataError
        If the inputs are not texts.
    """
    if dataset.kind == "language_modeling":
        return dataset
    if not isinstance(dataset.inputs, Sequence):
        raise DataError(f"{use}: its inputs are not texts, which language modeling needs; remove `kind` from the task")
    identifier = ""
    if dataset.fingerprint:
        identifier = _hash(f"{dataset.fingerprint} language_modeling")
    return replace(dataset, kind="language_modeling", labels=(), class_names=(), instruction="", fingerprint=identifier)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


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
        not finite, inputs for language modeling are not texts, or details are not JSON-serializable.
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
            f"{use}: the groups {' and '.join(map(spell, variants))} differ only by {describe_difference(variants)}; "
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
    for name, what in (("class_names", "class 0, 1, ..."), ("splits", "the rows"), ("groups", "the rows")):
        values = getattr(dataset, name)
        if not isinstance(values, list | tuple):  # a set or a series has another order
            raise DataError(f"{use}: {name} are a {type(values).__name__}; give a list in the order of {what}")
    try:
        json.dumps(dict(dataset.details))
    except (TypeError, ValueError) as error:
        raise DataError(f"{use}: details are not JSON-serializable: {error}; give plain values") from error


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
    return (
        f"train sets need a row of each {what}, but none has {absent[0]!r}; remove it from its class names, or add rows"
    )


def make_task(spec: ExperimentSpec, task: TaskSpec) -> Task:
    """Return the facts about a task that methods receive."""
    source = spec.source(task)
    dataset = load_dataset(source)
    grader = None
    if dataset.kind == "generation":
        grader = find_grader(task.grader or dataset.grader, source.folder)
    return Task(task.name, dataset.kind, tuple(dataset.class_names), dataset.instruction, source, grader)


def fingerprint(dataset: Dataset) -> str:
    """Return the SHA-256 of the rows, or the source's own fingerprint, with splits, groups and extra inputs."""
    rows = dataset.fingerprint or hash_rows(dataset.inputs, dataset.labels, dataset.class_names)
    if dataset.splits:
        rows = _hash("\x1f".join([rows, *dataset.splits]))
    if dataset.groups:
        rows = _hash(json.dumps([rows, *map(str, dataset.groups)]))
    if dataset.kind == "generation":
        rows = _hash(json.dumps([rows, describe_grader(dataset.grader)]))
    if len(dataset.extra) and not hasattr(dataset.extra, "iloc"):  # the fingerprint of a data frame has its extra rows
        rows = _hash(rows + hash_rows(dataset.extra, [0] * len(dataset.extra)))
    return rows


def hash_rows(inputs: Any, labels: Any, class_names: Sequence[str] = ()) -> str:
    """Hash inputs and labels in order.

    Parameters
    ----------
    inputs
        Texts, or an array of features of shape (n, n_features).
    labels
        Labels, targets or references, shape (n,), or labels of shape (n, n_labels).
    class_names
        Names of the classes, which are hashed too.

    Returns
    -------
    str
        SHA-256, hexadecimal.

    Examples
    --------
    >>> hash_rows(["It crashes."], [0], ["bug"]) == hash_rows(["It crashes."], [1], ["bug"])
    False
    """
    digest = hashlib.sha256(json.dumps(list(class_names)).encode())
    if isinstance(inputs, Sequence):
        if getattr(labels, "ndim", 1) == 2:  # the text of a long array is abbreviated
            labels = labels.tolist()
        for text, label in zip(inputs, labels, strict=True):
            if isinstance(label, list):
                label = tuple(label)
            elif isinstance(label, str):
                label = repr(label)
            row = text.encode("utf-8", "surrogatepass")
            digest.update(f"{len(row)}:{label}:".encode())
            digest.update(row)
    else:
        import numpy as np  # noqa: PLC0415 - checking a spec whose tasks are texts must not import numpy

        for array in (np.asarray(inputs, dtype="<f8"), np.asarray(labels, dtype="<f8")):
            digest.update(repr(array.shape).encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def size_limit(size: int, max_gigabytes: float | None = None) -> int:
    """Return the largest unpacked size of a file in bytes: 50 times its size, but at least 0.25 and at most 16 GB.

    Parameters
    ----------
    size
        Size of the file in bytes.
    max_gigabytes
        Limit that the user has set instead.

    Returns
    -------
    int
        Number of bytes.

    Examples
    --------
    >>> size_limit(100_000_000), size_limit(100_000_000, max_gigabytes=2)
    (5000000000, 2000000000)
    """
    if max_gigabytes is not None:
        return int(max_gigabytes * GIGABYTE)
    return min(max(MAX_RATIO * size, ALWAYS_ALLOWED), NEVER_ALLOWED)


def with_sizes(spec: ExperimentSpec) -> ExperimentSpec:
    """Return a spec with the numbers of rows of official splits instead of `all`.

    Raises
    ------
    DataError
        If data are unavailable, or have no official splits.
    """
    if spec.design.num_train and spec.design.num_test:
        return spec
    rows: dict[str, Counter[str]] = {}
    for task in spec.tasks:
        dataset = load_dataset(spec.source(task))
        rows[task.name] = Counter(dataset.splits)
        if not rows[task.name]:
            raise DataError(
                f"task {task.name}: it has no official train and test split, which this design needs; name both, such "
                "as with the options `path: train.csv` and `test_path: test.csv` of files, or `splits: official` of hf"
            )
        if len(dataset.extra):
            rows[task.name]["extra"] = len(dataset.extra)
            if len(spec.design.folds) > 1:
                raise DataError(
                    f"task {task.name}: with extra texts, fits adapt to as many texts as the test split has, whatever "
                    f"the number of folds; use one of {[*spec.design.folds]}"
                )
            continue
        sizes = spec.design.sizes_of_folds(rows[task.name]["test"])
        if len(set(sizes)) < len(sizes):
            raise DataError(
                f"task {task.name}: some of {[*spec.design.folds]} folds of {rows[task.name]['test']} test rows have "
                "the same size; use fewer numbers of folds"
            )
    return spec.with_sizes(rows)
