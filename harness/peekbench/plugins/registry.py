"""Find and import plugins, and find their entries by name.

Each plugin has its own plugin manager and is imported only if a spec or a command needs it, so that a broken plugin
affects only the specs that name it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from peekbench.errors import ContractError, PluginError, PluginWarning
from peekbench.formatting import list_names
from peekbench.plugins import api_version, registry
from peekbench.plugins.entries import GROUP, KINDS, PluginKind, ReportFormatEntry, kind_of
from peekbench.plugins.functions import make_entry
from peekbench.plugins.local_code import FILE, is_code, join_name, load_module, split_name
from peekbench.plugins.similar_names import OF_FEW, find_nearest
from peekbench.plugins.validation import EntryT, Plugin, make_plugin
from peekbench.records.runs import OWN_FORMATS

if TYPE_CHECKING:
    from peekbench.records.report import Report

MAX_LISTED = 12  # entries of a plugin that a message lists

DISTRIBUTION = "peekbench"
"""Distribution of the core, whose own plugins are the defaults."""
INSTALL = "install the plugin with `pip install`, or name a function in a file, as in `my_file.py:{}`"
"""Remedy for the name of a plugin that is not installed."""
FUNCTIONS = {"data source": "load", "method": "fit", "analysis": "analyze"}
"""Names of functions in examples, by the kind of the entry."""


@cache
def installed() -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return the entry points of all installed plugins by name, without importing the plugins.

    A name has two entry points if two distributions use it.
    """
    points: dict[str, dict[str, EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        points.setdefault(point.name, {}).setdefault(point.value, point)
    return MappingProxyType({name: tuple(points[name].values()) for name in sorted(points)})


def _origin(point: EntryPoint) -> str:
    return f"{point.value} of {_name_of(point.dist)}" if point.dist else point.value


@cache
def _name_of(distribution: Distribution) -> str:
    """Return the name of a distribution, whose metadata `importlib` parses at each access."""
    return distribution.name


def load(name: str) -> Plugin:
    """Import one plugin and collect its entries.

    Raises
    ------
    PluginError
        If no plugin or two plugins have the name, or if the plugin is made for another version of the plugin API,
        cannot be imported, implements an unknown hook or returns wrong entries.
    """
    if not is_code(name):
        return load_installed(name)
    module = load_module(name)
    if module not in _of_modules:
        _of_modules[module] = make_plugin(name, module, module.__name__, name)
    return _of_modules[module]


_of_modules: WeakKeyDictionary[ModuleType, Plugin] = WeakKeyDictionary()
"""Plugins of modules without a distribution. Other code is another module."""


@cache
def load_installed(name: str) -> Plugin:
    """Import one installed plugin and collect its entries; see `load`."""
    point = _only_entry_point(name)
    plugin = f"plugin {name!r} ({_origin(point)})"
    if is_shipped(point):
        return _import(point, plugin)
    try:
        stated = api_version.find_stated_version(point.module)
        api_version.check_version(stated)
    except PluginError as error:
        raise PluginError(f"{plugin} {error}") from error
    try:
        return _import(point, plugin)
    except PluginError as error:
        if not api_version.is_newer(stated):
            raise
        mismatch = api_version.describe_mismatch(stated)
        raise PluginError(f"{plugin} {mismatch}, which lacks what it uses; upgrade peekbench. {error}") from error


def is_shipped(point: EntryPoint) -> bool:
    """Return whether a plugin comes with peekbench."""
    return point.dist is not None and _name_of(point.dist) == DISTRIBUTION


def _import(point: EntryPoint, plugin: str) -> Plugin:
    """Import a plugin and collect its entries; `plugin` describes it in messages."""
    try:
        module = point.load()
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"{plugin} cannot be imported: {type(error).__name__}: {error}; reinstall the plugin or its dependencies"
        ) from error
    return make_plugin(point.name, module, point.value, plugin)


def is_known(plugin: str) -> bool:
    """Return whether a plugin is installed, or is a file or a module."""
    return is_code(plugin) or plugin in installed()


def check_known(use: str) -> None:
    """Check that the plugin of an entry is installed, or is code that needs no plugin.

    Raises
    ------
    PluginError
        If it is not. The message has the nearest installed name, and says what else to do.
    """
    plugin, _ = split_name(use)
    _refuse_file(use)
    if not is_known(plugin) and suggest(use):
        raise PluginError(_describe_missing_plugin(use))


def _example(kind: PluginKind | None) -> str:
    return FUNCTIONS.get("" if kind is None else kind.name, "fit")


def _refuse_file(use: str, kind: PluginKind | None = None) -> None:
    if use.endswith(FILE):
        raise PluginError(f"{use!r} is a file; name a function in it, as in `{use}:{_example(kind)}`")


def _only_entry_point(name: str) -> EntryPoint:
    if name not in installed():
        raise PluginError(_describe_missing_plugin(name))
    point, *others = installed()[name]
    if others:
        raise PluginError(
            f"two plugins are named {name!r}: {_origin(point)} and {_origin(others[0])}; uninstall one of them, "
            "or rename it in the entry points of its pyproject.toml"
        )
    return point


def find(use: str, entry_type: type[EntryT]) -> EntryT:
    """Find an entry by the name that a spec uses.

    Raises
    ------
    PluginError
        If the plugin cannot be loaded, or has no such entry.
    """
    kind = kind_of(entry_type)
    plugin_name, entry_name = split_name(use)
    _refuse_file(use, kind)
    if is_code(plugin_name):
        return _find_code(use, entry_type)
    if plugin_name not in installed():
        raise PluginError(_describe_missing_plugin(use, kind))
    plugin = load(plugin_name)
    offers = plugin.offers[kind.name]
    entry = offers.get(entry_name)
    if isinstance(entry, entry_type):
        return entry
    if entry is not None:
        raise PluginError(f"{use!r} is a group of {kind.plural} and is not allowed here; name one of its members")
    for other in KINDS:
        if entry_name in plugin.offers[other.name]:
            raise PluginError(
                f"no {kind.name} {use!r}; it is one of the {other.plural}, which belong under {other.heading}"
            )
    names = [join_name(plugin_name, name) for name in sorted(offers)]
    if use == plugin_name and names:
        raise PluginError(f"{use!r} is a plugin; name one of its {kind.plural}: {_list(names)}")
    remedy = f"{plugin_name} offers: {_list(names)}" if names else _list_plugins(kind)
    raise PluginError(f"no {kind.name} {use!r}; {suggest(use, kind) or remedy}")


def _find_code(use: str, entry_type: type[EntryT]) -> EntryT:
    """Find the entry of a function in a file or a module."""
    kind = kind_of(entry_type)
    plugin_name, entry_name = split_name(use)
    plugin = load(plugin_name)
    entry = plugin.offers[kind.name].get(entry_name)
    if isinstance(entry, entry_type):
        return entry
    for other in KINDS:
        if entry_name in plugin.offers[other.name]:
            raise PluginError(
                f"{use!r} is one of the {other.plural}, which belong under {other.heading}, not a {kind.name}"
            )
    raise explain_missing_function(use, [join_name(plugin_name, name) for name in sorted(plugin.offers[kind.name])])


def explain_missing_function(use: str, names: Sequence[str]) -> PluginError:
    """Return the error of a name in a file or a module that is no entry.

    Raises
    ------
    PluginError
        If the name is one of a function, and the function cannot be an entry. The message says why.
    """
    plugin_name, entry_name = split_name(use)
    code = plugin_name.rstrip(":")
    module = load_module(plugin_name)
    if hasattr(module, entry_name):
        try:
            make_entry(getattr(module, entry_name), entry_name)  # which says why it is no entry
        except PluginError as error:
            raise PluginError(f"{code}:{error}") from error
        return PluginError(f"{use!r} is imported there from another module; name that module instead")
    if near := find_nearest(join_name(plugin_name, entry_name), names, OF_FEW):
        return PluginError(f"{code} has no {entry_name!r}; did you mean {near}?")
    remedy = f"name one of {_list(names)}" if names else "name a function"
    return PluginError(f"{code} has no {entry_name!r}; {remedy}")


def _describe_missing_plugin(use: str, kind: PluginKind | None = None) -> str:
    """Return a message about a name whose plugin is not installed, with names of the kind that is wanted only."""
    name, _ = split_name(use)
    remedy = suggest(use, kind)
    if not remedy:
        remedy = f"{_list_plugins(kind)}."
        if near := find_nearest(name, _plugins_with(kind)):
            remedy = f"did you mean {near}?"
    return f"no plugin {name!r} is installed; {remedy} Otherwise, {INSTALL.format(_example(kind))}"


def _list_plugins(kind: PluginKind | None) -> str:
    plugins = "plugins"
    if kind is not None:
        plugins += f" with {kind.plural}"
    return f"{plugins}: {_list(_plugins_with(kind))}"


def _plugins_with(kind: PluginKind | None) -> list[str]:
    if kind is None:
        return list(installed())
    return list(dict.fromkeys(split_name(name)[0] for name in _names(kind, tuple(installed()))))


def suggest(use: str, kind: PluginKind | None = None) -> str:
    """Return a question that names the installed entry with the most similar name; empty if there is none.

    Examples
    --------
    >>> suggest("lsa")
    'did you mean classic.lsa?'
    """
    kinds = KINDS if kind is None else (kind,)
    nearest = find_nearest(use, [name for each in kinds for name in _names(each, tuple(installed()))])
    return f"did you mean {nearest}?" if nearest else ""


@cache
def _names(kind: PluginKind, plugins: Sequence[str]) -> list[str]:
    """Return the names of all entries of a kind that plugins have; broken plugins are left out."""
    names = []
    for plugin in plugins:
        with suppress(PluginError):
            names += [join_name(plugin, name) for name in sorted(load(plugin).offers[kind.name])]
    return names


def _list(names: Sequence[str]) -> str:
    return list_names(names, MAX_LISTED) or "none"


def names_with(entry_type: type[EntryT], has_role: Callable[[EntryT], bool]) -> list[str]:
    """Return the names of the installed entries of a type that have a role; broken plugins are left out."""
    names = []
    for plugin in installed():
        with suppress(PluginError):
            entries = load(plugin).entries(entry_type)
            names += [join_name(plugin, name) for name, entry in entries.items() if has_role(entry)]
    return names


def find_default(entry_type: type[EntryT], role: str, remedy: str, has_role: Callable[[EntryT], bool]) -> str:
    """Find the entry with a role that is used if neither the spec nor the command names one.

    An entry that comes with peekbench takes precedence, so installing another plugin changes no report. Broken plugins
    are skipped with a `PluginWarning`.

    Returns
    -------
    str
        Name of the entry in specs, `plugin.thing`.

    Raises
    ------
    PluginError
        If no installed plugin has such an entry, or if several have and the choice is not clear.
    """
    shipped = {name for name, (point, *_) in installed().items() if is_shipped(point)}
    for plugins in (shipped, installed().keys() - shipped):
        names = []
        for name in sorted(plugins):
            try:
                entries = load(name).entries(entry_type)
            except PluginError as error:
                warnings.warn(str(error), PluginWarning, stacklevel=2)
                continue
            names += [join_name(name, entry_name) for entry_name, entry in entries.items() if has_role(entry)]
        if len(names) == 1:
            return names[0]
        if names:
            raise PluginError(f"several installed plugins have a {role}: {', '.join(names)}; {remedy}")
    raise PluginError(f"no installed plugin has a {role}; install one with `pip install`")


def find_format(use: str) -> ReportFormatEntry:
    """Return a report format of a plugin.

    Raises
    ------
    PluginError
        If there is no such format. The message names all formats.
    """
    if not registry.is_known(split_name(use)[0]):
        names = [*OWN_FORMATS, *names_with(ReportFormatEntry, lambda _: True)]
        near = find_nearest(use, names)
        raise PluginError(f"{use!r} is not one of {', '.join(names)}" + (f"; did you mean {near}?" if near else ""))
    return registry.find(use, ReportFormatEntry)


def check_format(use: str) -> str:
    """Return the name of a report format that exists.

    Raises
    ------
    PluginError
        If there is no such format; see `find_format`.
    """
    if use not in OWN_FORMATS:
        find_format(use)
    return use


def write_format(use: str, entry: ReportFormatEntry, report: Report, path: Path) -> list[Path]:
    """Let a format of a plugin write a report.

    Returns
    -------
    list of Path
        Files in the folder, sorted and relative to it; empty if the format is a file.

    Raises
    ------
    ContractError
        If it does not write the file, or nothing into the folder.
    """
    if entry.suffix:
        entry.write(report, path)
        if not path.is_file():
            raise ContractError(f"report format {use} wrote no file; write it to the path that is the second argument")
        return []
    path.mkdir()
    entry.write(report, path)
    if not (files := list_files(path)):
        raise ContractError(f"report format {use} wrote no file; write to the folder that is the second argument")
    return files


def list_files(folder: Path) -> list[Path]:
    """Return the files in a folder and in its folders, sorted and relative to it."""
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir())
