"""Says in words what the installed plugins offer: the text behind `peekbench list` and `peekbench show`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import indent
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from peekbench.cache import cache_folder
from peekbench.data.loading import class_counts, load_dataset
from peekbench.data.prompts import render_prompt
from peekbench.errors import PluginError, UnavailableError
from peekbench.formatting import pluralize
from peekbench.plugins import registry
from peekbench.plugins.entries import DataSourceEntry, Entry, MethodEntry, RendererEntry, TaskGroupEntry
from peekbench.plugins.protocols import Options
from peekbench.plugins.validation import options_schema
from peekbench.records.data import Folders, TaskFacts
from peekbench.spec.components import TaskSpec, make_component

KINDS = {
    "tasks": "data source",
    "methods": "method",
    "analyses": "analysis",
    "audits": "audit",
    "executors": "executor",
}


def list_plugins() -> Iterator[str]:
    """One line a plugin: its name and where it comes from. A broken one is listed with what is wrong."""
    for name, (point, *_) in registry.installed().items():
        origin = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
        try:
            registry.load(name)
        except PluginError as error:
            yield f"{name:<14} {origin}: {error}"
        else:
            yield f"{name:<14} {origin}"


def list_things(what: str) -> Iterator[str]:
    """One line a thing: its name in specs and its summary.

    Raises
    ------
    PluginError
        Where `what` is no kind of thing.
    """
    if what != "all" and what not in KINDS:
        raise PluginError(f"nothing to list under {what!r}; choose from: all, plugins, {', '.join(KINDS)}")
    for heading, kind in KINDS.items():
        if what in ("all", heading):
            if what == "all":
                yield f"{heading}:"
            for plugin in registry.installed():
                yield from _things_of(plugin, kind)


def _things_of(plugin: str, kind: str) -> Iterator[str]:
    try:
        offers = registry.load(plugin).offers.get(kind, {})
    except PluginError as error:
        yield f"  ({error})"
        return
    for thing, entry in sorted(offers.items()):
        yield f"  {_use(plugin, thing):<26} {entry.summary}"


TASK_LINE = "  {:<34} {:>7} {:>9}  {:<13} {}"


def list_tasks() -> Iterator[str]:
    """One line a task: what it is called, its size, how long its texts are, its license. Nothing is downloaded."""
    folders = _folders()
    yield TASK_LINE.format("", "classes", "rows", "characters", "license")
    others = []
    for plugin in registry.installed():
        try:
            offers = registry.load(plugin).offers.get("data source", {})
        except PluginError as error:
            others.append(f"  ({error})")
            continue
        for thing, entry in sorted(offers.items()):
            use = _use(plugin, thing)
            if isinstance(entry, DataSourceEntry) and entry.facts is not None:
                yield _task_line(use, entry.facts(folders)).rstrip()
            else:
                others.append(f"  {use:<34} {entry.summary}")
    yield "  characters: a quarter of the texts are shorter than the first number, a quarter longer than the second"
    yield "  -: not known before it is loaded, which `peekbench show TASK` does"
    yield "others:"
    yield from others


def _task_line(use: str, facts: TaskFacts) -> str:
    rows = "-" if facts.num_rows is None else f"{facts.num_rows:,}"
    lengths = "-" if facts.characters is None else _character_span(facts.characters)
    return TASK_LINE.format(use, facts.num_classes or "-", rows, lengths, facts.license or "-")


def _character_span(characters: tuple[int, int]) -> str:
    return "{:,}-{:,}".format(*characters)


def _folders() -> Folders:
    return Folders(spec=Path.cwd(), cache=cache_folder())


def _use(plugin: str, thing: str) -> str:
    return plugin if thing == plugin else f"{plugin}.{thing}"


def describe(use: str, options: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Paragraphs on what a thing is and its options with types, defaults and meaning; on a task also some texts.

    Parameters
    ----------
    options
        Of a data source: its data are loaded with them. By default without any, where it needs none.

    Raises
    ------
    PluginError
        Where no plugin offers it.
    DataError, SpecError
        Where its data cannot be loaded. Where they cannot be got at from here, and no options were given, it is said
        instead what is known without them.
    """
    plugin, thing = registry.split_use(use)
    found = [(kind, things[thing]) for kind, things in registry.load(plugin).offers.items() if thing in things]
    if not found:
        offered = sorted(_use(plugin, name) for things in registry.load(plugin).offers.values() for name in things)
        raise PluginError(f"plugin {plugin!r} offers no {thing!r}; it offers: {', '.join(offered)}")
    for kind, entry in found:
        yield _describe_entry(_use(plugin, thing), kind, entry)
        if isinstance(entry, DataSourceEntry):
            yield _describe_data(_use(plugin, thing), entry, options)


