"""What may be wrong with an entry that a plugin registers; types alone stop nobody who runs no type checker."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.errors import PydanticUserError

from peekbench.errors import PluginError
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
from peekbench.plugins.protocols import Options
from peekbench.plugins.references import Reference, find_reference_error
from peekbench.records.data import TaskKind

ENTRY_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*", re.IGNORECASE)
CALLABLES: Mapping[type[Entry], str] = MappingProxyType(
    {
        DataSourceEntry: "load",
        MethodEntry: "method",
        AnalyzerEntry: "analyze",
        AuditEntry: "audit",
        ExecutorEntry: "execute",
        RendererEntry: "paint",
    }
)


def check_entries(entries: Mapping[str, Entry]) -> None:
    """Refuse entries whose fields hold what they may not; `entries` are all of one hook, by name.

    Raises
    ------
    PluginError
        Naming the entry, the field and what it should be.
    """
    sources = frozenset(name for name, entry in entries.items() if isinstance(entry, DataSourceEntry))
    for name, entry in entries.items():
        fault = _group_fault(entry, sources) if isinstance(entry, TaskGroupEntry) else _fault(entry)
        if fault:
            raise PluginError(f"{type(entry).__name__} {name!r}: {fault}")


def _group_fault(group: Any, sources: frozenset[str]) -> str:
    if isinstance(group.members, tuple) and group.members and sources.issuperset(group.members):
        return ""
    return f"members is {group.members!r}; give a tuple of names of the plugin's own data sources"


def _fault(entry: Any) -> str:
    function = CALLABLES[type(entry)]
    optional = ("pin", "prefetch", "count_tokens", "facts", "forecast")
    for name in (function, *(name for name in optional if getattr(entry, name, None) is not None)):
        value = getattr(entry, name)
        if isinstance(value, Reference) and (error := find_reference_error(value)):
            return f"{name} {error}: {value.target!r}"
        if not callable(value):
            return f"{name} is {value!r}; give a function, or a reference such as 'package.module:function'"
    return "" if isinstance(entry, RendererEntry) else _options_fault(entry)


def _options_fault(entry: Any) -> str:
    options = entry.options
    if not (isinstance(options, type) and issubclass(options, Options)):
        return f"options is {options!r}; give a class derived from peekbench.Options"
    for name, field in options.model_fields.items():
        if field.alias or field.validation_alias or field.serialization_alias:
            return f"its option {name!r} has an alias; an option has one name, in specs as in code"
    return _method_fault(entry) if isinstance(entry, MethodEntry) else ""


def _method_fault(entry: Any) -> str:
    kinds, names = frozenset(get_args(TaskKind)), frozenset(entry.options.model_fields)
    if not (isinstance(entry.task_kinds, frozenset) and entry.task_kinds and entry.task_kinds <= kinds):
        return f"task_kinds is {entry.task_kinds!r}; give a frozenset of one or both of {sorted(kinds)}"
    if not (isinstance(entry.unlabeled_options, frozenset) and entry.unlabeled_options <= names):
        return f"unlabeled_options is {entry.unlabeled_options!r}; give a frozenset of names of its options"
    return ""


def options_schema(options: type[BaseModel]) -> dict[str, Any]:
    """JSON schema of a plugin's options.

    Raises
    ------
    PluginError
        Where an option's type has none, and so no form in YAML.
    """
    try:
        return options.model_json_schema()
    except PydanticUserError as error:
        raise PluginError(
            f"options {options.__name__}: {error.message}; an option holds what YAML can say: text, numbers, truth "
            "values, lists, mappings"
        ) from error
