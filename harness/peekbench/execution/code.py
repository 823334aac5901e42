"""Identifies the code on which results depend, and compares it with the code that made the trials of a store.

The code of a plugin is all files of the packages and modules that hold the plugin and the functions that its methods
name by reference, and of the packages `peekbench_*` that these import, directly or not. The code of a file without a
plugin is the file and the modules beside it that it imports in the same way. Only import statements count.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from pathlib import Path
from typing import Any, TypedDict

from peekbench.errors import PluginError, StoreError
from peekbench.execution.preparation import StoredRun
from peekbench.formatting import pluralize
from peekbench.plugins import registry
from peekbench.plugins.entries import MethodEntry
from peekbench.plugins.local_code import find_file, is_code, is_installed, split_name
from peekbench.plugins.references import find_reference, iterate_callables
from peekbench.records.trials import Trial
from peekbench.spec.experiment import ExperimentSpec

CORE = "peekbench"
"""Package of the core, whose code is no plugin's."""
SUFFIXES = (".py", *EXTENSION_SUFFIXES)
DIGITS = 12  # of the hash of a file
MAX_LISTED = 5  # files in a message


class PluginCode(TypedDict):
    """State of the code of a plugin, as JSON values."""

    sha256: str
    """Hash of the names and contents of all files; empty if the plugin has none."""
    files: dict[str, str]
    """First digits of the hash of each file, by its path below the folder from which it is imported."""


def code_hashes(uses: Iterable[str]) -> dict[str, PluginCode]:
    """Return hashes of the code of the plugins that names such as 'plugin.thing' mean, by plugin.

    Raises
    ------
    PluginError
        If a file cannot be read.
    """
    return {plugin: _summarize(find_code(plugin)) for plugin in dict.fromkeys(split_name(use)[0] for use in uses)}


def core_hash() -> str:
    """Return the SHA-256 of the code of the package `peekbench`.

    Examples
    --------
    >>> len(core_hash())
    64
    """
    return _summarize(_find_files(CORE, Path(__file__).parents[1]))["sha256"]


def find_code(plugin: str) -> dict[str, Path]:
    """Return the files of a plugin by their path below the folder from which they are imported, sorted."""
    entries = registry.load(plugin).entries(MethodEntry)
    folder = None
    if path := find_file(plugin):
        folder, names = path.parent, [path.stem]
    else:
        point = registry.installed().get(plugin)
        names = [point[0].module if point else plugin.rstrip(":")]
        functions = [function for entry in entries.values() for _, function in iterate_callables(entry)]
        references = [reference for function in functions if (reference := find_reference(function))]
        names += [reference.target.partition(":")[0] for reference in references]
    if is_code(plugin) and folder is None and (found := _locate(names[0])):
        parent = _root(*found)
        folder = None if is_installed(parent) else parent
    files: dict[str, Path] = {}
    done = {CORE}
    while names:
        name = names.pop()
        found = (folder and _locate(name, [str(folder)])) or _locate(name)
        if found is None or found[0] in done:
            continue
        done.add(found[0])
        new = _find_files(*found)
        files |= new
        imported = {name for path in new.values() for name in imported_modules(path)}
        names += [name for name in imported if name.startswith(f"{CORE}_") or (folder and _locate(name, [str(folder)]))]
    return dict(sorted(files.items()))


def _locate(name: str, folders: Sequence[str] | None = None) -> tuple[str, Path] | None:
    """Return the package or module that holds what a dotted name means, with its folder, file or archive.

    Packages without a file of their own are namespaces, which several distributions may share, so the package or module
    below them counts. Nothing is imported.

    Parameters
    ----------
    name
        Such as 'package.module.function'.
    folders
        Folders from which it is imported; by default, those of this process.
    """
    parts = name.split(".")
    path = folders
    for end in range(1, len(parts) + 1):
        module = ".".join(parts[:end])
        loaded = sys.modules.get(module) if folders is None else None
        finders = sys.meta_path if folders is None else [PathFinder]
        specs = (finder.find_spec(module, path) for finder in finders if loaded is None)
        spec = next(filter(None, specs), None)
        if file := getattr(loaded, "__file__", None) or (spec and spec.has_location and spec.origin):
            place = Path(file).parent if Path(file).name.partition(".")[0] == "__init__" else Path(file)
            archives = [] if place.exists() else [parent for parent in place.parents if parent.is_file()]
            return module, (archives or [place])[0]
        path = list(getattr(loaded, "__path__", None) or getattr(spec, "submodule_search_locations", None) or ())
        if not path:
            return None
    return None


