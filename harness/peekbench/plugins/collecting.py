"""Call the hooks of an imported plugin, and check and index the entries that they return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import Any, TypeVar

import pluggy

from peekbench.errors import PluginError
from peekbench.plugins import hookspecs
from peekbench.plugins.entries import Entry
from peekbench.plugins.entry_names import join_name
from peekbench.plugins.estimators import is_estimator
from peekbench.plugins.functions import make_entry
from peekbench.plugins.kinds import KINDS, PluginKind, kind_of
from peekbench.plugins.local_code import is_code, is_given
from peekbench.plugins.validation import ENTRY_NAME, check_entries, find_misreading

EntryT = TypeVar("EntryT", bound=Entry)


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin that was imported, with its entries."""

    name: str
    """Name of its entry point."""
    module: str
    """Value of its entry point, such as 'peekbench_classic'."""
    offers: Mapping[str, Mapping[str, Entry]]
    """Entries by kind, such as 'method', and name."""

    def entries(self, entry_type: type[EntryT]) -> dict[str, EntryT]:
        """Return the entries of one type, by name."""
        entries = self.offers[kind_of(entry_type).name]
        return {name: entry for name, entry in entries.items() if isinstance(entry, entry_type)}


def make_plugin(name: str, module: ModuleType, place: str, plugin: str) -> Plugin:
    """Collect the entries that a module registers, and for code without a plugin those of its functions.

    Parameters
    ----------
    name
        Name of the entry point, or of the file or module.
    module
        Module that was imported.
    place
        Value of the entry point, or name of the module.
    plugin
        Description of the plugin for messages.

    Raises
    ------
    PluginError
        If the module implements an unknown hook, or a hook raises an error or returns wrong entries.
    """
    manager = pluggy.PluginManager(hookspecs.GROUP)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(module, name=name)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        hooks = ", ".join(kind.hook for kind in KINDS)
        raise PluginError(f"{plugin} implements a wrong hook: {error}; the hooks are {hooks}") from error
    offers = {kind.name: _collect(manager, module, kind, name, plugin) for kind in KINDS}
    if is_code(name):
        for entry_name, entry in _entries_of_functions(module):
            offers[kind_of(type(entry)).name].setdefault(entry_name, entry)
    return Plugin(name, place, MappingProxyType(offers))


def _entries_of_functions(module: ModuleType) -> Iterator[tuple[str, Entry]]:
    """Iterate over the entries of a module's own functions and estimators; other things are left out."""
    for name, thing in vars(module).items():
        is_own = getattr(thing, "__module__", "") == module.__name__ or is_given(module) or is_estimator(thing)
        if not name.startswith("_") and not name.startswith("peekbench_") and is_own:
            with suppress(PluginError, ValueError, TypeError):  # `find` reports the error if the name is wanted
                yield name, make_entry(thing, name)


def _collect(
    manager: pluggy.PluginManager, module: object, kind: PluginKind, owner: str, plugin: str
) -> dict[str, Entry]:
    """Call one hook of a plugin and return the checked entries by name."""
    caller: pluggy.HookCaller = getattr(manager.hook, kind.hook)
    implementations = caller.get_hookimpls()
    if callable(getattr(module, kind.hook, None)) and not implementations:
        raise PluginError(f"{plugin}: {kind.hook} is not marked; put @hookimpl above it")
    try:
        answers = caller()
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"{plugin}: {kind.hook} raised {type(error).__name__}: {error}; only return entries in a hook"
        ) from error
    if implementations and not answers:  # pluggy leaves out None
        answers = [None]
    entries: dict[str, Entry] = {}
    for answer in answers:
        _add_entries(answer, kind, owner, plugin, entries)
    return entries


def _add_entries(answer: object, kind: PluginKind, owner: str, plugin: str, entries: dict[str, Entry]) -> None:
    """Check what one hook returned and add it to `entries`."""
    expected = " or ".join(entry_type.__name__ for entry_type in kind.entry_types)
    if not isinstance(answer, list):
        raise PluginError(f"{plugin}: {kind.hook} must return a list of {expected}, not {type(answer).__name__}")
    for entry in answer:
        if not isinstance(entry, kind.entry_types):
            raise PluginError(f"{plugin}: {kind.hook} must return a list of {expected}, but one item is {entry!r}")
        name: Any = entry.name
        if not (isinstance(name, str) and ENTRY_NAME.fullmatch(name)):
            raise PluginError(
                f"{plugin}: {kind.hook} returns an entry named {name!r}; use letters, digits, '_' and '-'"
            )
        if not is_code(owner) and (read := find_misreading(use := join_name(owner, name), type(entry))):
            raise PluginError(
                f"{plugin}: {kind.hook} returns an entry named {name!r}, but specs read {use} as {read}; rename it"
            )
        if name in entries:
            raise PluginError(f"{plugin}: {kind.hook} returns two entries named {name!r}; rename one")
        entries[name] = entry
    try:
        check_entries(entries)
    except PluginError as error:
        raise PluginError(f"{plugin}: {kind.hook} returns a wrong entry: {error}") from error
