"""Finds, loads, checks and indexes plugins.

Only the plugin that is named gets imported, in a plugin manager of its own: a broken one elsewhere stops nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any, TypeVar

import pluggy

from peekbench.errors import PluginError
from peekbench.plugins import hookspecs
from peekbench.plugins.entries import (
    AnalyzerEntry,
    AuditEntry,
    DataSourceEntry,
    Entry,
    ExecutorEntry,
    MethodEntry,
    RendererEntry,
    TaskGroupEntry,
)
from peekbench.plugins.validation import ENTRY_NAME, check_entries

HOOKS: Mapping[str, tuple[str, tuple[type[Entry], ...]]] = MappingProxyType(
    {
        "peekbench_data_sources": ("data source", (DataSourceEntry, TaskGroupEntry)),
        "peekbench_methods": ("method", (MethodEntry,)),
        "peekbench_analyzers": ("analysis", (AnalyzerEntry,)),
        "peekbench_audits": ("audit", (AuditEntry,)),
        "peekbench_executors": ("executor", (ExecutorEntry,)),
        "peekbench_renderers": ("painter", (RendererEntry,)),
    }
)
PLURALS = {
    "data source": "data sources",
    "method": "methods",
    "analysis": "analyses",
    "audit": "audits",
    "executor": "executors",
    "painter": "painters",
}

E = TypeVar("E", bound=Entry)


@dataclass(frozen=True, slots=True)
class Plugin:
    """A loaded plugin and what it offers: kind ('method', ...) to name to entry."""

    name: str
    module: str
    offers: Mapping[str, Mapping[str, Entry]]


@cache
def installed() -> Mapping[str, tuple[EntryPoint, ...]]:
    """Every installed plugin by name, none of them imported; two entry points where distributions share a name."""
    found: dict[str, dict[str, EntryPoint]] = {}
    for point in entry_points(group=hookspecs.GROUP):
        found.setdefault(point.name, {}).setdefault(point.value, point)
    return MappingProxyType({name: tuple(found[name].values()) for name in sorted(found)})


def _origin(point: EntryPoint) -> str:
    return f"{point.value} of {point.dist.name}" if point.dist else point.value


@cache
def load(name: str) -> Plugin:
    """Import one plugin and collect its entries.

    Raises
    ------
    PluginError
        Where there is no such plugin, or two; it cannot be imported, implements an unknown hook, returns something
        other than a list of entries of the hook's kind, or entries that do not fit.
    """
    if name not in installed():
        raise PluginError(
            f"no plugin {name!r} is installed{_suggestion(name, installed())}; "
            f"installed: {', '.join(installed()) or 'none'}. Plugins come with `pip install`"
        )
    point, *others = installed()[name]
    if others:
        raise PluginError(
            f"two plugins are called {name!r}: {_origin(point)} and {_origin(others[0])}; uninstall one of them, "
            "or rename it in the entry points of its pyproject.toml"
        )
    if not ENTRY_NAME.fullmatch(name):
        raise PluginError(
            f"plugin {name!r} ({_origin(point)}) cannot be named in a spec; rename it in the entry points of its "
            "pyproject.toml: names are made of letters, digits, '_' and '-'"
        )
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
        caller: pluggy.HookCaller = getattr(manager.hook, hook)
        if callable(getattr(module, hook, None)) and not caller.get_hookimpls():
            raise PluginError(f"plugin {name!r} ({_origin(point)}): {hook} is not marked; put @hookimpl above it")
        try:
            answers = caller()
        except (Exception, SystemExit) as error:
            raise PluginError(
                f"plugin {name!r} ({_origin(point)}): {hook} raised {type(error).__name__}: {error}; "
                "hooks only register, and should have nothing to fail at"
            ) from error
        if caller.get_hookimpls() and not answers:  # pluggy leaves out None
            answers = [None]
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
        name: Any = entry.name
        if not (isinstance(name, str) and ENTRY_NAME.fullmatch(name)):
            raise PluginError(
                f"plugin {plugin!r}: {hook} returns an entry named {name!r}; "
                "names are made of letters, digits, '_' and '-'"
            )
        if name in into:
            raise PluginError(f"plugin {plugin!r}: {hook} returns two entries named {name!r}; rename one")
        into[name] = entry
    try:
        check_entries(into)
    except PluginError as error:
        raise PluginError(f"plugin {plugin!r}: {hook} returns what does not fit: {error}") from error


def split_use(use: str) -> tuple[str, str]:
    """Split `plugin.thing`; a plugin's name alone means its thing of the same name."""
    plugin, dot, thing = use.partition(".")
    return plugin, thing if dot else plugin


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