def _root(module: str, place: Path) -> Path:
    """Return the folder from which a module is imported."""
    return place.parents[module.count(".")]


def _find_files(module: str, place: Path) -> dict[str, Path]:
    """Return the files of a module or of a whole package by their path below the folder from which it is imported."""
    if place.is_file():  # a module, or an archive of which each file counts
        name = place.relative_to(_root(module, place)).as_posix() if place.name.endswith(SUFFIXES) else place.name
        return {name: place}
    paths = [path for path in place.rglob("*") if path.name.endswith(SUFFIXES) and path.is_file()]
    names = {path.relative_to(_root(module, place)): path for path in paths}
    return {  # other names, such as those of the backups of editors, cannot be imported
        name.as_posix(): path
        for name, path in names.items()
        if all(part.partition(".")[0].isidentifier() for part in name.parts)
    }


def imported_modules(path: Path) -> frozenset[str]:
    """Return the dotted names that a file imports anywhere; none if it is not valid Python."""
    return _read(path, *_state(path))[1]


def _summarize(files: Mapping[str, Path]) -> PluginCode:
    hashes = {name: _read(path, *_state(path))[0] for name, path in files.items()}
    text = "".join(f"{name}\0{digest}\0" for name, digest in sorted(hashes.items()))
    return {
        "sha256": hashlib.sha256(text.encode()).hexdigest() if files else "",
        "files": {name: digest[:DIGITS] for name, digest in sorted(hashes.items())},
    }


def _state(path: Path) -> tuple[int, int]:
    """Return the time of the last change and the size of a file, by which its content is cached."""
    try:
        with path.open("rb"):
            return path.stat().st_mtime_ns, path.stat().st_size
    except OSError as error:
        raise PluginError(
            f"cannot read {path}: {error.strerror}; correct its permissions, because results depend on this code"
        ) from error


