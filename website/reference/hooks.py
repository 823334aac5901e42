"""The page of the hooks: what a plugin can register, with all arguments of what peekbench calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import get_args, get_type_hints

from peekbench.plugins import entries
from peekbench.plugins.entries import KINDS, Entry, PluginKind
from peekbench.plugins.references import CallableField
from peekbench_testing.new_plugin import NewPlugin, list_kinds, render_plugin
from website.reference.markdown import GENERATED, page

HOOKS = "hooks.md"


def entry_types() -> list[type[Entry]]:
    """Return the classes of the entries that hooks return."""
    return [entry_type for kind in KINDS for entry_type in kind.entry_types]


def write_hooks() -> dict[str, str]:
    """Return the page of the hooks."""
    described: set[str] = set()
    sections = []
    for kind in KINDS:
        sections.append(_member(f"peekbench.plugins.entries.{kind.hook}", 2))
        for entry_type in kind.entry_types:
            sections.append(_member(f"peekbench.plugins.{entry_type.__name__}", 3))
            for name in _protocols(entry_type):
                if name not in described:
                    described.add(name)
                    sections.append(_member(name, 3))
        sections.append(_example(kind))
    return {
        HOOKS: page(
            "Hooks",
            "A plugin is a module with one function for each of the hooks that it implements, marked with "
            "`peekbench.hookimpl`. Each hook returns entries; the fields of an entry name the functions that peekbench "
            "calls. A [tutorial](../plugins/tutorial.md) makes a plugin, and the [reference](../plugins/reference.md) "
            "defines the contract of each entry.",
            GENERATED,
            *sections,
        )
    }


def _example(kind: PluginKind) -> str:
    """Return the module that `peekbench new` writes for a kind, if it has a template."""
    template = kind.name.rpartition(" ")[2]
    if template not in list_kinds():
        return ""
    plugin = NewPlugin(template, f"my_{template}")
    module = render_plugin(plugin)[f"src/{plugin.package}/__init__.py"]
    return f"### Example of {kind.plural}\n\n`peekbench new {template} {plugin.name}` writes:\n\n```python\n{module}```"


def _member(name: str, level: int) -> str:
    options = f"heading_level: {level}", "show_root_full_path: false", "inherited_members: true"
    return "\n      ".join([f"::: {name}\n    options:", *options])


def _protocols(entry_type: type[Entry]) -> Iterator[str]:
    """Iterate over the protocols of the functions that the fields of an entry name."""
    hints = get_type_hints(entry_type, vars(entries))
    for field in fields(entry_type):
        for part in _parts(hints[field.name]):
            if isinstance(part, type) and getattr(part, "_is_protocol", False):
                yield f"{part.__module__}.{part.__qualname__}"


def _parts(hint: object) -> Iterator[object]:
    origin = getattr(hint, "__origin__", hint)
    if origin is not CallableField:
        yield origin
    for part in get_args(hint):
        yield from _parts(part)
