"""The data source: a task's record to its rows, from the cache, a mirror or the Hub."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from peekbench import DataError, Dataset, Folders
from peekbench.cache import read_cached, write_cached
from peekbench.errors import UnavailableError
from peekbench.records import TaskFacts
from peekbench_hf.definition import HubFiles, HubTask
from peekbench_hf.hub import Located, locate, locate_in_mirror
from peekbench_hf.options import HubDatasetOptions, HubOptions
from peekbench_hf.prepared import Prepared, find, prepare
from peekbench_hub.client import NotFoundError

MIRROR_VARIABLE = "PEEKBENCH_HUB_MIRROR"
FORM = 1  # of what is kept; raise it where the same record and files would give other rows


def load_task(*, options: HubOptions, folders: Folders, task: HubTask) -> Dataset:
    """Load a task.

    Raises
    ------
    DataError
        Where its files cannot be had, or are not as its record says.
    """
    located = _locate(task, options, folders)
    path = _kept(task, located, options, folders)
    prepared = find(path)
    if prepared is None:
        prepared = _prepare(task, located, options, path)
        if not isinstance(options, HubDatasetOptions) and options.drop_duplicates == "none":
            _note_facts(task, prepared, folders)
    return Dataset(
        inputs=prepared.texts,
        labels=prepared.labels,
        class_names=prepared.class_names,
        instruction=task.instruction,
        fingerprint=prepared.fingerprint,
        details=prepared.details,
    )


def load_dataset(*, options: HubDatasetOptions, folders: Folders) -> Dataset:
    """Load any dataset of the Hub; raises as `load_task`."""
    return load_task(options=options, folders=folders, task=options.task())


def pin_task(*, options: HubOptions, folders: Folders, task: HubTask) -> Mapping[str, Any]:
    """The option that ties a task to the commit that is used here and now; nothing where a mirror serves it."""
    revision = _locate(task, options, folders).revision
    return {"revision": revision} if revision else {}


def pin_dataset(*, options: HubDatasetOptions, folders: Folders) -> Mapping[str, Any]:
    """As `pin_task`."""
    return pin_task(options=options, folders=folders, task=options.task())


def facts(folders: Folders, task: HubTask) -> TaskFacts:
    """What its record says, and what was seen when it was last loaded."""
    known = read_cached(_facts_path(task, folders)) or {}
    return TaskFacts(
        num_classes=known.get("num_classes", len(task.classes or ()) or None),
        num_rows=known.get("num_rows", task.num_rows),
        characters=tuple(known["characters"]) if known else None,
        license=task.license,
        class_names=tuple(dict.fromkeys((task.classes or {}).values())),
        instruction=task.instruction,
        details={"from": " or ".join(map(str, task.places)), "citation": task.citation, "note": task.note},
    )


def _note_facts(task: HubTask, prepared: Prepared, folders: Folders) -> None:
    characters = prepared.details["characters"]
    seen = {
        "num_classes": len(prepared.class_names),
        "num_rows": len(prepared.labels),
        "characters": [characters["25"], characters["75"]],
    }
    write_cached(_facts_path(task, folders), seen)


def _facts_path(task: HubTask, folders: Folders) -> Path:
    return folders.cache / "hf" / "facts" / f"{task.name}.json"


def _mirror(options: HubOptions, folders: Folders) -> Path | None:
    if options.data_dir is not None:
        return folders.spec / options.data_dir.expanduser()
    return Path(os.environ[MIRROR_VARIABLE]).absolute() if os.environ.get(MIRROR_VARIABLE) else None


def _locate(task: HubTask, options: HubOptions, folders: Folders) -> Located:
    mirror = _mirror(options, folders)
    if mirror is not None and not mirror.is_dir():
        raise DataError(f"{_use(task)}: there is no folder {mirror}, which should be a mirror of the Hub; make it")
    sought = []
    for place in task.places:
        try:
            if mirror is not None:
                return locate_in_mirror(place, mirror, options.revision)
            return locate(place, options.revision, folders.cache)
        except NotFoundError as error:
            sought.append(str(error))
        except UnavailableError as error:
            raise UnavailableError(f"{_use(task)}: {error.resource}", error.reason) from error
        except DataError as error:
            raise DataError(f"{_use(task)}: {error}") from error
    raise DataError(
        f"{_use(task)}: its files are in none of the places where they were sought:\n"
        + "".join(f"  {place}\n" for place in sought)
        + "The option `revision` names another commit or branch to look at. A file that you have is loaded by the data "
        "source `files`:\n" + _by_hand(task)
    )


def _by_hand(task: HubTask) -> str:
    options: dict[str, Any] = {"path": "FILE", "text": list(task.text), "label": task.label}
    if task.classes:
        by_number = all(key.isdigit() for key in task.classes)
        options["class_names"] = dict(task.classes) if by_number else list(task.classes)
    return f"  - {{use: files, name: {_use(task)}, options: {json.dumps(options, ensure_ascii=False)}}}"


def _use(task: HubTask) -> str:
    return f"hf.{task.name}"


def _kept(task: HubTask, located: Located, options: HubOptions, folders: Folders) -> Path:
    record = {key: value for key, value in asdict(task).items() if key in DECISIVE}
    key = repr((FORM, record, list((task.classes or {}).items()), located.identity, options.drop_duplicates))
    return folders.cache / "hf" / f"{task.name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.arrow"


DECISIVE = ("text", "label", "max_characters", "drop_missing")
"""What rows depend on besides classes and files."""


def _prepare(task: HubTask, located: Located, options: HubOptions, path: Path) -> Prepared:
    from peekbench_hf.reading import read
    from peekbench_hf.rows import make_rows

    place = located.place
    label = place.label or task.label
    try:
        columns = read(located.fetch(), task.text, label)
        rows = make_rows(columns, task, label, options.drop_duplicates)
    except NotFoundError as error:
        raise DataError(f"{_use(task)}: {error}; try again, or set `revision` to a commit that has it") from error
    except UnavailableError as error:
        raise UnavailableError(f"{_use(task)}: {error.resource}", error.reason) from error
    except DataError as error:
        raise DataError(f"{_use(task)}: {place}: {error}") from error
    details = {
        "from": located.origin,
        "repository": place.repository if isinstance(place, HubFiles) else "",
        "revision": located.revision,
        "license": task.license,
        "citation": task.citation,
        "note": task.note,
    }
    return prepare(rows, details, path)