def _describe_data(use: str, entry: DataSourceEntry, options: Mapping[str, Any] | None) -> str:
    """What is loaded, with three texts of different classes and the prompt of the first."""
    if options is None and any(field.is_required() for field in entry.options.model_fields.values()):
        return "Its data are shown with --options, for example --options '{...}'."
    try:
        dataset = load_dataset(use, {} if options is None else make_component(TaskSpec, use, options).raw_options())
    except UnavailableError as error:
        if options is not None or entry.facts is None:
            raise
        return _describe_facts(entry.facts(_folders()), error)
    lines = [pluralize(len(dataset.labels), "row")]
    if dataset.kind == "classification":
        counts = class_counts(dataset)
        lines += [f"  {counts.get(label, 0):>9,}  {name}" for label, name in enumerate(dataset.class_names)]
    lines += _detail_lines(dataset.details)
    if isinstance(dataset.inputs, Sequence) and dataset.kind == "classification":
        first = {int(label): row for row, label in reversed(list(enumerate(dataset.labels[:1000])))}
        rows = sorted(first.values())[:3]
        lines.append("texts:")
        lines += [f"  [{dataset.class_names[dataset.labels[row]]}] {dataset.inputs[row]}" for row in rows]
        lines.append("the prompt for the first:")
        lines.append(indent(render_prompt(dataset.inputs[rows[0]], dataset.class_names, dataset.instruction), "  "))
    return "\n".join(lines)


def _describe_facts(facts: TaskFacts, error: UnavailableError) -> str:
    """What is known of data that cannot be loaded now."""
    known = {
        "rows": None if facts.num_rows is None else f"{facts.num_rows:,}",
        "classes": ", ".join(facts.class_names) or facts.num_classes,
        "characters": None if facts.characters is None else _character_span(facts.characters),
        "license": facts.license,
        **facts.details,
    }
    lines = _detail_lines(known)
    if facts.class_names:
        lines.append("the prompt for a text:")
        lines.append(indent(render_prompt("...", facts.class_names, facts.instruction), "  "))
    lines.append(f"not shown: texts, and how many rows each class has; {error}")
    return "\n".join(lines)


def _detail_lines(details: Mapping[str, Any]) -> list[str]:
    return [f"{name}: {_in_words(value)}" for name, value in details.items() if value not in ("", None)]


def _in_words(value: Any) -> str:
    return ", ".join(f"{key} {part}" for key, part in value.items()) if isinstance(value, Mapping) else str(value)


def _describe_entry(use: str, kind: str, entry: Entry) -> str:
    lines = [f"{use}: {kind}", entry.summary]
    if isinstance(entry, TaskGroupEntry):
        plugin, _ = registry.split_use(use)
        lines.append(f"stands for: {', '.join(_use(plugin, member) for member in entry.members)}")
        return "\n".join(lines)
    if isinstance(entry, RendererEntry):
        return "\n".join(lines)
    if isinstance(entry, MethodEntry):
        lines.append(f"takes: {', '.join(sorted(entry.task_kinds))}")
    lines.append("options:" if entry.options.model_fields else "options: none")
    for option in _options(entry.options):
        lines += option
    return "\n".join(lines)


def _options(model: type[Options], default: Options | None = None) -> Iterator[list[str]]:
    """Lines on each option; those of a nested one stand below it, with the defaults that they have there."""
    properties: dict[str, Any] = options_schema(model)["properties"] if model.model_fields else {}
    for name, field in model.model_fields.items():
        usual = field.get_default(call_default_factory=True) if default is None else getattr(default, name)
        nested = _nested(field.annotation)
        value = "" if nested and isinstance(usual, Options) else f"default {_in_yaml(usual)}"
        parts = (
            f"{_type_name(field.annotation)}{_limits(properties[name])}",
            "required" if field.is_required() else value,
        )
        lines = [f"  {name}: {', '.join(filter(None, parts))}"]
        if field.description:
            lines.append(f"      {' '.join(field.description.split())}")
        if nested is not None:
            for option in _options(nested, usual if isinstance(usual, nested) else None):
                lines += [f"    {line}" for line in option]
        yield lines


def _nested(annotation: Any) -> type[Options] | None:
    """The model of options within an option."""
    kinds = [
        kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type) and issubclass(kind, Options)
    ]
    return kinds[0] if len(kinds) == 1 else None


def _in_yaml(value: Any) -> str:
    """As a spec has it."""
    return json.dumps(value) if value is None or isinstance(value, bool) else repr(value)


def _type_name(annotation: Any) -> str:
    """In a spec's words: 'bf16 | fp32', 'options', 'int | null'."""
    if get_origin(annotation) is Literal:
        return " | ".join(map(str, get_args(annotation)))
    if get_origin(annotation) in (Union, UnionType):
        return " | ".join(map(_type_name, get_args(annotation)))
    if annotation is type(None):
        return "null"
    if isinstance(annotation, type) and issubclass(annotation, Options):
        return "options"
    return annotation.__name__ if type(annotation) is type else str(annotation).replace("typing.", "")


def _limits(schema: dict[str, Any]) -> str:
    signs = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    found = [f"{sign} {schema[key]}" for key, sign in signs.items() if key in schema]
    return f" ({', '.join(found)})" if found else ""
