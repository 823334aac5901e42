"""Call the hooks of an imported plugin, and check and index the entries that they return."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from types import MappingProxyType, ModuleType
from typing import Any, TypeVar, get_args

import pluggy
from pydantic.errors import PydanticUserError

from peekbench.errors import PluginError
from peekbench.plugins import entries as hookspecs
from peekbench.plugins.entries import (
    KINDS,
    AnalyzerRole,
    DataSourceEntry,
    Entry,
    MethodEntry,
    PluginKind,
    Preparation,
    kind_of,
)
from peekbench.plugins.functions import is_estimator, make_entry
from peekbench.plugins.local_code import SESSION, complete_target, is_code
from peekbench.plugins.protocols import Options
from peekbench.plugins.references import find_reference, find_reference_error, iterate_callables
from peekbench.records.data import TaskKind

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
    manager = pluggy.PluginManager(hookspecs.GROUP)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(module, name=name)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        hooks = ", ".join(kind.hook for kind in KINDS)
        raise PluginError(f"{plugin} implements a wrong hook: {error}; the hooks are {hooks}") from error
    offers = {kind.name: _collect(manager, module, kind, plugin) for kind in KINDS}
    if is_code(name):
        for entry_name, entry in _entries_of_functions(module):
            offers[kind_of(type(entry)).name].setdefault(entry_name, entry)
    return Plugin(name, place, MappingProxyType(offers))


def _entries_of_functions(module: ModuleType) -> Iterator[tuple[str, Entry]]:
    """Iterate over the entries of a module's own functions and estimators; other things are left out."""
    has_only_own = module.__name__ == SESSION
    for name, thing in dict(vars(module)).items():
        is_own = has_only_own or getattr(thing, "__module__", "") == module.__name__ or is_estimator(thing)
        if not name.startswith("_") and not name.startswith("peekbench_") and is_own:
            with suppress(PluginError, ValueError, TypeError):  # `find` reports the error if the name is wanted
                yield name, make_entry(thing, name)


def _collect(manager: pluggy.PluginManager, module: ModuleType, kind: PluginKind, plugin: str) -> dict[str, Entry]:
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
        _add_entries(answer, kind, plugin, entries, module)
    return entries


def _add_entries(answer: object, kind: PluginKind, plugin: str, entries: dict[str, Entry], module: ModuleType) -> None:
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
        if name in entries:
            raise PluginError(f"{plugin}: {kind.hook} returns two entries named {name!r}; rename one")
        entries[name] = entry
        for _, function in iterate_callables(entry):
            if reference := find_reference(function):
                reference.target = complete_target(reference.target, module)
    try:
        check_entries(entries)
    except PluginError as error:
        raise PluginError(f"{plugin}: {kind.hook} returns a wrong entry: {error}") from error


ENTRY_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*", re.IGNORECASE)
DATA_SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".pq", ".txt", ".xlsx")
"""Ends of names under `tasks` that mean files."""
FILE_SUFFIX = re.compile(r"(\.[a-z0-9]+)+", re.IGNORECASE)


def check_entries(entries: Mapping[str, Entry]) -> None:
    """Check the fields of the entries that one hook returned.

    Raises
    ------
    PluginError
        If a field has a wrong value; the message names the entry, the field and the expected value.
    """
    for name, entry in entries.items():
        if error := next(_entry_errors(entry, entries), ""):
            raise PluginError(f"{type(entry).__name__} {name!r}: {error}")


def _entry_errors(entry: Any, entries: Mapping[str, Entry]) -> Iterator[str]:
    yield from _callable_errors(entry)
    for field in fields(entry):
        if check := FIELD_CHECKS.get(field.name):
            yield from check(entry, entries)


def _callable_errors(entry: Any) -> Iterator[str]:
    for name, value in iterate_callables(entry):
        if (reference := find_reference(value)) and (error := find_reference_error(reference)):
            yield f"{name} {error}: {reference.target!r}"
        if not callable(value):
            yield f"{name} is {value!r}; give a function, or a reference such as 'package.module:function'"


def _options_errors(entry: Any, _: Mapping[str, Entry]) -> Iterator[str]:
    options = entry.options
    if not (isinstance(options, type) and issubclass(options, Options)):
        yield f"options is {options!r}; give a class derived from peekbench.Options"
        return
    for name, field in options.model_fields.items():
        if field.alias or field.validation_alias or field.serialization_alias:
            yield f"its option {name!r} has an alias; give each option one name, for specs and code"


def _task_kinds_errors(entry: Any, _: Mapping[str, Entry]) -> Iterator[str]:
    value, kinds = entry.task_kinds, {*get_args(TaskKind), "tabular_classification", "text_regression"}
    if not (isinstance(value, frozenset) and value and value <= kinds):
        yield f"task_kinds is {value!r}; give a frozenset of one or more of {sorted(kinds)}"


def _unlabeled_options_errors(entry: Any, _: Mapping[str, Entry]) -> Iterator[str]:
    names = frozenset(entry.options.model_fields)
    if not (isinstance(entry.unlabeled_options, frozenset) and entry.unlabeled_options <= names):
        yield f"unlabeled_options is {entry.unlabeled_options!r}; give a frozenset of names of its options"


def _preparation_errors(entry: Any, _: Mapping[str, Entry]) -> Iterator[str]:
    preparation = entry.preparation
    if not isinstance(preparation, Preparation):
        yield f"preparation is {preparation!r}; give a peekbench.plugins.Preparation"
    elif not isinstance(entry, MethodEntry) and (preparation.count_tokens or preparation.resources):
        yield "its preparation has count_tokens or resources, which only methods can have; remove them"


def _role_errors(entry: Any, _: Mapping[str, Entry]) -> Iterator[str]:
    if entry.role not in get_args(AnalyzerRole):
        yield f"role is {entry.role!r}; give one of {', '.join(map(repr, get_args(AnalyzerRole)))}"


def _suffix_errors(entry: Any, _: Mapping[str, Entry]) -> Iterator[str]:
    if entry.suffix and not (isinstance(entry.suffix, str) and FILE_SUFFIX.fullmatch(entry.suffix)):
        yield f"suffix is {entry.suffix!r}; give the suffix of a file, such as '.tex', or omit it for a folder"


def _members_errors(group: Any, entries: Mapping[str, Entry]) -> Iterator[str]:
    sources = frozenset(name for name, entry in entries.items() if isinstance(entry, DataSourceEntry))
    if not (isinstance(group.members, tuple) and group.members and sources.issuperset(group.members)):
        yield f"members is {group.members!r}; give a tuple of names of the plugin's own data sources"


FIELD_CHECKS: Mapping[str, Callable[[Any, Mapping[str, Entry]], Iterator[str]]] = {
    "options": _options_errors,
    "task_kinds": _task_kinds_errors,
    "preparation": _preparation_errors,
    "unlabeled_options": _unlabeled_options_errors,
    "role": _role_errors,
    "suffix": _suffix_errors,
    "members": _members_errors,
}
"""Check of each field that is not a callable, for entries of any type that has this field.

Arguments are the entry and all entries of its hook.
"""


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
