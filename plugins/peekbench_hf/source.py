"""The data sources `hf.*`: load a task from the cache, a local mirror or the Hub."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from peekbench import DataError, Dataset, Folders
from peekbench.errors import UnavailableError
from peekbench.records import Split, TaskKind
from peekbench_hf.definition import HubFiles, HubTask
from peekbench_hf.facts import record_facts
from peekbench_hf.locating import LocatedFiles, locate, locate_in_mirror
from peekbench_hf.options import HubDatasetOptions, HubOptions, HubTaskOptions
from peekbench_hf.prepared import PreparedTask, find_prepared
from peekbench_hf.prompts import with_prompt
from peekbench_hub.downloads import NotFoundError

MIRROR_VARIABLE = "PEEKBENCH_HUB_MIRROR"
CACHE_VERSION = 4  # increase it if the same definition and files would give other rows
ROW_FIELDS = ("text", "label", "is_in_order", "max_characters", "drop_missing")
"""Fields of a task's definition that determine its rows, besides classes and files."""


def load_task(*, options: HubTaskOptions, folders: Folders, task: HubTask) -> Dataset:
    """Load a task.

    Parameters
    ----------
    options
        Revision, fingerprint, mirror, splits, duplicates, instruction and class names.
    folders
        Folders of the spec and the cache.
    task
        Definition of the task.

    Raises
    ------
    DataError
        If the files are unavailable, or do not match the definition, the class names or the fingerprint.
    """
    return _load(with_prompt(task, options, folders), options, folders)


def _load(task: HubTask, options: HubOptions, folders: Folders) -> Dataset:
    located = [_locate(task, options, folders)]
    if options.splits == "official":
        located.append(_locate_test_split(task, located[0], options, folders))
    path = _cache_path(task, located, options, folders)
    prepared = find_prepared(path)
    if prepared is None:
        prepared = _prepare(task, located, options, path)
        is_default = options.drop_duplicates == "none" and options.splits == "pooled"
        if is_default and not isinstance(options, HubDatasetOptions):
            record_facts(task, folders, len(prepared.class_names), len(prepared.labels), prepared.details)
    fingerprint = prepared.fingerprint
    if isinstance(options, HubTaskOptions) and options.prompts is not None:
        # The spec has only the path of the file, so the data tell whether its instruction has changed.
        fingerprint = hashlib.sha256(f"{fingerprint}\x1f{task.instruction}".encode()).hexdigest()
    if options.fingerprint not in ("", fingerprint):
        raise DataError(
            f"{_full_name(task)}: its class names, texts and labels have the fingerprint {fingerprint}, but "
            f"the option `fingerprint`, which a lock file sets, is {options.fingerprint}; use the files and the "
            "version of peekbench with which the spec was locked, or accept these data with "
            "`peekbench validate --lock SPEC`"
        )
    names: tuple[str, ...] = prepared.class_names
    labels: Any = prepared.labels
    kind: TaskKind = "classification"
    if labels.ndim == 2:
        kind = "multilabel"
    elif task.is_generation:
        references = [json.loads(name) for name in names]
        names, labels, kind = (), [references[label] for label in labels.tolist()], "generation"
    return Dataset(
        inputs=prepared.texts,
        labels=labels,
        class_names=names,
        kind=kind,
        instruction=task.instruction,
        fingerprint=fingerprint,
        details=prepared.details,
        splits=_list_splits(len(prepared.labels), prepared.num_test) if options.splits == "official" else (),
        groups=prepared.groups,
    )


