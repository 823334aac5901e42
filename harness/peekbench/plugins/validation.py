"""Make a plugin of an imported module: call its hooks, and check and index its entries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import Any, TypeVar, get_args

import pluggy
from pydantic.errors import PydanticUserError

from peekbench.errors import PluginError
from peekbench.plugins import entries as hookspecs
from peekbench.plugins.entries import (
    GROUP,
    KINDS,
    Entry,
    MethodEntry,
    MethodTaskKind,
    PluginKind,
    kind_of,
)
from peekbench.plugins.functions import make_entry
from peekbench.plugins.local_code import REFERENCE
from peekbench.plugins.names import SESSION, is_code
from peekbench.plugins.protocols import Options, is_estimator
from peekbench.plugins.references import find_reference, iterate_callables

DATA_SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".pq", ".arrow", ".txt", ".xlsx")
"""Ends of names under `tasks` that mean files."""
ENTRY_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*", re.IGNORECASE)
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

    Raises
    ------
    PluginError
        If the module implements an unknown hook, or a hook raises an error or returns wrong entries.
    """
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(module, name=name)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        hooks = ", ".join(kind.hook for kind in KINDS)
        raise PluginError(f"{plugin} implements a wrong hook: {error}; the hooks are {hooks}") from error
    offers = {kind.name: _collect(manager, module, kind, f"{plugin}: {kind.hook}") for kind in KINDS}
    if is_code(name):
        for entry_name, entry in _entries_of_functions(module):
            offers[kind_of(type(entry)).name].setdefault(entry_name, entry)
    return Plugin(name, place, MappingProxyType(offers))


def _entries_of_functions(module: ModuleType) -> Iterator[tuple[str, Entry]]:
    """Iterate over the entries of a module's own functions and estimators; other things are left out."""
    has_only_own = module.__name__ == SESSION
    for name, thing in dict(vars(module)).items():
        is_own = has_only_own or getattr(thing, "__module__", "") == module.__name__ or is_estimator(thing)
        if not name.startswith(("_", "peekbench_")) and is_own:
            with suppress(PluginError, ValueError, TypeError):  # `find` reports the error if the name is wanted
                yield name, make_entry(thing, name)


def _collect(manager: pluggy.PluginManager, module: ModuleType, kind: PluginKind, hook: str) -> dict[str, Entry]:
    """Call one hook of a plugin, and return the checked entries by name; `hook` describes it in messages."""
    caller: pluggy.HookCaller = getattr(manager.hook, kind.hook)
    if not caller.get_hookimpls():
        if callable(getattr(module, kind.hook, None)):
            raise PluginError(f"{hook} is not marked; put @hookimpl above it")
        return {}
    try:
        answer = next(iter(caller()), None)  # pluggy leaves out None
    except (Exception, SystemExit) as error:
        raise PluginError(f"{hook} raised {type(error).__name__}: {error}; only return entries in a hook") from error
    expected = " or ".join(entry_type.__name__ for entry_type in kind.entry_types)
    if not isinstance(answer, list):
        raise PluginError(f"{hook} must return a list of {expected}, not {type(answer).__name__}")
    entries: dict[str, Entry] = {}
    for entry in answer:
        if not isinstance(entry, kind.entry_types):
            raise PluginError(f"{hook} must return a list of {expected}, but one item is {entry!r}")
        name: Any = entry.name
        if not (isinstance(name, str) and ENTRY_NAME.fullmatch(name)):
            raise PluginError(f"{hook} returns an entry named {name!r}; use letters, digits, '_' and '-'")
        if name in entries:
            raise PluginError(f"{hook} returns two entries named {name!r}; rename one")
        entries[name] = entry
    for entry in entries.values():
        check_entry(entry, hook)
    return entries


def check_entry(entry: Entry, hook: str) -> None:
    """Check the fields of an entry that a hook returned.

    Raises
    ------
    PluginError
        If a field has a wrong value; the message names the entry, the field and the expected value.
    """
    for problem in _find_errors(entry):
        raise PluginError(f"{hook} returns a wrong entry: {type(entry).__name__} {entry.name!r}: {problem}")


def _find_errors(entry: Entry) -> Iterator[str]:
    for name, function in iterate_callables(entry):
        reference = find_reference(function)
        if reference and not REFERENCE.fullmatch(reference.target):
            yield f"{name} is {reference.target!r}, which is not of the form 'package.module:function'"
        if not callable(function):
            yield f"{name} is {function!r}; give a function, or a reference such as 'package.module:function'"
    options: Any = getattr(entry, "options", Options)
    if not (isinstance(options, type) and issubclass(options, Options)):
        yield f"options is {options!r}; give a class derived from peekbench.Options"
    if isinstance(entry, MethodEntry):
        yield from _find_method_errors(entry)


def _find_method_errors(entry: MethodEntry) -> Iterator[str]:
    task_kinds: Any = entry.task_kinds
    kinds = frozenset(get_args(MethodTaskKind))
    if not (isinstance(task_kinds, frozenset) and task_kinds and task_kinds <= kinds):
        yield f"task_kinds is {task_kinds!r}; give a frozenset of one or more of {sorted(kinds)}"
    names: Any = entry.unlabeled_options
    if not (isinstance(names, frozenset) and names <= entry.options.model_fields.keys()):
        yield f"unlabeled_options is {names!r}; give a frozenset of names of its options"


def options_schema(options: type[Options]) -> dict[str, Any]:
    """Return the JSON schema of a plugin's options.

    Raises
    ------
    PluginError
        If an option has a type that YAML cannot express.
    """
    try:
        return options.model_json_schema()
    except PydanticUserError as error:
        raise PluginError(
            f"options {options.__name__}: {error.message}; give each option a type that YAML can express: text, "
            "numbers, booleans, lists, mappings"
        ) from error
