"""Loads tasks' data through their sources, checks them, and keeps them for the life of the process."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from peekbench.cache import cache_folder
from peekbench.errors import ContractError, DataError, PeekbenchError
from peekbench.formatting import pluralize
from peekbench.plugins import registry
from peekbench.plugins.entries import DataSourceEntry
from peekbench.records.data import Dataset, Folders, SourceRef, Task, TaskKind

if TYPE_CHECKING:
    from peekbench.spec.components import TaskSpec
    from peekbench.spec.experiment import ExperimentSpec


def load_dataset(
    source: SourceRef | str, options: Mapping[str, Any] | None = None, *, folder: Path | None = None
) -> Dataset:
    """Load a task's rows, from memory where this process has loaded them before.

    Parameters
    ----------
    source
        `Task.source`, or the name of a data source such as 'docstrings.numpy'.
    options
        Options of a source given by name, as in a spec.
    folder
        Where relative paths in options start; by default the current folder.

    Raises
    ------
    PluginError
        Where there is no such source.
    DataError
        Where its data cannot be had or are malformed.
    """
    if isinstance(source, str):
        source = SourceRef(source, options or {}, folder or Path.cwd())
    key = _key(source)
    if key in _remembered:
        return _remembered[key]
    if key not in _loaded:
        _loaded[key] = _load(*key)
    return _loaded[key]


def remember(source: SourceRef, dataset: Dataset) -> None:
    """Serve these rows for that source in this process, instead of loading them."""
    _remembered[_key(source)] = dataset


def forget() -> None:
    """Load rows anew from now on, in case their files have changed; what was to be remembered is."""
    _loaded.clear()


_loaded: dict[tuple[str, str, Path], Dataset] = {}
_remembered: dict[tuple[str, str, Path], Dataset] = {}


def _key(source: SourceRef) -> tuple[str, str, Path]:
    return source.use, json.dumps(dict(source.options), sort_keys=True, default=str), source.folder


def _load(use: str, options: str, folder: Path) -> Dataset:
    entry = registry.find(use, DataSourceEntry)
    try:
        dataset = entry.load(
            options=entry.options.model_validate_json(options), folders=Folders(spec=folder, cache=cache_folder())
        )
    except PeekbenchError:
        raise
    except OSError as error:
        raise DataError(f"{use}: {error}; check that the file exists and can be read") from error
    except Exception as error:
        error.add_note(f"raised by the data source {use} with options {options}")
        raise
    if not isinstance(dataset, Dataset):
        raise ContractError(f"the data source {use} returned a {type(dataset).__name__}; return peekbench.Dataset")
    check(dataset, use)
    return dataset


def check(dataset: Dataset, use: str) -> None:
    """Refuse rows that no design could draw from.

    Raises
    ------
    DataError
        Where inputs are neither texts nor an array of features, or as many as labels; labels are not among 0..C-1, or
        targets not finite; or details cannot be kept. What texts may look like is up to the source.
    """
    _check_form(dataset, use)
    if len(dataset.inputs) != len(dataset.labels):
        raise DataError(
            f"{use}: {pluralize(len(dataset.inputs), 'input')} but {pluralize(len(dataset.labels), 'label')}; "
            "each row needs one of each"
        )
    if dataset.kind == "regression":
        strange = [row for row, target in enumerate(dataset.labels) if not math.isfinite(target)]
        if strange:
            raise DataError(
                f"{use}: the target of row {strange[0]} is no finite number; mend or drop "
                f"{pluralize(len(strange), 'row')}"
            )
        return
    names = list(dataset.class_names)
    if len(names) < 2:
        raise DataError(f"{use}: {pluralize(len(names), 'class', 'classes')}; classification needs two or more")
    if len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
        raise DataError(f"{use}: the class names {names} are not all different texts; rename some")
    for label in class_counts(dataset):
        if label not in range(len(names)):
            raise DataError(
                f"{use}: label {label!r} is outside 0..{len(names) - 1}, the indices of its class names; "
                "name every class, or drop the rows"
            )


def _check_form(dataset: Dataset, use: str) -> None:
    """Refuse what is no text, features, labels or details at all."""
    inputs: Any = dataset.inputs
    labels: Any = dataset.labels
    if dataset.kind not in get_args(TaskKind):
        raise DataError(f"{use}: kind {dataset.kind!r}; a task's kind is one of {', '.join(get_args(TaskKind))}")
    if not _is_array(inputs, ndim=2):
        if dataset.kind == "regression" or not isinstance(inputs, Sequence) or isinstance(inputs, str):
            raise DataError(
                f"{use}: inputs are a {type(inputs).__name__}; give a list of texts, or for regression an array of "
                "numbers of shape (n, n_features)"
            )
        if isinstance(inputs, list | tuple):  # others may be large and on disk
            for row, text in enumerate(inputs):
                if not isinstance(text, str):
                    raise DataError(f"{use}: the input of row {row} is {text!r}, no text; mend or drop the row")
    if not _is_array(labels, ndim=1) and not isinstance(labels, Sequence):
        raise DataError(f"{use}: labels are a {type(labels).__name__}; give a list or an array of shape (n,)")
    try:
        json.dumps(dict(dataset.details))
    except (TypeError, ValueError) as error:
        raise DataError(f"{use}: details cannot be kept as JSON: {error}; give plain values") from error


def _is_array(values: Any, ndim: int) -> bool:
    """Whether that is a numpy array of numbers, which need not be imported to know it."""
    return getattr(values, "ndim", None) == ndim and getattr(getattr(values, "dtype", None), "kind", "") in "biuf"


def class_counts(dataset: Dataset) -> dict[int, int]:
    """Rows of each class."""
    labels: Any = dataset.labels
    return dict(Counter(labels if isinstance(labels, Sequence) else labels.tolist()))


def make_task(spec: ExperimentSpec, task: TaskSpec) -> Task:
    """What methods are told about a task."""
    source = spec.source(task)
    dataset = load_dataset(source)
    return Task(task.name, dataset.kind, tuple(dataset.class_names), dataset.instruction, source)


def fingerprint(dataset: Dataset) -> str:
    """SHA-256 of the rows, or the source's own fingerprint."""
    if dataset.fingerprint:
        return dataset.fingerprint
    return hash_rows(dataset.inputs, dataset.labels, dataset.class_names)


def hash_rows(inputs: Any, labels: Any, class_names: Sequence[str] = ()) -> str:
    """SHA-256 over texts (or rows of features) and labels, in order; hexadecimal."""
    digest = hashlib.sha256(json.dumps(list(class_names)).encode())
    if isinstance(inputs, Sequence):
        for text, label in zip(inputs, labels, strict=True):
            row = text.encode("utf-8", "surrogatepass")
            digest.update(f"{len(row)}:{label}:".encode())
            digest.update(row)
    else:
        import numpy as np

        for array in (np.asarray(inputs, dtype="<f8"), np.asarray(labels, dtype="<f8")):
            digest.update(repr(array.shape).encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
