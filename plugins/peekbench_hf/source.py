"""The data sources `hf.*`: load a task from the cache, a local mirror or the Hub."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, get_args

from peekbench import DataError, Dataset, Folders
from peekbench.errors import UnavailableError
from peekbench.records import Split, TaskKind
from peekbench_hf.definition import HubFiles, HubTask
from peekbench_hf.facts import record_facts
from peekbench_hf.locating import LocatedFiles, locate, locate_in_mirror
from peekbench_hf.options import HubDatasetOptions, HubOptions, HubTaskOptions
from peekbench_hf.prepared import PreparedTask, find_prepared, store
from peekbench_hf.prompts import with_prompt
from peekbench_hub.downloads import NotFoundError

MIRROR_VARIABLE = "PEEKBENCH_HUB_MIRROR"
CACHE_VERSION = 5  # increase it if the same definition and files would give other rows
NOT_OF_ROWS = ("name", "locations", "instruction", "num_rows", "license", "citation", "note")
"""Fields of a task's definition that do not determine its rows."""


def load_task(*, options: HubTaskOptions, folders: Folders, task: HubTask) -> Dataset:
    """Load a task.

    Parameters
    ----------
    options
        Revision, mirror, splits, duplicates, instruction and class names.
    folders
        Folders of the spec and the cache.
    task
        Definition of the task.

    Raises
    ------
    DataError
        If the files are unavailable, or do not match the definition or the class names.
    """
    return _load(with_prompt(task, options, folders), options, folders)


def load_dataset(*, options: HubDatasetOptions, folders: Folders) -> Dataset:
    """Load any dataset of the Hub.

    Parameters
    ----------
    options
        Dataset, columns and classes.
    folders
        Folders of the spec and the cache.

    Raises
    ------
    DataError
        If the files are unavailable or do not match the options.
    """
    return _load(options.task(), options, folders)


def pin_task(*, options: HubTaskOptions, folders: Folders, task: HubTask) -> Mapping[str, Any]:
    """Return the option that pins a task to its current commit; empty if a mirror provides it.

    Parameters
    ----------
    options
        As for `load_task`.
    folders
        Folders of the spec and the cache.
    task
        Definition of the task.

    Raises
    ------
    DataError
        As for `load_task`.
    """
    return _pin(task, options, folders)


def pin_dataset(*, options: HubDatasetOptions, folders: Folders) -> Mapping[str, Any]:
    """Return the option that pins a dataset to its current commit; see `pin_task`."""
    return _pin(options.task(), options, folders)


def _pin(task: HubTask, options: HubOptions, folders: Folders) -> Mapping[str, Any]:
    with _named(f"hf.{task.name}"):
        revision = _locate(task, options, folders)[0].revision
    return {"revision": revision} if revision else {}


def _load(task: HubTask, options: HubOptions, folders: Folders) -> Dataset:
    with _named(f"hf.{task.name}"):
        located = _locate(task, options, folders)
        path = _cache_path(task, located, options, folders)
        prepared = find_prepared(path)
        if prepared is None:
            prepared = store(_prepare(task, located, options), path)
            is_default = options.drop_duplicates == "none" and options.splits == "pooled"
            if is_default and not isinstance(options, HubDatasetOptions):
                record_facts(task, folders, prepared)
    fingerprint = prepared.fingerprint
    if isinstance(options, HubTaskOptions) and options.prompts is not None:
        # The spec has only the path of the file, so the data tell whether its instruction has changed.
        fingerprint = hashlib.sha256(f"{fingerprint}\x1f{task.instruction}".encode()).hexdigest()
    names: tuple[str, ...] = prepared.class_names
    labels: Any = prepared.labels
    kind: TaskKind = "classification"
    if labels.ndim == 2:
        kind = "multilabel"
    elif task.is_generation:
        references = [json.loads(name) for name in names]
        names, labels, kind = (), [references[label] for label in labels.tolist()], "generation"
    splits: tuple[Split, ...] = ()
    if prepared.num_test:
        numbers = (len(prepared.labels) - prepared.num_test, prepared.num_test)
        splits = tuple(split for split, number in zip(get_args(Split), numbers, strict=True) for _ in range(number))
    return Dataset(
        inputs=prepared.texts,
        labels=labels,
        class_names=names,
        kind=kind,
        instruction=task.instruction,
        fingerprint=fingerprint,
        details=prepared.details,
        splits=splits,
        groups=prepared.groups,
    )


@contextmanager
def _named(place: str) -> Iterator[None]:
    """Put the place in front of errors."""
    try:
        yield
    except UnavailableError as error:
        raise UnavailableError(f"{place}: {error.resource}", error.reason) from error
    except (DataError, NotFoundError) as error:
        raise DataError(f"{place}: {error}") from error


def _locate(task: HubTask, options: HubOptions, folders: Folders) -> list[LocatedFiles]:
    """Return the task's files at the first of its locations that exists, and at the same commit those of `test_split`.

    The second is only for official splits.
    """
    mirror = None
    if options.data_dir is not None:
        mirror = folders.spec / options.data_dir.expanduser()
    elif os.environ.get(MIRROR_VARIABLE):
        mirror = Path(os.environ[MIRROR_VARIABLE]).absolute()
    find: Any = partial(locate, cache=folders.cache)
    if mirror is not None:
        find = partial(locate_in_mirror, mirror=mirror)
        if not mirror.is_dir():
            raise DataError(
                f"the mirror folder {mirror} does not exist; create it, or correct `data_dir` or ${MIRROR_VARIABLE}"
            )
    train, problems = None, []
    for location in task.locations:
        try:
            train = find(location, options.revision)
            break
        except NotFoundError as error:
            problems.append(str(error))
    if train is None:
        raise DataError(
            f"{'; '.join(dict.fromkeys(problems))}. Correct the options of the task, or load a file of your own with "
            "the data source `files`"
        )
    if options.splits == "pooled":
        return [train]
    test = train.location.test_split(options.test_split)
    try:
        if test is None:
            raise NotFoundError(f"{train.origin}: its name does not contain `train`")
        return [train, find(test, train.revision or options.revision)]
    except NotFoundError as error:
        raise DataError(
            f"no split named {options.test_split}: {error}; set `test_split` to another one, such as validation, or "
            "`splits` to pooled"
        ) from error


def _cache_path(task: HubTask, located: list[LocatedFiles], options: HubOptions, folders: Folders) -> Path:
    definition = {name: value for name, value in asdict(task).items() if name not in NOT_OF_ROWS}
    classes = list((task.classes or {}).items())  # whose order counts
    identities = [files.identity for files in located]
    key = repr((CACHE_VERSION, definition, classes, identities, options.drop_duplicates))
    return folders.cache / "hf" / f"{task.name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.arrow"


def _prepare(task: HubTask, located: list[LocatedFiles], options: HubOptions) -> PreparedTask:
    """Download the task's files if necessary, and convert them to rows."""
    from peekbench_hf.preparation import make_rows  # noqa: PLC0415 - slow to import, and unused if rows are cached
    from peekbench_hf.reading import read  # noqa: PLC0415 - as above

    location = located[0].location
    details = {
        "from": located[0].origin,
        "repository": location.repository if isinstance(location, HubFiles) else "",
        "revision": located[0].revision,
        "license": task.license,
        "citation": task.citation,
        "note": task.note,
    }
    if len(located) > 1:
        details["test split from"] = located[1].origin
    label = location.label or task.label
    splits = [read(files.fetch(), task, label) for files in located]
    with _named(str(location)):
        return make_rows(splits, task, label, options.drop_duplicates, details)
