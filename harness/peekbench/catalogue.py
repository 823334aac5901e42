"""Says in words what the installed plugins offer: the text behind `peekbench list` and `peekbench show`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from peekbench import plugins
from peekbench.entries import Entry, MethodEntry, TaskGroupEntry
from peekbench.errors import PluginError
from peekbench.protocols import Options
from peekbench.registration import options_schema

KINDS = {"tasks": "data source", "methods": "method", "analyses": "analysis", "executors": "executor"}


def list_plugins() -> Iterator[str]:
    """One line a plugin: its name and where it comes from. A broken one is listed with what is wrong."""
    for name, (point, *_) in plugins.installed().items():
        origin = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
        try:
            plugins.load(name)
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
            for plugin in plugins.installed():
                yield from _things_of(plugin, kind)


def _things_of(plugin: str, kind: str) -> Iterator[str]:
    try:
        offers = plugins.load(plugin).offers.get(kind, {})
    except PluginError as error:
        yield f"  ({error})"
        return
    for thing, entry in sorted(offers.items()):
        yield f"  {_use(plugin, thing):<26} {entry.summary}"


def _use(plugin: str, thing: str) -> str:
    return plugin if thing == plugin else f"{plugin}.{thing}"


def describe(use: str) -> str:
    """What a thing is, and its options with types, defaults and meaning.

    Raises
    ------
    PluginError
        Where no plugin offers it.
    """
    plugin, thing = plugins.split_use(use)
    found = [(kind, things[thing]) for kind, things in plugins.load(plugin).offers.items() if thing in things]
    if not found:
        offered = sorted(_use(plugin, name) for things in plugins.load(plugin).offers.values() for name in things)
        raise PluginError(f"plugin {plugin!r} offers no {thing!r}; it offers: {', '.join(offered)}")
    return "\n\n".join(_describe_entry(_use(plugin, thing), kind, entry) for kind, entry in found)


def _describe_entry(use: str, kind: str, entry: Entry) -> str:
    lines = [f"{use}: {kind}", entry.summary]
    if isinstance(entry, TaskGroupEntry):
        plugin, _ = plugins.split_use(use)
        lines.append(f"stands for: {', '.join(_use(plugin, member) for member in entry.members)}")
        return "\n".join(lines)
    if isinstance(entry, MethodEntry):
        lines.append(f"takes: {', '.join(sorted(entry.task_kinds))}")
    lines.append("options:" if entry.options.model_fields else "options: none")
    for option in _options(entry.options):
        lines += option
    return "\n".join(lines)


def _options(model: type[Options]) -> Iterator[list[str]]:
    properties: dict[str, Any] = options_schema(model)["properties"] if model.model_fields else {}
    for name, field in model.model_fields.items():
        default = "required" if field.is_required() else f"default {field.get_default(call_default_factory=True)!r}"
        limits = _limits(properties[name])
        lines = [f"  {name}: {_type_name(field.annotation)}{limits}, {default}"]
        if field.description:
            lines.append(f"      {' '.join(field.description.split())}")
        yield lines


def _type_name(annotation: Any) -> str:
    return annotation.__name__ if type(annotation) is type else str(annotation).replace("typing.", "")


def _limits(schema: dict[str, Any]) -> str:
    signs = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    found = [f"{sign} {schema[key]}" for key, sign in signs.items() if key in schema]
    return f" ({', '.join(found)})" if found else ""
