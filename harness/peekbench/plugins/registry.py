"""Find and import plugins, and find their entries by name.

Each plugin has its own plugin manager and is imported only if a spec or a command needs it, so that a broken plugin
affects only the specs that name it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from types import MappingProxyType, ModuleType
from typing import TypeVar
from weakref import WeakKeyDictionary

from peekbench.errors import PluginError
from peekbench.formatting import list_names
from peekbench.plugins.entries import GROUP, KINDS, Entry, PluginKind, ReportFormatEntry, kind_of
from peekbench.plugins.local_code import load_module
from peekbench.plugins.names import FILE, OF_FEW, find_nearest, is_code, join_name, split_name
from peekbench.plugins.validation import Plugin, make_entry, make_plugin
from peekbench.records.runs import OWN_FORMATS

EntryT = TypeVar("EntryT", bound=Entry)
MAX_LISTED = 12  # entries of a plugin that a message lists
DISTRIBUTION = "peekbench"
"""Distribution of the core, whose own plugins are the defaults."""
INSTALL = "install the plugin with `pip install`, or name a function in a file, as in `my_file.py:{}`"
"""Remedy for the name of a plugin that is not installed."""
FUNCTIONS = {"data source": "load", "method": "fit", "analysis": "analyze"}
"""Names of functions in examples, by the kind of the entry."""
ANY_KIND = PluginKind("entry", "entries", "all", "", ())
"""What a name can mean if every kind of entry is meant."""


@cache
def installed() -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return the entry points of all installed plugins by name, without importing the plugins.

    A name has two entry points if two distributions use it.
    """
    points: dict[str, dict[str, EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        points.setdefault(point.name, {}).setdefault(point.value, point)
    return MappingProxyType({name: tuple(points[name].values()) for name in sorted(points)})


@cache
def _name_of(distribution: Distribution) -> str:
    """Return the name of a distribution, whose metadata `importlib` parses at each access."""
    return distribution.name


def _origin(point: EntryPoint) -> str:
    if point.dist is None:
        return point.value
    return f"{point.value} of {_name_of(point.dist)}"


def is_known(plugin: str) -> bool:
    """Return whether a plugin is installed, or is a file or a module."""
    return is_code(plugin) or plugin in installed()


def load(name: str) -> Plugin:
    """Import one plugin, or code without a plugin, and collect its entries.

    Raises
    ------
    PluginError
        If no plugin or two plugins have the name, or if the plugin cannot be imported, implements an unknown hook or
        returns wrong entries.
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
    if name not in installed():
        raise PluginError(_describe_missing_plugin(name, ANY_KIND))
    point, *others = installed()[name]
    if others:
        raise PluginError(
            f"two plugins are named {name!r}: {_origin(point)} and {_origin(others[0])}; uninstall one of them, "
            "or rename it in the entry points of its pyproject.toml"
        )
    plugin = f"plugin {name!r} ({_origin(point)})"
    try:
        module = point.load()
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"{plugin} cannot be imported: {type(error).__name__}: {error}; reinstall the plugin or its dependencies"
        ) from error
    return make_plugin(name, module, point.value, plugin)


def find(use: str, entry_type: type[EntryT]) -> EntryT:
    """Find an entry of a type by the name that a spec uses.

    Raises
    ------
    PluginError
        If the plugin cannot be loaded, or has no such entry.
    """
    kind = kind_of(entry_type)
    found = find_all(use, kind)
    entry = found.get(kind.name)
    if isinstance(entry, entry_type):
        return entry
    if entry is not None:
        raise PluginError(f"{use!r} is a group of {kind.plural} and is not allowed here; name one of its members")
    other = next(other for other in KINDS if other.name in found)
    raise PluginError(f"no {kind.name} {use!r}; it is one of the {other.plural}, which belong under {other.heading}")


def find_all(use: str, wanted: PluginKind = ANY_KIND) -> dict[str, Entry]:
    """Find all entries with a name that a user gives, by the name of their kind.

    Raises
    ------
    PluginError
        If the plugin cannot be loaded, or has no such entry. The message has names of the kind that is wanted.
    """
    plugin_name, entry_name = split_name(use)
    if use.endswith(FILE):
        raise PluginError(f"{use!r} is a file; name a function in it, as in `{use}:{_example(wanted)}`")
    if not is_known(plugin_name):
        raise PluginError(_describe_missing_plugin(use, wanted))
    offers = load(plugin_name).offers
    found = {kind: entries[entry_name] for kind, entries in offers.items() if entry_name in entries}
    if not found:
        raise PluginError(_describe_missing_entry(use, wanted))
    return found


def _example(kind: PluginKind) -> str:
    return FUNCTIONS.get(kind.name, "fit")


def _describe_missing_plugin(use: str, kind: PluginKind) -> str:
    """Return a message about a name whose plugin is not installed, with names of the kind that is wanted only."""
    remedy = suggest(use, kind) or f"{_list_plugins(kind)}."
    return f"no plugin {split_name(use)[0]!r} is installed; {remedy} Otherwise, {INSTALL.format(_example(kind))}"


def _describe_missing_entry(use: str, kind: PluginKind) -> str:
    """Return a message about a name that a plugin lacks, with names of the kind that is wanted only."""
    plugin_name, entry_name = split_name(use)
    names = _names(kind, plugin_name)
    if is_code(plugin_name):
        return _describe_missing_function(use, names)
    if entry_name == plugin_name and names:
        return f"{use!r} is a plugin; name one of its {kind.plural}: {list_names(names, MAX_LISTED)}"
    remedy = suggest(use, kind)
    if not remedy and names:
        remedy = f"{plugin_name} offers: {list_names(names, MAX_LISTED)}"
    return f"no {kind.name} {use!r}; {remedy or _list_plugins(kind)}"


def _describe_missing_function(use: str, names: Sequence[str]) -> str:
    """Return a message about a name in a file or a module that is no entry: what it is, or the nearest name."""
    plugin_name, entry_name = split_name(use)
    code = plugin_name.rstrip(":")
    module = load_module(plugin_name)
    if hasattr(module, entry_name):
        try:
            make_entry(getattr(module, entry_name), entry_name)  # which says why it is no entry
        except PluginError as error:
            return f"{code}:{error}"
        return f"{use!r} is imported there from another module; name that module instead"
    remedy = "name a function"
    if names:
        remedy = f"name one of {list_names(names, MAX_LISTED)}"
    if near := find_nearest(join_name(plugin_name, entry_name), names, OF_FEW):
        remedy = f"did you mean {near}?"
    return f"{code} has no {entry_name!r}; {remedy}"


def suggest(use: str, kind: PluginKind = ANY_KIND) -> str:
    """Return a question that names the installed entry with the most similar name; empty if there is none.

    Examples
    --------
    >>> suggest("lsa")
    'did you mean classic.lsa?'
    """
    nearest = find_nearest(use, installed_names(kind))
    if not nearest:
        return ""
    return f"did you mean {nearest}?"


def installed_names(kind: PluginKind) -> list[str]:
    """Return the names of all entries of a kind that installed plugins have; broken plugins are left out."""
    names = []
    for plugin in installed():
        with suppress(PluginError):
            names += _names(kind, plugin)
    return names


def _names(kind: PluginKind, plugin: str) -> list[str]:
    """Return the names of the entries of a kind that a plugin has."""
    offers = load(plugin).offers
    kinds = [other for other in KINDS if kind in (other, ANY_KIND)]
    return [join_name(plugin, name) for kind in kinds for name in sorted(offers[kind.name])]


def _list_plugins(kind: PluginKind) -> str:
    plugins = list(dict.fromkeys(split_name(name)[0] for name in installed_names(kind)))
    return f"plugins with {kind.plural}: {list_names(plugins, MAX_LISTED)}"


def find_default(entry_type: type[EntryT], role: str, has_role: Callable[[EntryT], bool]) -> str:
    """Find the entry with a role that is used if neither the spec nor the command names one.

    It comes with peekbench, so installing another plugin changes no report.

    Returns
    -------
    str
        Name of the entry in specs, `plugin.thing`.

    Raises
    ------
    PluginError
        If there is none.
    """
    for plugin, (point, *_) in installed().items():
        if point.dist is not None and _name_of(point.dist) == DISTRIBUTION:
            for name, entry in load(plugin).entries(entry_type).items():
                if has_role(entry):
                    return join_name(plugin, name)
    raise PluginError(f"no plugin of peekbench has a {role}; install peekbench again")


def find_format(use: str) -> ReportFormatEntry:
    """Return a report format of a plugin.

    Raises
    ------
    PluginError
        If there is no such format. The message names all formats.
    """
    if is_known(split_name(use)[0]):
        return find(use, ReportFormatEntry)
    names = [*OWN_FORMATS, *installed_names(kind_of(ReportFormatEntry))]
    problem = f"{use!r} is not one of {', '.join(names)}"
    if near := find_nearest(use, names):
        problem += f"; did you mean {near}?"
    raise PluginError(problem)


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
