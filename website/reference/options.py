"""Pages of what plugins register: one for each kind, with all options of each entry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from peekbench.cli.show import OptionDoc, option_docs
from peekbench.errors import PluginError
from peekbench.plugins import registry
from peekbench.plugins.entries import (
    KINDS,
    AnalyzerEntry,
    DataSourceEntry,
    Entry,
    MethodEntry,
    OptionsEntry,
    PluginKind,
    TaskGroupEntry,
)
from peekbench.plugins.names import join_name, split_name
from peekbench.records.data import Folders, TaskFacts
from website.reference.markdown import GENERATED, code, page, plain, table

INTRODUCTIONS = {
    "data source": "Data sources, which specs name under `tasks`. [Data](../data.md) explains them.",
    "method": "Methods, which specs name under `methods`. [Methods](../methods/index.md) explains them.",
    "analysis": "Analyses, which specs name under `analyses`. [Statistics](../statistics/verdicts.md) explains them.",
    "executor": "Executors, one of which a spec names under `executor`. [Clusters](../clusters.md) explains `ray`.",
    "observer": "Observers, which specs name under `observers`. [Runs](../usage/running.md#trackers) explains them.",
    "renderer": "Renderers of figures, one of which a spec can name as `renderer` under `report`.",
    "report format": "Formats of reports, which specs name under `report`. [Exports](../exports.md) explains them.",
}


class UndocumentedError(Exception):
    """Something that users can set or use and that has no description."""


def entries_of(kind: PluginKind) -> dict[str, Entry]:
    """Return all entries of a kind that plugins of peekbench register, by their names in specs.

    Raises
    ------
    peekbench.errors.PluginError
        If a plugin is broken.
    """
    found: dict[str, Entry] = {}
    for plugin, (point, *_) in registry.installed().items():
        if point.dist is not None and point.dist.name == registry.DISTRIBUTION:
            offers = registry.load(plugin).offers[kind.name]
            found |= {join_name(plugin, name): entry for name, entry in offers.items()}
    if not found:
        raise PluginError(f"no {kind.name} is installed; build the site in the environment of `tox run -e docs`")
    return dict(sorted(found.items()))


def write_options() -> dict[str, str]:
    """Return a page for each kind of entries.

    Raises
    ------
    UndocumentedError
        If an option or a kind has no description.
    """
    return {f"{kind.heading}.md": _page(kind) for kind in KINDS}


def _page(kind: PluginKind) -> str:
    if kind.name not in INTRODUCTIONS:
        raise UndocumentedError(f"website/reference/options.py: INTRODUCTIONS has no text for {kind.plural}")
    entries = entries_of(kind)
    overview = [(f"[{code(use)}](#{use})", plain(entry.summary)) for use, entry in entries.items()]
    tables: dict[str, str] = {}
    sections = [part for use, entry in entries.items() for part in _section(use, entry, tables)]
    command = (
        f"`peekbench show {kind.heading}` lists what is installed, also from other plugins; `peekbench show NAME` "
    )
    return page(
        f"{kind.plural.capitalize()} and their options",
        INTRODUCTIONS[kind.name],
        f"{command}prints what this page says about an entry.",
        GENERATED,
        table(["name", "what it is"], overview),
        *sections,
    )


def _section(use: str, entry: Entry, tables: dict[str, str]) -> Iterator[str]:
    """Iterate over the parts of a section; `tables` has the entry that has each table of options first."""
    yield f"## {code(use)} {{ #{use} }}"
    yield plain(entry.summary[0].upper() + entry.summary[1:].rstrip(".")) + "."
    facts = list(_facts(use, entry))
    if facts:
        yield "\n".join(f"- {fact}" for fact in facts)
    if not isinstance(entry, OptionsEntry):
        return
    rows = [row for option in option_docs(entry.options) for row in _rows(use, option)]
    options = table(["option", "type", "default", "meaning"], rows) or "It has no options."
    first = tables.setdefault(options, use)
    yield options if first == use or not rows else f"It has the same options as [{code(first)}](#{first})."


def _facts(use: str, entry: Entry) -> Iterator[str]:
    """Iterate over what lists of entries say beyond the summary."""
    plugin, _ = split_name(use)
    if isinstance(entry, TaskGroupEntry):
        yield f"Members: {', '.join(code(join_name(plugin, member)) for member in entry.members)}"
    if isinstance(entry, MethodEntry):
        yield f"Kinds of tasks: {', '.join(sorted(entry.task_kinds)).replace('_', ' ')}"
        if entry.control:
            yield f"Control: {entry.control}"
        if entry.unlabeled_options:
            names = ", ".join(map(code, sorted(entry.unlabeled_options)))
            yield f"Without effect in the arm `base`: {names}"
        for name, meaning in entry.metrics.items():
            yield f"Metric {code(name)}: {plain(meaning)}"
    if isinstance(entry, AnalyzerEntry) and entry.role:
        yield f"Role: {entry.role}"
    if isinstance(entry, DataSourceEntry) and entry.facts is not None:
        with TemporaryDirectory() as empty:
            folders = Folders(spec=Path(empty), cache=Path(empty))
            yield from _task_facts(entry.facts(folders))


def _task_facts(facts: TaskFacts) -> Iterator[str]:
    if facts.num_rows is not None:
        yield f"Rows: {facts.num_rows:,}"
    if facts.class_names:
        yield f"Classes: {', '.join(map(plain, facts.class_names))}"
    elif facts.num_classes:
        yield f"Classes: {facts.num_classes}"
    if facts.characters is not None:
        yield "Characters of the middle half of the texts: {:,} to {:,}".format(*facts.characters)
    if facts.license:
        yield f"License: {plain(facts.license)}"


def _rows(use: str, option: OptionDoc, parent: str = "") -> Iterator[tuple[str, str, str, str]]:
    name = f"{parent}{option.name}"
    if not option.meaning:
        raise UndocumentedError(f"{use}: the option {name} has no docstring")
    default = "required" if option.is_required else code(option.default)
    yield code(name), plain(option.type), default, plain(option.meaning)
    for nested in option.nested:
        yield from _rows(use, nested, f"{name}.")
