"""Watches the code on which results depend: hashes of the files of plugins and of the core."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TypedDict

from peekbench.errors import PluginError
from peekbench.execution.module_files import CodeUnit, find_imports, find_unit, hash_file
from peekbench.execution.own_modules import OwnModules, find_own_modules
from peekbench.formatting import pluralize
from peekbench.plugins import registry
from peekbench.plugins.entries import MethodEntry
from peekbench.plugins.entry_names import join_name, split_name
from peekbench.plugins.local_code import find_file
from peekbench.plugins.references import find_reference, iterate_callables

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
    """Return hashes of the code of plugins, by plugin.

    The code of a plugin consists of the packages and modules that contain the plugin's module and the callables that
    its methods name by reference, those that its methods declare in `MethodEntry.packages`, and all of the same
    distribution that these import, directly or not. Of a package, all files count.

    Parameters
    ----------
    uses
        Names such as 'plugin.thing'.

    Raises
    ------
    PluginError
        If one of these methods declares a package that is not installed, or if a file cannot be read.
    """
    methods: dict[str, set[str]] = {}
    for use in uses:
        plugin, method = split_name(use)
        methods.setdefault(plugin, set()).add(method)
    return {plugin: _summarize(find_code(plugin, used)) for plugin, used in methods.items()}


def _summarize(files: Mapping[str, Path]) -> PluginCode:
    hashes = {name: hash_file(path) for name, path in files.items()}
    text = "".join(f"{name}\0{digest}\0" for name, digest in hashes.items())
    return {
        "sha256": hashlib.sha256(text.encode()).hexdigest() if files else "",
        "files": {name: digest[:DIGITS] for name, digest in hashes.items()},
    }


def find_code(plugin: str, methods: Iterable[str] = ()) -> dict[str, Path]:
    """Find the files of a plugin, as `code_hashes` describes.

    Parameters
    ----------
    plugin
        Name of the plugin.
    methods
        Names of methods whose declared packages must exist. Those of other methods are left out if they do not.

    Returns
    -------
    dict
        Files by their path below the folder from which they are imported, sorted.

    Raises
    ------
    PluginError
        If a declared package is not installed, or if a file cannot be read.
    """
    loaded = registry.load(plugin)
    entries = loaded.entries(MethodEntry)
    if path := find_file(plugin):
        own = OwnModules(folders=(path.parent,))
        units = [CodeUnit(path.stem, (path,))]
    else:
        point = registry.installed()[plugin][0] if plugin in registry.installed() else _entry_point(plugin)
        own = find_own_modules(point)
        units = [unit for module in _first_modules(point.module, entries) if (unit := find_unit(module))]
    units += _declared_units(plugin, entries, frozenset(methods))
    files: dict[str, Path] = {}
    done, modules = {CORE}, set[str]()
    while units:
        unit = units.pop()
        if unit.name in done:
            continue
        done.add(unit.name)
        new_files = dict(unit.files())
        new_modules = {module for name, path in new_files.items() for module in absolute_imports(name, path)}
        units += _find_own_units(new_modules - modules, own)
        files |= new_files
        modules |= new_modules
    return dict(sorted(files.items()))


def _entry_point(plugin: str) -> EntryPoint:
    """Return what stands for the entry point of a module without a plugin."""
    return EntryPoint(plugin, plugin.rstrip(":"), "")


def _find_own_units(modules: Iterable[str], own: OwnModules) -> Iterator[CodeUnit]:
    """Iterate over the packages and modules of a distribution among imported names."""
    for module in modules:
        if module.partition(".")[0] in own:
            unit = find_unit(module)
            if unit is not None and unit.name in own and not unit.is_namespace:
                yield unit


def _first_modules(module: str, entries: Mapping[str, MethodEntry]) -> Iterator[str]:
    """Iterate over the plugin's module and those of the references of its methods."""
    yield module
    for entry in entries.values():
        for _, function in iterate_callables(entry):
            if reference := find_reference(function):
                yield reference.target.partition(":")[0]


def _declared_units(plugin: str, entries: Mapping[str, MethodEntry], used: frozenset[str]) -> Iterator[CodeUnit]:
    for name, entry in entries.items():
        for package in entry.packages:
            unit = find_unit(package)
            if unit is not None:
                yield unit
            elif name in used:
                raise PluginError(
                    f"the method {join_name(plugin, name)} declares the package {package!r}, which is not "
                    "installed; install it, or correct MethodEntry.packages"
                )


def absolute_imports(name: str, path: Path) -> Iterator[str]:
    """Iterate over the names that a file imports, such as 'package.module.function'.

    Parameters
    ----------
    name
        Path of the file below the folder from which it is imported.
    path
        Its full path.
    """
    package = name.split("/")[:-1]
    for num_dots, imported in find_imports(path):
        if num_dots == 0:
            yield imported
        elif num_dots <= len(package):
            yield ".".join([*package[: len(package) + 1 - num_dots], imported])


def core_hash() -> str:
    """Return the SHA-256 of the code of the package `peekbench`.

    Examples
    --------
    >>> len(core_hash())
    64
    """
    unit = find_unit(CORE)
    assert unit is not None
    return _summarize(dict(unit.files()))["sha256"]


def describe_code_change(before: PluginCode, after: PluginCode) -> str:
    """Name the files that differ between two states of a plugin's code.

    Returns
    -------
    str
        Empty if the code is the same.

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
