"""Loads the data of tasks through their data sources, checks them, and caches them in the process."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import ValidationError

from peekbench.cache import cache_folder
from peekbench.data.dataset_checks import check_dataset
from peekbench.errors import DataError, PluginError, public
from peekbench.plugins import registry
from peekbench.plugins.boundary import Foreign
from peekbench.plugins.entries import DataSourceEntry
from peekbench.plugins.graders import describe_grader, find_grader
from peekbench.plugins.names import locate_code
from peekbench.plugins.validation import DATA_SUFFIXES
from peekbench.records.data import Dataset, Folders, SourceRef, Task, TaskKind
from peekbench.spec.components import TaskSpec, make_component
from peekbench.spec.experiment import ExperimentSpec


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
