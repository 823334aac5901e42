"""The data sources `hf.*`: load a task from the cache, a local mirror or the Hub."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from peekbench import DataError, Dataset, Folders
from peekbench_hf.definition import HubFiles, HubTask
from peekbench_hf.locating import LocatedFiles, locate, locate_in_mirror
from peekbench_hf.options import HubOptions, HubTaskOptions
from peekbench_hf.prepared import find_prepared, store
from peekbench_hf.prompts import with_prompt
from peekbench_hub.downloads import NotFoundError

MIRROR_VARIABLE = "PEEKBENCH_HUB_MIRROR"
CACHE_VERSION = 7  # increase it if the same definition and files would give other rows
NOT_OF_ROWS = ("name", "locations", "instruction", "num_rows", "license", "citation", "note")
"""Fields of a task's definition that do not determine its rows."""


def load(*, options: HubOptions, folders: Folders, task: HubTask | None = None) -> Dataset:
    """Load one of the defined tasks, or any dataset of the Hub.

    Parameters
    ----------
    options
        Revision, mirror, splits and duplicates; instruction and class names, or dataset and columns.
    folders
        Folders of the spec and the cache.
    task
        Definition of the task; that of the options by default.

    Raises
    ------
    DataError
        If the files are unavailable, or do not match the definition or the class names.
    """
    if task is not None and isinstance(options, HubTaskOptions):
        task = with_prompt(task, options, folders)
    task = task or options.task()
    with _named(f"hf.{task.name}"):
        located = _locate(task, options, folders)
        path = _cache_path(task, located, options, folders)
        dataset = find_prepared(path)
        if dataset is None:
            dataset = store(_prepare(task, located, options), path)
    fingerprint = dataset.fingerprint
    if isinstance(options, HubTaskOptions) and options.prompts is not None:
        # The spec has only the path of the file, so the data tell whether its instruction has changed.
        fingerprint = hashlib.sha256(f"{fingerprint}\x1f{task.instruction}".encode()).hexdigest()
    return replace(dataset, instruction=task.instruction, fingerprint=fingerprint)


def pin(*, options: HubOptions, folders: Folders, task: HubTask | None = None) -> Mapping[str, Any]:
    """Return the option that pins a task to its current commit; empty if a mirror provides it.

    Parameters
    ----------
    options, folders, task
        As for `load`.

    Raises
    ------
    DataError
        As for `load`.
    """
    task = task or options.task()
    with _named(f"hf.{task.name}"):
        revision = _locate(task, options, folders)[0].revision
    return {"revision": revision} if revision else {}


@contextmanager
def _named(place: str) -> Iterator[None]:
    """Put the place in front of errors."""
    try:
        yield
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


def _prepare(task: HubTask, located: list[LocatedFiles], options: HubOptions) -> Dataset:
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
