"""The command `show`: what plugins offer, their options in words, and the schemas of specs and reports."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from pydantic_core import PydanticUndefined, to_jsonable_python

from peekbench.cache import cache_folder
from peekbench.cli.output import echo
from peekbench.errors import PluginError
from peekbench.formatting import visible
from peekbench.plugins import registry
from peekbench.plugins.boundary import Foreign
from peekbench.plugins.entries import (
    KINDS,
    DataSourceEntry,
    Entry,
    MethodEntry,
    OptionsEntry,
    PluginKind,
    TaskGroupEntry,
    kind_of,
)
from peekbench.plugins.names import find_nearest, join_name, locate_code, split_name
from peekbench.plugins.protocols import Options
from peekbench.plugins.validation import options_schema
from peekbench.records.data import Folders, TaskFacts
from peekbench.report.render.json_report import report_schema
from peekbench.spec.json_schema import broken_plugins, make_schema

HEADINGS = ("all", "plugins", *(kind.heading for kind in KINDS))
"""What can be listed."""
TASK_LINE = "  {:<{width}} {:>7} {:>9}  {:<13} {}"


def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name as in a spec's `use`; a kind, such as tasks or methods; 'plugins'; 'spec-schema' or "
            "'report-schema' for the JSON schema of specs, with the options of all installed plugins, or of "
            "report.json; 'all'.",
        ),
    ] = "all",
) -> None:
    """Show what the installed plugins offer, or one entry with its options; for a task also what is known of its data.

    Example: peekbench show hf.trec
    """
    if name in ("spec-schema", "report-schema"):
        echo(json.dumps(_schema(name), indent=1, sort_keys=True))
        return
    if name in HEADINGS:
        for line in list_lines(name):
            echo(line)
        return
    echo("\n\n".join(describe(name)))


def _schema(name: str) -> dict[str, Any]:
    if name == "report-schema":
        return report_schema()

    for message in broken_plugins().values():
        echo(f"warning: left out: {message}", err=True)
    return make_schema()


def list_lines(heading: str) -> Iterator[str]:
    """Return the lines of `peekbench show` about one of `HEADINGS`."""
    if heading == "all":
        return chain.from_iterable([f"{kind.heading}:", *_kind_lines(kind)] for kind in KINDS)
    if heading == "plugins":
        return _plugin_lines()
    kind = next(kind for kind in KINDS if kind.heading == heading)
    if kind == kind_of(DataSourceEntry):
        return _task_lines()
    return _kind_lines(kind)


def _plugin_lines() -> Iterator[str]:
    """Iterate over plugins with the distributions that they come from, and what is wrong with broken ones."""
    width = _width(registry.installed())
    for name, (point, *_) in registry.installed().items():
        origin = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
        try:
            registry.load(name)
        except PluginError as error:
            yield f"{name:<{width}} {origin}: {error}"
        else:
            yield f"{name:<{width}} {origin}"


def _entries(kind: PluginKind) -> tuple[dict[str, Entry], list[str]]:
    """Return the entries of a kind by their names in specs, and what is wrong with broken plugins."""
    entries: dict[str, Entry] = {}
    errors = []
    for plugin in registry.installed():
        try:
            offers = registry.load(plugin).offers[kind.name]
        except PluginError as error:
            errors.append(f"  ({error})")
            continue
        entries |= {join_name(plugin, name): entry for name, entry in sorted(offers.items())}
    return entries, errors


def _width(names: Iterable[str]) -> int:
    return max(map(len, names), default=0) + 1


def _kind_lines(kind: PluginKind) -> Iterator[str]:
    entries, errors = _entries(kind)
    width = _width(entries)
    for use, entry in entries.items():
        yield f"  {use:<{width}} {entry.summary}"
    yield from errors


def _task_lines() -> Iterator[str]:
    """Iterate over tasks with their size, text lengths and license, without a download."""
    entries, errors = _entries(kind_of(DataSourceEntry))
    width = _width(entries)
    yield TASK_LINE.format("", "classes", "rows", "characters", "license", width=width)
    others = []
    for use, entry in entries.items():
        if isinstance(entry, DataSourceEntry) and entry.facts is not None:
            yield _task_line(use, _find_facts(use, entry.facts), width).rstrip()
        else:
            others.append(f"  {use:<{width}} {entry.summary}")
    yield "  characters: lower and upper quartile of the text lengths"
    yield "  -: unknown until a spec with the task is validated"
    yield "others:"
    yield from [*others, *errors]


def _task_line(use: str, facts: TaskFacts, width: int) -> str:
    rows = lengths = "-"
    if facts.num_rows is not None:
        rows = f"{facts.num_rows:,}"
    if facts.characters is not None:
        lengths = "{:,}-{:,}".format(*facts.characters)
    return TASK_LINE.format(use, facts.num_classes or "-", rows, lengths, facts.license or "-", width=width)


def _find_facts(use: str, find: Any) -> TaskFacts:
    folders = Folders(spec=Path.cwd(), cache=cache_folder())
    facts: TaskFacts = Foreign(f"{use}: `facts`", use).call(find, {"folders": folders}, TaskFacts)
    return facts


def describe(use: str) -> Iterator[str]:
    """Iterate over the paragraphs of `peekbench show`: an entry with its options, and what is known of a task."""
    use = locate_code(use, Path.cwd())
    plugin_name, entry_name = split_name(use)
    if not registry.is_known(plugin_name) and (near := find_nearest(use, HEADINGS)):
        raise PluginError(f"cannot show {use!r}; did you mean {near}?")
    found = registry.find_all(use)
    use = join_name(plugin_name, entry_name)
    for kind, entry in found.items():
        yield _describe_entry(use, kind, entry)
        if isinstance(entry, DataSourceEntry) and entry.facts is not None:
            yield _describe_facts(_find_facts(use, entry.facts))


def _describe_facts(facts: TaskFacts) -> str:
    known = {"classes": ", ".join(facts.class_names), "rows": facts.num_rows, "license": facts.license}
    known |= {**facts.details, "instruction": facts.instruction}
    lines = [f"{name}: {visible(str(value))}" for name, value in known.items() if value]
    return "\n".join(lines)


def _describe_entry(use: str, kind: str, entry: Entry) -> str:
    lines = [f"{use}: {kind}", entry.summary]
    if isinstance(entry, TaskGroupEntry):
        plugin, _ = split_name(use)
        lines.append(f"members: {', '.join(join_name(plugin, member) for member in entry.members)}")
    if isinstance(entry, MethodEntry):
        lines.append(f"task kinds: {', '.join(sorted(entry.task_kinds)).replace('_', ' ')}")
    if isinstance(entry, OptionsEntry):
        options = [line for option in option_docs(entry.options) for line in _option_lines(option)]
        lines += ["options:", *options] if options else ["options: none"]
    return "\n".join(lines)


def _option_lines(option: OptionDoc) -> list[str]:
    """Return the lines on an option; those on options within it are indented below."""
    line = f"  {option.name}: {option.type}"
    if option.default:
        line += f", {option.default}"
    lines = [line]
    if option.meaning:
        lines.append(f"      {option.meaning}")
    return lines + [f"    {line}" for nested in option.nested for line in _option_lines(nested)]


@dataclass(frozen=True, slots=True)
class OptionDoc:
    """Description of one option."""

    name: str
    """Name in `options` of a spec."""
    type: str
    """Values that it can have, in words, with their limits."""
    default: str
    """The default as JSON, such as 'default 100', or 'required'; empty if the option has options of its own."""
    meaning: str
    """What the option does, in one line."""
    nested: tuple[OptionDoc, ...]
    """Options within this option, with the defaults that they have here."""


def option_docs(model: type[Options], defaults: Options | None = None) -> Iterator[OptionDoc]:
    """Iterate over the descriptions of the options of a model, with its own defaults or those of given options.

    Examples
    --------
    >>> from pydantic import Field
    >>> class Lsa(Options):
    ...     num_components: int = Field(default=100, ge=1)
    >>> [(option.name, option.type, option.default) for option in option_docs(Lsa)]
    [('num_components', 'whole number (>= 1)', 'default 100')]
    """
    if not model.model_fields:
        return
    schema = options_schema(model)
    for name, field in model.model_fields.items():
        default = getattr(defaults, name, field.get_default(call_default_factory=True))
        own, written = None, "required"
        if isinstance(default, Options):
            own, written = default, ""
        elif default is not PydanticUndefined:
            written = f"default {json.dumps(to_jsonable_python(default), ensure_ascii=False)}"
        nested = [option for model in _nested_models(field.annotation) for option in option_docs(model, own)]
        yield OptionDoc(
            name=name,
            type=describe_type(schema["properties"][name], schema.get("$defs", {})),
            default=written,
            meaning=" ".join((field.description or "").split()),
            nested=tuple(nested),
        )


def _nested_models(annotation: Any) -> list[type[Options]]:
    """Return the model of the options within an option; none if there are several."""
    kinds = (annotation, *get_args(annotation))
    models = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Options)]
    if len(models) > 1:
        return []
    return models


LIMITS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
NAMES = {"string": "text", "integer": "whole number", "number": "number", "null": "null"}


def describe_type(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Describe the values of an option, given its JSON schema and the `$defs` to which that refers.

    Examples
    --------
    >>> describe_type({"anyOf": [{"type": "number", "minimum": 0}, {"const": "ledoit_wolf"}]}, {})
    'number (>= 0) or ledoit_wolf'
    >>> describe_type({"type": "array", "items": {"type": "integer", "minimum": 2}}, {})
    'list: whole number (>= 2)'
    """
    return _join(_alternatives(schema, definitions))


def _join(words: list[str]) -> str:
    *others, last = words
    return " or ".join(filter(None, (", ".join(others), last)))


def _alternatives(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> list[str]:
    """Return the values or types that an option can have."""
    if "$ref" in schema:
        return _alternatives(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return [word for part in schema["anyOf"] for word in _alternatives(part, definitions)]
    if schema.get("type") == "boolean":
        return ["true", "false"]
    if "enum" in schema or "const" in schema:
        return [str(value) or '""' for value in schema.get("enum", [schema.get("const")])]
    return [_describe_one(schema, definitions)]


def _describe_one(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if kind == "array":
        return f"list: {_join(_alternatives(schema.get('items') or {}, definitions))}"
    if kind == "object":
        if "properties" in schema:
            return "options"
        values = schema.get("additionalProperties")
        if isinstance(values, Mapping):
            return f"mapping: {_join(_alternatives(values, definitions))}"
        return "mapping: any value"
    if schema.get("format") == "path":
        return "path"
    name = NAMES.get(str(kind), "any value")
    if limits := [f"{sign} {schema[key]}" for key, sign in LIMITS.items() if key in schema]:
        return f"{name} ({', '.join(limits)})"
    return name