def _list_splits(num_rows: int, num_test: int) -> tuple[Split, ...]:
    """Return the split of each row; the rows of the test split are the last ones."""
    train: tuple[Split, ...] = ("train",)
    test: tuple[Split, ...] = ("test",)
    return train * (num_rows - num_test) + test * num_test


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
    """Return the options that pin a task to its current commit, unless a mirror provides it, and to its rows.

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
    return _pins(load_task(options=options, folders=folders, task=task))


def _pins(dataset: Dataset) -> Mapping[str, Any]:
    revision = dataset.details["revision"]
    return {**({"revision": revision} if revision else {}), "fingerprint": dataset.fingerprint}


def pin_dataset(*, options: HubDatasetOptions, folders: Folders) -> Mapping[str, Any]:
    """Return the options that pin a dataset to its current commit and rows; see `pin_task`."""
    return _pins(load_dataset(options=options, folders=folders))


def _mirror(options: HubOptions, folders: Folders) -> Path | None:
    if options.data_dir is not None:
        return folders.spec / options.data_dir.expanduser()
    return Path(os.environ[MIRROR_VARIABLE]).absolute() if os.environ.get(MIRROR_VARIABLE) else None


def _locate(task: HubTask, options: HubOptions, folders: Folders) -> LocatedFiles:
    """Return the task's files at the first of its locations that exists."""
    mirror = _mirror(options, folders)
    if mirror is not None and not mirror.is_dir():
        raise DataError(
            f"{_full_name(task)}: the mirror folder {mirror} does not exist; create it, or correct `data_dir` or "
            f"${MIRROR_VARIABLE}"
        )
    problems = []
    for location in task.locations:
        try:
            if mirror is not None:
                return locate_in_mirror(location, mirror, options.revision)
            return locate(location, options.revision, folders.cache)
        except NotFoundError as error:
            problems.append(str(error))
        except UnavailableError as error:
            raise UnavailableError(f"{_full_name(task)}: {error.resource}", error.reason) from error
        except DataError as error:
            raise DataError(f"{_full_name(task)}: {error}") from error
    raise DataError(
        f"{_full_name(task)}: its files are at none of the known locations:\n"
        + "".join(f"  {problem}\n" for problem in problems)
        + "Set the option `revision` to another commit or branch. To load a file of your own, use the data source "
        "`files`:\n" + _suggest_files(task)
    )


def _locate_test_split(task: HubTask, train: LocatedFiles, options: HubOptions, folders: Folders) -> LocatedFiles:
    """Return the files of the test split at the same location and commit as those of the train split."""
    location = train.location.test_split(options.test_split)
    mirror = _mirror(options, folders)
    try:
        if location is None:
            raise NotFoundError(f"{train.origin}: its name does not contain `train`")
        if mirror is not None:
            return locate_in_mirror(location, mirror, options.revision)
        return locate(location, train.revision, folders.cache)
    except NotFoundError as error:
        raise DataError(
            f"{_full_name(task)} has no split named {options.test_split}: {error}; set `test_split` to another one, "
            "such as validation, or `splits` to pooled"
        ) from error
    except UnavailableError as error:
        raise UnavailableError(f"{_full_name(task)}: {error.resource}", error.reason) from error
    except DataError as error:
        raise DataError(f"{_full_name(task)}: {error}") from error


def _suggest_files(task: HubTask) -> str:
    """Return the line of a spec that loads a local file as this task."""
    options: dict[str, Any] = {"path": "FILE", "text": list(task.text), "label": task.label}
    if task.classes:
        is_numbered = all(key.isdigit() for key in task.classes)
        options["class_names"] = dict(task.classes) if is_numbered else list(task.classes)
    return f"  - {{use: files, name: {_full_name(task)}, options: {json.dumps(options, ensure_ascii=False)}}}"


def _full_name(task: HubTask) -> str:
    return f"hf.{task.name}"


def _cache_path(task: HubTask, located: Sequence[LocatedFiles], options: HubOptions, folders: Folders) -> Path:
    definition = {key: value for key, value in asdict(task).items() if key in ROW_FIELDS}
    if task.group:  # other tasks keep their names in caches
        definition |= {"group": task.group, "drop_shared_groups": task.drop_shared_groups}
    if task.is_generation:
        definition |= {"is_generation": True}
    classes = list((task.classes or {}).items())
    identities = [split.identity for split in located]
    key = repr((CACHE_VERSION, definition, classes, identities, options.drop_duplicates))
    return folders.cache / "hf" / f"{task.name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.arrow"


def _prepare(task: HubTask, located: Sequence[LocatedFiles], options: HubOptions, path: Path) -> PreparedTask:
    """Download the task's files if necessary, and store its rows in the cache."""
    from peekbench_hf.preparation import prepare_files  # noqa: PLC0415 - slow to import, and unused if rows are cached
    from peekbench_hf.reading import check_unpacked_sizes  # noqa: PLC0415 - as below

    location = located[0].location
    details = {
        "from": located[0].origin,
        **({"test split from": located[1].origin} if len(located) > 1 else {}),
        "repository": location.repository if isinstance(location, HubFiles) else "",
        "revision": located[0].revision,
        "license": task.license,
        "citation": task.citation,
        "note": task.note,
    }
    try:
        label = location.label or task.label
        splits = [split.fetch() for split in located]
        for files in splits:
            check_unpacked_sizes(files, options.max_gigabytes)
        return prepare_files(splits, task, label, options, details, path)
    except NotFoundError as error:
        raise DataError(f"{_full_name(task)}: {error}; try again, or set `revision` to a commit that has it") from error
    except UnavailableError as error:
        raise UnavailableError(f"{_full_name(task)}: {error.resource}", error.reason) from error
    except DataError as error:
        raise DataError(f"{_full_name(task)}: {location}: {error}") from error
