"""Checks of the entries that a plugin registers, because plugin authors may not run a type checker."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any, get_args

import yaml
from pydantic.errors import PydanticUserError

from peekbench.errors import PluginError
from peekbench.plugins.entries import (
    AnalyzerRole,
    DataSourceEntry,
    Entry,
    MethodEntry,
    Preparation,
    ReportFormatEntry,
    TaskGroupEntry,
)
from peekbench.plugins.field_docs import DescribedSchema
from peekbench.plugins.local_code import FILE
from peekbench.plugins.protocols import Options
from peekbench.plugins.references import find_reference, find_reference_error, iterate_callables
from peekbench.records.data import TaskKind
from peekbench.records.report import OWN_FORMATS

ENTRY_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*", re.IGNORECASE)
DATA_SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".txt", ".xlsx")
"""Ends of names under `tasks` that mean files."""
FILE_SUFFIX = re.compile(r"(\.[a-z0-9]+)+", re.IGNORECASE)


def find_misreading(use: str, entry_type: type[Entry]) -> str:
    """Return what a spec takes the name of an entry for instead; empty if it can name the entry.

    Parameters
    ----------
    use
        Name in specs.
    entry_type
        Class of the entry.

    Examples
    --------
    >>> from peekbench.plugins import MethodEntry
    >>> find_misreading("weather.csv", DataSourceEntry), find_misreading("weather.csv", MethodEntry)
    ('a file', '')
    >>> find_misreading("1.5", MethodEntry)
    'the float 1.5'
    """
    is_task = issubclass(entry_type, DataSourceEntry | TaskGroupEntry)
    if use.lower().endswith((FILE, *DATA_SUFFIXES) if is_task else FILE):
        return "a file"
    if entry_type is ReportFormatEntry and use in OWN_FORMATS:
        return "a format of peekbench itself"
    value = yaml.safe_load(use)
    return "" if value == use else f"the {type(value).__name__} {value}"


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
    value, kinds = entry.task_kinds, {*get_args(TaskKind), "tabular_classification"}
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
        return options.model_json_schema(schema_generator=DescribedSchema)
    except PydanticUserError as error:
        raise PluginError(
            f"options {options.__name__}: {error.message}; give each option a type that YAML can express: text, "
            "numbers, booleans, lists, mappings"
        ) from error
