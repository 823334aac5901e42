"""The lock file beside a spec: versions of data and models that can change, for equal numbers elsewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

from peekbench.cache import atomic_write
from peekbench.errors import SpecError
from peekbench.plugins.boundary import Foreign
from peekbench.records.data import Folders
from peekbench.spec.components import PinnableSpec
from peekbench.spec.design import SpecModel
from peekbench.yaml_loader import read_limited, read_yaml

SUFFIX = ".lock"
HEAD = "# Written by `peekbench validate --lock`. Runs of the spec beside this file use these versions.\n"
CHECKSUM = "# SHA-256 of the lines below: "


class LockedComponent(SpecModel):
    """A component whose versions are locked, with the settings for which they were."""

    use: str
    """Name of the entry."""
    options: dict[str, Any]
    """Options that the user wrote, without defaults."""
    pinned: dict[str, Any]
    """Options that pin versions."""


Lock: TypeAlias = dict[str, dict[str, LockedComponent]]
"""Components by group and name."""
LOCK: TypeAdapter[Lock] = TypeAdapter(Lock, config=ConfigDict(defer_build=True))


def lock_path(spec: Path) -> Path:
    """Return the path of a spec's lock file."""
    return spec.with_suffix(SUFFIX)


def make_lock(components: Iterable[PinnableSpec], folders: Folders) -> Lock:
    """Ask the plugins of components for the options that pin their versions.

    Parameters
    ----------
    components
        From `ExperimentSpec.pinnable`.
    folders
        Folders for the plugins. If the cache folder is empty, plugins look for the newest versions instead of those
        that are in use here.

    Returns
    -------
    dict
        Content of the lock file; components without pinned options are left out.

    Raises
    ------
    DataError
        If a version cannot be found.
    """
    lock: Lock = {}
    for component in components:
        pin = component.entry.preparation.pin
        if pin is None:
            continue
        caller = Foreign(f"{component.use}: `pin`", component.use, component.options)
        pinned = dict(caller.call(pin, returns=Mapping, options=component.options, folders=folders))
        if pinned:
            locked = LockedComponent(use=component.use, options=_written_options(component), pinned=pinned)
            lock.setdefault(component.group, {})[component.name] = locked
    return lock


def write_lock(lock: Lock, path: Path) -> None:
    """Write a lock file.

    Raises
    ------
    SpecError
        If the file cannot be written.
    """
    body = yaml.safe_dump(LOCK.dump_python(lock), sort_keys=True, allow_unicode=True)
    try:
        with atomic_write(path) as temporary:
            temporary.write_text(f"{HEAD}{CHECKSUM}{_checksum(body)}\n{body}", encoding="utf-8")
    except OSError as error:
        raise SpecError(f"cannot write {path}: {error.strerror}; make the folder writable") from error


def _checksum(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def read_lock(path: Path) -> Lock:
    """Return the content of a lock file, or an empty mapping if there is no file.

    Raises
    ------
    SpecError
        If the file cannot be read or was not written by `write_lock`, or if it is incomplete or was changed.
    """
    try:
        if path.exists() and not path.is_file():  # a pipe would block
            raise OSError("it is not a regular file")
        text = read_limited(path).decode("utf-8").replace("\r\n", "\n")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeError) as error:
        raise SpecError(f"cannot read {path}: {error}; write it again with `peekbench validate --lock SPEC`") from error
    head, _, rest = text.partition(CHECKSUM)
    checksum, _, body = rest.partition("\n")
    if head != HEAD or checksum != _checksum(body):
        raise SpecError(
            f"{path} is incomplete or was changed: its checksum does not match its content; "
            "restore it from version control, or write it again with `peekbench validate --lock SPEC`"
        )
    try:
        return LOCK.validate_python(read_yaml(body, str(path)) or {})
    except ValidationError as error:
        raise SpecError(f"{path} is not a lock file; write it again with `peekbench validate --lock SPEC`") from error


def read_pinned(path: Path, components: Iterable[PinnableSpec]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the pinned options of a lock file, by group and name of the component.

    Raises
    ------
    SpecError
        If the lock file was made for other options.
    """
    lock = read_lock(path)
    pinned: dict[tuple[str, str], dict[str, Any]] = {}
    for component in components:
        locked = lock.get(component.group, {}).get(component.name)
        if locked is None:
            continue
        if (locked.use, locked.options) != (component.use, _written_options(component)):
            raise SpecError(
                f"{path}: {component.group}: {component.name} was locked with other settings ({locked.use}, "
                f"{locked.options}); run `peekbench validate --lock SPEC` again, or delete the file"
            )
        pinned[component.group, component.name] = locked.pinned
    return pinned


def _written_options(component: PinnableSpec) -> dict[str, Any]:
    """Return the options that the user wrote, without defaults."""
    return component.options.model_dump(mode="json", exclude_unset=True)