@lru_cache(maxsize=8192)
def _read(path: Path, _modified: int, _size: int) -> tuple[str, frozenset[str]]:
    """Return the SHA-256 of a file, and the dotted names of what it imports."""
    content = path.read_bytes()
    names: set[str] = set()
    if path.suffix == ".py":
        with warnings.catch_warnings(action="ignore"):  # the interpreter warns when it imports the module
            try:
                nodes = list(ast.walk(ast.parse(content)))
            except (SyntaxError, ValueError):
                nodes = []
        names |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        absolute = [node for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
        names |= {f"{node.module}.{alias.name}" for node in absolute for alias in node.names}
    return hashlib.sha256(content).hexdigest(), frozenset(names)


def describe_code_change(before: PluginCode, after: PluginCode) -> str:
    """Name the files that differ between two states of a plugin's code; empty if the code is the same.

    Examples
    --------
    >>> before = {"sha256": "a", "files": {"method.py": "12", "helper.py": "34"}}
    >>> describe_code_change(before, {"sha256": "b", "files": {"method.py": "56", "more.py": "78"}})
    'helper.py removed, method.py changed, more.py added'
    """
    if before["sha256"] == after["sha256"]:
        return ""
    old, new = before["files"], after["files"]
    changes = [
        f"{name} {'removed' if name not in new else 'added' if name not in old else 'changed'}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]
    others = len(changes) - MAX_LISTED
    return ", ".join([*changes[:MAX_LISTED], *([f"and {pluralize(others, 'other file')}"] if others > 0 else [])])


@dataclass(frozen=True, slots=True)
class CodeVersion:
    """One version of the code of a plugin, with the trials that it made."""

    code: PluginCode
    started: str
    """Start of the first session with this version, in ISO format."""
    trials: tuple[Trial, ...]


def find_versions(
    spec: ExperimentSpec, sessions: Sequence[Mapping[str, Any]], session_of: Mapping[Trial, int]
) -> dict[str, list[CodeVersion]]:
    """Return the versions of the code of each method plugin that made finished trials, oldest first, by plugin.

    Parameters
    ----------
    spec
        Spec of the run.
    sessions
        Sessions of the run, oldest first.
    session_of
        Position of the session that finished each trial.
    """
    plugin_of = _plugins_of_methods(spec)
    found: defaultdict[str, dict[str, tuple[PluginCode, str, list[Trial]]]] = defaultdict(dict)
    for trial, position in sorted(session_of.items(), key=lambda item: (item[1], item[0].method)):
        session, plugin = sessions[position], plugin_of.get(trial.method, "")
        if code := session.get("code", {}).get(plugin):
            found[plugin].setdefault(code["sha256"], (code, session["started"], []))[2].append(trial)
    return {
        plugin: [CodeVersion(code, started, tuple(trials)) for code, started, trials in versions.values()]
        for plugin, versions in found.items()
    }


def find_changed_code(
    stored: StoredRun,
    spec: ExperimentSpec,
    trials: Sequence[Trial],
    code: Mapping[str, PluginCode],
    *,
    is_allowed: bool,
) -> tuple[str, ...]:
    """Compare the code of plugins with the code that made their stored trials.

    Parameters
    ----------
    stored
        The stored part of the run.
    spec
        Spec of the run.
    trials
        Planned trials.
    code
        Present code of the spec's method plugins, as `code_hashes` returns it.
    is_allowed
        Whether trials may be run by code that made none of the stored trials of the same plugin.

    Returns
    -------
    tuple of str
        Plugins that have stored trials of other code.

    Raises
    ------
    StoreError
        If trials would be run by new code and this is not allowed. It names the plugins, the changed files and the
        remedies.
    """
    changed = {
        plugin: versions
        for plugin, versions in find_versions(spec, stored.sessions, stored.session_of).items()
        if any(version.code["sha256"] != code[plugin]["sha256"] for version in versions)
    }
    if not is_allowed:
        pending = {trial.method for trial in stored.pending(spec, trials)}
        plugins = {plugin for method, plugin in _plugins_of_methods(spec).items() if method in pending}
        _refuse_new_code(stored.path, {plugin: changed[plugin] for plugin in changed if plugin in plugins}, code)
    return tuple(changed)


def _refuse_new_code(path: Path, changed: Mapping[str, Sequence[CodeVersion]], code: Mapping[str, PluginCode]) -> None:
    """Raise an error if code has changed to a version that made none of the stored trials."""
    changes = [
        f"plugin {plugin}, {pluralize(sum(len(version.trials) for version in versions), 'trial')}: "
        f"{describe_code_change(versions[-1].code, code[plugin])}"
        for plugin, versions in changed.items()
        if all(version.code["sha256"] != code[plugin]["sha256"] for version in versions)
    ]
    if changes:
        raise StoreError(
            f"store {path}: code of its methods has changed since their trials were stored:\n  "
            + "\n  ".join(changes)
            + "\nMore trials would mix results of old and new code. To measure the new code alone, run the spec under "
            "another name, or delete the stored trials with `peekbench run --fresh` (in Python, fresh=True); "
            "otherwise restore the old code, or resume the run with --allow-changed-code (in Python, "
            "allow_changed_code=True); the report then warns that versions are mixed"
        )


def _plugins_of_methods(spec: ExperimentSpec) -> dict[str, str]:
    return {method.name: split_name(method.use)[0] for method in spec.methods}
