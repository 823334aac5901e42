"""Identifies the code on which results depend, and compares it with the code that made the trials of a store.

The code of a plugin is all files of the packages and modules that hold the plugin and the functions that its methods
name by reference, and of the packages `peekbench_*` that these import, directly or not. The code of a file without a
plugin is the file and the modules beside it that it imports in the same way. Only import statements count.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from peekbench.errors import StoreError
from peekbench.execution.preparation import StoredRun
from peekbench.formatting import list_names, pluralize
from peekbench.plugins import registry
from peekbench.plugins.entries import MethodEntry
from peekbench.plugins.local_code import PACKAGE, SESSION, Code, find_files_of_code, split_name
from peekbench.plugins.references import find_reference, iterate_callables
from peekbench.plugins.source_files import find_files, imported_modules, locate, read_code
from peekbench.records.trials import Trial
from peekbench.spec.experiment import ExperimentSpec

CORE = "peekbench"
"""Package of the core, whose code is no plugin's."""
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

    Each method of a session is a plugin of its own.

    Raises
    ------
    PluginError
        If a file cannot be read.
    """
    return {plugin: _hash_code(plugin) for plugin in dict.fromkeys(map(_plugin_of, uses))}


def _hash_code(plugin: str) -> PluginCode:
    if isinstance(plugin, Code) and plugin.module is not None:
        held = [name for name in vars(plugin.module) if not name.startswith("__")]
        return {"sha256": plugin.digest, "files": dict.fromkeys(held, plugin.digest[:DIGITS])}
    return _summarize(find_code(plugin))


def core_hash() -> str:
    """Return the SHA-256 of the code of the package `peekbench`.

    Examples
    --------
    >>> len(core_hash())
    64
    """
    return _summarize(find_files(CORE, Path(__file__).parents[1]))["sha256"]


def find_code(plugin: str) -> dict[str, Path]:
    """Return the files of a plugin by their path below the folder from which they are imported, sorted."""
    entries = registry.load(plugin).entries(MethodEntry)
    if isinstance(plugin, Code):
        files, names = find_files_of_code(plugin), []
    else:
        files, names = {}, [registry.installed()[plugin][0].module]
    functions = [function for entry in entries.values() for _, function in iterate_callables(entry)]
    references = [reference for function in functions if (reference := find_reference(function))]
    modules = [reference.target.partition(":")[0] for reference in references]
    names += [module for module in modules if not module.startswith(PACKAGE)]  # those beside are among the files
    names += _imported_libraries(files)
    done = {CORE}
    while names:
        found = locate(names.pop())
        if found is None or found[0] in done:
            continue
        done.add(found[0])
        new = find_files(*found)
        files |= new
        names += _imported_libraries(new)
    return dict(sorted(files.items()))


def _imported_libraries(files: Mapping[str, Path]) -> list[str]:
    """Return the names of what files import of the packages `peekbench_*`."""
    names = (name for path in files.values() for name in imported_modules(read_code(path)))
    return [name for name in names if name.startswith(f"{CORE}_")]


def _summarize(files: Mapping[str, Path]) -> PluginCode:
    hashes = {name: hashlib.sha256(read_code(path)).hexdigest() for name, path in sorted(files.items())}
    text = "".join(f"{name}\0{digest}\0" for name, digest in hashes.items())
    return {
        "sha256": hashlib.sha256(text.encode()).hexdigest() if files else "",
        "files": {name: digest[:DIGITS] for name, digest in hashes.items()},
    }


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
    return list_names(changes, MAX_LISTED)


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
        used = _plugins_of_methods(spec).items()
        plugins = {plugin for method, plugin in used if method in pending or plugin.startswith(SESSION)}
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
        remedy = (
            "More trials would mix results of old and new code. To measure the new code alone, choose another name for "
            "the run, or delete the stored trials with `peekbench run --fresh` (in Python, fresh=True); otherwise "
            "restore the old code"
        )
        if not any(plugin.startswith(SESSION) for plugin in changed):
            remedy += (
                ", or resume the run with --allow-changed-code (in Python, allow_changed_code=True); the report then "
                "warns that versions are mixed"
            )
        listed = "\n  ".join(changes)
        raise StoreError(
            f"store {path}: code of its methods has changed since their trials were stored:\n  {listed}\n{remedy}"
        )


def _plugins_of_methods(spec: ExperimentSpec) -> dict[str, str]:
    return {method.name: _plugin_of(method.use) for method in spec.methods}


def _plugin_of(use: str) -> str:
    return use if use.startswith(f"{SESSION}:") else split_name(use)[0]
