"""Checks of the entries that a plugin registers, because plugin authors may not run a type checker."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, get_args

from pydantic.errors import PydanticUserError

from peekbench.errors import PluginError
from peekbench.plugins.entries import (
    AnalyzerEntry,
    AnalyzerRole,
    DataSourceEntry,
    Entry,
    MethodEntry,
    RendererEntry,
    TaskGroupEntry,
)
from peekbench.plugins.field_docs import DescribedSchema
from peekbench.plugins.protocols import Options
from peekbench.plugins.references import CallableField, Reference, find_reference_error
from peekbench.records.data import TaskKind

ENTRY_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*", re.IGNORECASE)


def check_entries(entries: Mapping[str, Entry]) -> None:
    """Check the fields of the entries that one hook returned.

    Parameters
    ----------
    entries
        Entries by name.

    Raises
    ------
    PluginError
        If a field has a wrong value; the message names the entry, the field and the expected value.
    """
    sources = frozenset(name for name, entry in entries.items() if isinstance(entry, DataSourceEntry))
    for name, entry in entries.items():
        errors = _group_errors(entry, sources) if isinstance(entry, TaskGroupEntry) else _entry_errors(entry)
        if error := next(errors, ""):
            raise PluginError(f"{type(entry).__name__} {name!r}: {error}")


def _group_errors(group: Any, sources: frozenset[str]) -> Iterator[str]:
    if not (isinstance(group.members, tuple) and group.members and sources.issuperset(group.members)):
        yield f"members is {group.members!r}; give a tuple of names of the plugin's own data sources"


def _entry_errors(entry: Any) -> Iterator[str]:
    yield from _callable_errors(entry)
    if isinstance(entry, RendererEntry):
        return
    yield from _options_errors(entry.options)
    if isinstance(entry, MethodEntry):
        yield from _method_errors(entry)
    if isinstance(entry, AnalyzerEntry) and entry.role not in get_args(AnalyzerRole):
        yield f"role is {entry.role!r}; give one of {', '.join(map(repr, get_args(AnalyzerRole)))}"


def _callable_errors(entry: Any) -> Iterator[str]:
    for name in (field.name for field in fields(entry)):
        if not isinstance(vars(type(entry)).get(name), CallableField):
            continue
        value = getattr(entry, name)
        if value is None and hasattr(type(entry), name):
            continue  # the field has a default, so it is optional
        if isinstance(value, Reference) and (error := find_reference_error(value)):
            yield f"{name} {error}: {value.target!r}"
        if not callable(value):
            yield f"{name} is {value!r}; give a function, or a reference such as 'package.module:function'"


def _options_errors(options: Any) -> Iterator[str]:
    if not (isinstance(options, type) and issubclass(options, Options)):
        yield f"options is {options!r}; give a class derived from peekbench.Options"
        return
    for name, field in options.model_fields.items():
        if field.alias or field.validation_alias or field.serialization_alias:
            yield f"its option {name!r} has an alias; give each option one name, for specs and code"


def _method_errors(entry: Any) -> Iterator[str]:
    kinds, names = frozenset(get_args(TaskKind)), frozenset(entry.options.model_fields)
    if not (isinstance(entry.task_kinds, frozenset) and entry.task_kinds and entry.task_kinds <= kinds):
        yield f"task_kinds is {entry.task_kinds!r}; give a frozenset of one or both of {sorted(kinds)}"
    if not (isinstance(entry.unlabeled_options, frozenset) and entry.unlabeled_options <= names):
        yield f"unlabeled_options is {entry.unlabeled_options!r}; give a frozenset of names of its options"


def options_schema(options: type[Options]) -> dict[str, Any]:
    """Return the JSON schema of a plugin's options.

    Raises
    ------
    PluginError
        If an option has a type that YAML cannot express.
    """
    try:
        return options.model_json_schema(schema_generator=DescribedSchema)
    except PydanticUserError as error:
        raise PluginError(
            f"options {options.__name__}: {error.message}; give each option a type that YAML can express: text, "
            "numbers, booleans, lists, mappings"
        ) from error
