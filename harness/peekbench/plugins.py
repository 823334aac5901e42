"""Finds, loads, checks and indexes plugins.

Only the plugin that is named gets imported, in a plugin manager of its own: a broken one elsewhere stops nobody.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import TypeVar

import pluggy

from peekbench import hookspecs
from peekbench.entries import AnalyzerEntry, DataSourceEntry, Entry, ExecutorEntry, MethodEntry, TaskGroupEntry
from peekbench.errors import PluginError

HOOKS: Mapping[str, tuple[str, tuple[type[Entry], ...]]] = MappingProxyType(
    {
        "peekbench_data_sources": ("data source", (DataSourceEntry, TaskGroupEntry)),
        "peekbench_methods": ("method", (MethodEntry,)),
        "peekbench_analyzers": ("analysis", (AnalyzerEntry,)),
        "peekbench_executors": ("executor", (ExecutorEntry,)),
    }
)
PLURALS = {"data source": "data sources", "method": "methods", "analysis": "analyses", "executor": "executors"}
ENTRY_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*", re.IGNORECASE)

E = TypeVar("E", bound=Entry)


@dataclass(frozen=True, slots=True)
class Plugin:
    """A loaded plugin and what it offers: kind ('method', ...) to name to entry."""

    name: str
    module: str
    offers: Mapping[str, Mapping[str, Entry]]


@cache
def installed() -> Mapping[str, EntryPoint]:
    """Every installed plugin by name, none of them imported.

    Raises
    ------
    PluginError
        Where two distributions register different modules under one name.
    """
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=hookspecs.GROUP):
        other = found.setdefault(point.name, point)
        if other.value != point.value:
            raise PluginError(
                f"two plugins are called {point.name!r}: {_origin(other)} and {_origin(point)}; uninstall one of them, "
                "or rename it in the entry points of its pyproject.toml"
            )
    return MappingProxyType(dict(sorted(found.items())))


def _origin(point: EntryPoint) -> str:
    return f"{point.value} of {point.dist.name}" if point.dist else point.value


@cache
def load(name: str) -> Plugin:
    """Import one plugin and collect its entries.

    Raises
    ------
    PluginError
        Where there is no such plugin, or it cannot be imported, implements an unknown hook, returns something other
        than a list of entries of the hook's kind, or gives two entries one name.
    """
    if name not in installed():
        raise PluginError(
            f"no plugin {name!r} is installed{_suggestion(name, installed())}; "
            f"installed: {', '.join(installed()) or 'none'}. Plugins come with `pip install`"
        )
    point = installed()[name]
    try:
        module = point.load()
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"plugin {name!r} ({_origin(point)}) cannot be imported: {type(error).__name__}: {error}; "
            "reinstall it, or what it needs"
        ) from error
    manager = pluggy.PluginManager(hookspecs.GROUP)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(module, name=name)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        raise PluginError(
            f"plugin {name!r} ({_origin(point)}) does not fit: {error}; the hooks are {', '.join(HOOKS)}"
        ) from error
    offers: dict[str, dict[str, Entry]] = {}
    for hook, (kind, types) in HOOKS.items():
        try:
            answers = getattr(manager.hook, hook)()
        except (Exception, SystemExit) as error:
            raise PluginError(
                f"plugin {name!r} ({_origin(point)}): {hook} raised {type(error).__name__}: {error}; "
                "hooks only register, and should have nothing to fail at"
            ) from error
        for returned in answers:
            _collect(returned, name, hook, types, offers.setdefault(kind, {}))
    return Plugin(name, point.value, MappingProxyType(offers))


def _collect(returned: object, plugin: str, hook: str, types: tuple[type[Entry], ...], into: dict[str, Entry]) -> None:
    """Check what one hook returned and add it to `into`."""
    wanted = " or ".join(entry_type.__name__ for entry_type in types)
    if not isinstance(returned, list):
        raise PluginError(f"plugin {plugin!r}: {hook} must return a list of {wanted}, not {type(returned).__name__}")
    for entry in returned:
        if not isinstance(entry, types):
            raise PluginError(f"plugin {plugin!r}: {hook} must return a list of {wanted}, but one is {entry!r}")
        if not ENTRY_NAME.fullmatch(entry.name):
            raise PluginError(
                f"plugin {plugin!r}: {hook} returns an entry named {entry.name!r}; "
                "names are made of letters, digits, '_' and '-'"
            )
        if entry.name in into:
            raise PluginError(f"plugin {plugin!r}: {hook} returns two entries named {entry.name!r}; rename one")
        into[entry.name] = entry


def split_use(use: str) -> tuple[str, str]:
    """Split `plugin.thing`; a plugin's name alone means its thing of the same name."""
    plugin, _, thing = use.partition(".")
    return plugin, thing or plugin


def find(use: str, kind: str, entry_type: type[E]) -> E:
    """Look up what a spec calls `use`.

    Raises
    ------
    PluginError
        Where the plugin cannot be loaded, or offers no such thing.
    """
    plugin_name, thing = split_use(use)
    offers = load(plugin_name).offers.get(kind, {})
    entry = offers.get(thing)
    if isinstance(entry, entry_type):
        return entry
    if entry is not None:
        raise PluginError(f"{use!r} is a group of {PLURALS[kind]} and cannot stand here; name one of its members")
    others = [other for other, things in load(plugin_name).offers.items() if thing in things]
    hint = f" ({use!r} is among the {PLURALS[others[0]]})" if others else _suggestion(thing, offers)
    offered = f"{plugin_name} offers: {', '.join(sorted(offers))}" if offers else f"{plugin_name} offers none"
    raise PluginError(f"no {kind} {use!r}{hint}; {offered}")


def _suggestion(name: str, among: Mapping[str, object]) -> str:
    close = get_close_matches(name, among, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
