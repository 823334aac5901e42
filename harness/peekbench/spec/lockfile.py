"""A lock file beside a spec: at which version everything that changes by itself was loaded, for reruns elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from peekbench.errors import SpecError
from peekbench.plugins.protocols import Options
from peekbench.spec.error_messages import describe
from peekbench.spec.yaml_loader import read_yaml

if TYPE_CHECKING:
    from peekbench.records.data import Folders
    from peekbench.spec.components import AuditSpec, MethodSpec, TaskSpec
    from peekbench.spec.experiment import ExperimentSpec

SUFFIX = ".lock"
GROUPS = ("tasks", "methods", "audits")


def lock_path(spec: Path) -> Path:
    """Where the lock of a spec file is."""
    return spec.with_suffix(SUFFIX)


def make_lock(spec: ExperimentSpec, folders: Folders) -> dict[str, dict[str, Any]]:
    """Ask every task, method and audit for the options that pin it.

    Parameters
    ----------
    folders
        With an empty cache folder, the newest versions are asked for instead of those that are in use here.

    Raises
    ------
    DataError
        Where a version cannot be found out.
    """
    lock: dict[str, dict[str, Any]] = {}
    for group, thing in _pinnable(spec):
        assert thing.entry.pin is not None
        pinned = dict(thing.entry.pin(options=thing.options, folders=folders))
        if pinned:
            lock.setdefault(group, {})[thing.name] = {"use": thing.use, "options": written(thing), "pinned": pinned}
    return lock


def write_lock(lock: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Write a lock file.

    Raises
    ------
    SpecError
        Where it cannot be written.
    """
    import yaml

    head = "# Written by `peekbench lock`. A spec with this file beside it is run with just these versions.\n"
    try:
        path.write_text(head + yaml.safe_dump(dict(lock), sort_keys=True, allow_unicode=True), encoding="utf-8")
    except OSError as error:
        raise SpecError(f"cannot write {path}: {error.strerror}; make the folder writable") from error


def read_lock(path: Path) -> dict[str, dict[str, Any]]:
    """The content of a lock file; empty where there is none.

    Raises
    ------
    SpecError
        Where it is not what `write_lock` writes.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeError) as error:
        raise SpecError(f"cannot read {path}: {error}; `peekbench lock SPEC` writes it anew") from error
    lock = read_yaml(text, str(path)) or {}
    wanted = {"use", "options", "pinned"}
    entries = [entry for group in GROUPS for entry in lock.get(group, {}).values()] if _is_lock(lock) else [None]
    if not all(isinstance(entry, dict) and set(entry) == wanted for entry in entries):
        raise SpecError(f"{path} is no lock file; `peekbench lock SPEC` writes it anew")
    return dict(lock)


def _is_lock(lock: object) -> bool:
    return isinstance(lock, dict) and set(lock) <= set(GROUPS) and all(isinstance(part, dict) for part in lock.values())


def pinned_options(
    lock: Mapping[str, Mapping[str, Any]], group: str, thing: TaskSpec | MethodSpec | AuditSpec, path: Path
) -> Options:
    """A thing's options with those that the lock pins.

    Raises
    ------
    SpecError
        Where the lock was made for another thing, or for other options.
    """
    entry = lock.get(group, {}).get(thing.name)
    if entry is None:
        return thing.options
    if (entry["use"], entry["options"]) != (thing.use, written(thing)):
        raise SpecError(
            f"{path}: {group}: {thing.name} was locked with other settings ({entry['use']}, {entry['options']}); "
            "run `peekbench lock SPEC` again, or delete the file"
        )
    try:
        return type(thing.options).model_validate({**thing.options.model_dump(), **entry["pinned"]})
    except ValidationError as error:
        raise SpecError(f"{path} does not fit:\n{describe(error, (group, thing.name, 'pinned'))}") from error


def written(thing: TaskSpec | MethodSpec | AuditSpec) -> dict[str, Any]:
    """The options that stand in the spec."""
    return thing.options.model_dump(mode="json", exclude_unset=True)


def _pinnable(spec: ExperimentSpec) -> Iterator[tuple[str, TaskSpec | MethodSpec | AuditSpec]]:
    for group in GROUPS:
        yield from ((group, thing) for thing in getattr(spec, group) if thing.entry.pin is not None)
