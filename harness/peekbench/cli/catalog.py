"""Text behind `peekbench list` and `peekbench show`: what the installed plugins offer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from textwrap import indent
from typing import Any

from peekbench.cache import cache_folder
from peekbench.cli.option_docs import OptionDoc, option_docs
from peekbench.data.loading import class_counts, load_dataset
from peekbench.data.prompts import render_prompt
from peekbench.data.text_statistics import find_repeated
from peekbench.errors import PluginError, UnavailableError
from peekbench.formatting import pluralize, shorten
from peekbench.plugins import registry
from peekbench.plugins.entries import DataSourceEntry, Entry, MethodEntry, TaskGroupEntry, has_options
from peekbench.plugins.hookspecs import KINDS, PluginKind, kind_of
from peekbench.plugins.local_code import is_code, join_name, split_name
from peekbench.records.data import Folders, TaskFacts
from peekbench.spec.components import TaskSpec, make_component

TASK_LINE = "  {:<{width}} {:>7} {:>9}  {:<13} {}"
MAX_NAME, MAX_TEXT = 200, 10_000  # characters of a class name and of a text that `peekbench show` prints


def list_lines(heading: str) -> Iterator[str]:
    """Return the lines of `peekbench list`.

    Parameters
    ----------
    heading
        'all', 'plugins', or a heading of `peekbench.plugins.hookspecs.KINDS`.

    Raises
    ------
    PluginError
        If there is no such heading.
    """
    kinds = {kind.heading: kind for kind in KINDS}
    if heading == "all":
        return chain.from_iterable([f"{kind.heading}:", *_kind_lines(kind)] for kind in KINDS)
    if heading == "plugins":
        return _plugin_lines()
    if heading not in kinds:
        close = get_close_matches(heading.lower(), [*kinds, "plugins"], n=1)
        remedy = f"did you mean {close[0]}?" if close else f"choose from: all, plugins, {', '.join(kinds)}"
        raise PluginError(f"cannot list {heading!r}; {remedy}")
    kind = kinds[heading]
    return _task_lines() if kind == kind_of(DataSourceEntry) else _kind_lines(kind)


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
    folders = _folders()
    entries, errors = _entries(kind_of(DataSourceEntry))
    width = _width(entries)
    yield TASK_LINE.format("", "classes", "rows", "characters", "license", width=width)
    others = []
    for use, entry in entries.items():
        if isinstance(entry, DataSourceEntry) and entry.facts is not None:
            yield _task_line(use, entry.facts(folders), width).rstrip()
        else:
            others.append(f"  {use:<{width}} {entry.summary}")
    yield "  characters: lower and upper quartile of the text lengths"
    yield "  -: unknown until the task is loaded, for example by `peekbench show TASK`"
    yield "others:"
    yield from [*others, *errors]


def _task_line(use: str, facts: TaskFacts, width: int) -> str:
    rows = "-" if facts.num_rows is None else f"{facts.num_rows:,}"
    lengths = "-" if facts.characters is None else _format_range(facts.characters)
    return TASK_LINE.format(use, facts.num_classes or "-", rows, lengths, facts.license or "-", width=width)


def _format_range(limits: tuple[int, int]) -> str:
    return "{:,}-{:,}".format(*limits)


def _folders() -> Folders:
    return Folders(spec=Path.cwd(), cache=cache_folder())


def describe(use: str, options: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Iterate over the paragraphs of `peekbench show`: an entry and its options; for a task also some texts.

    Parameters
    ----------
    use
        `plugin.thing`.
    options
        Options to load the data of a task with. Without them, the data are loaded if no option is required.

    Raises
    ------
    PluginError
        If no plugin has such an entry.
    DataError, SpecError
        If the data cannot be loaded. If the data are unavailable and no options were given, the paragraph has the
        known facts instead.
    """
    registry.check_known(use)
    plugin_name, entry_name = split_name(use)
    plugin = registry.load(plugin_name)
    entries = [(kind, plugin.offers[kind.name][entry_name]) for kind in KINDS if entry_name in plugin.offers[kind.name]]
    if not entries:
        offered = sorted(join_name(plugin_name, name) for names in plugin.offers.values() for name in names)
        if entry_name == plugin_name:
            raise PluginError(f"{use!r} is a plugin; name one of its entries: {', '.join(offered)}")
        if is_code(plugin_name):
            raise registry.explain_missing_function(use, offered)
        remedy = registry.suggest(use) or f"it offers: {', '.join(offered)}"
        raise PluginError(f"plugin {plugin_name!r} offers no {entry_name!r}; {remedy}")
    use = join_name(plugin_name, entry_name)
    for kind, entry in entries:
        yield _describe_entry(use, kind, entry)
        if isinstance(entry, DataSourceEntry):
            yield _describe_data(use, entry, options)


def _describe_data(use: str, entry: DataSourceEntry, options: Mapping[str, Any] | None) -> str:
    """Return the facts of loaded data, three texts of different classes and the prompt of the first."""
    if options is None and any(field.is_required() for field in entry.options.model_fields.values()):
        return "To see its data, give the required options, as in --options '{...}'."
    try:
        dataset = load_dataset(use, {} if options is None else make_component(TaskSpec, use, options).raw_options())
    except UnavailableError as error:
        if options is not None or entry.facts is None:
            raise
        return _describe_facts(entry.facts(_folders()), error)
    lines = [pluralize(len(dataset.labels), "row")]
    if dataset.kind == "classification":
        counts = class_counts(dataset)
        lines += [
            f"  {counts.get(label, 0):>9,}  {shorten(name, MAX_NAME)}" for label, name in enumerate(dataset.class_names)
        ]
    lines += _detail_lines(dataset.details)
    if isinstance(dataset.inputs, Sequence) and (repeated := find_repeated(dataset))["texts"]:
        lines.append(_mention_repeated(repeated))
    if isinstance(dataset.inputs, Sequence) and dataset.kind == "classification":
        first = {int(label): row for row, label in reversed(list(enumerate(dataset.labels[:1000])))}
        rows = sorted(first.values())[:3]
        lines.append("texts:")
        names = [shorten(name, MAX_NAME) for name in dataset.class_names]
        texts = [shorten(str(dataset.inputs[row]), MAX_TEXT) for row in rows]
        lines += [f"  [{names[dataset.labels[row]]}] {text}" for row, text in zip(rows, texts, strict=True)]
        lines.append("prompt for the first text:")
        lines.append(indent(render_prompt(texts[0], names, dataset.instruction), "  "))
    return "\n".join(lines)


def _mention_repeated(repeated: Mapping[str, Any]) -> str:
    first, second = repeated["examples"][0]
    conflicting = repeated["conflicting"]
    labels = f"; {pluralize(conflicting, 'text')} with different labels" if conflicting else ""
    texts = pluralize(repeated["texts"], "text occurs", "texts occur")
    return (
        f"equal texts: {texts} in several rows, {repeated['rows']:,} rows in all, such as {first} and {second}{labels}"
    )


def _describe_facts(facts: TaskFacts, error: UnavailableError) -> str:
    """Return the known facts of data that are unavailable."""
    known = {
        "rows": None if facts.num_rows is None else f"{facts.num_rows:,}",
        "classes": ", ".join(facts.class_names) or facts.num_classes,
        "characters": None if facts.characters is None else _format_range(facts.characters),
        "license": facts.license,
        **facts.details,
    }
    lines = _detail_lines(known)
    if facts.class_names:
        lines.append("prompt for a text:")
        lines.append(indent(render_prompt("...", facts.class_names, facts.instruction), "  "))
    lines.append(f"texts and rows of each class are unavailable: {error}")
    return "\n".join(lines)


def _detail_lines(details: Mapping[str, Any]) -> list[str]:
    return [
        f"{name}: {shorten(_format_detail(value), MAX_TEXT)}"
        for name, value in details.items()
        if value not in ("", None)
    ]


def _format_detail(value: Any) -> str:
    return ", ".join(f"{key} {part}" for key, part in value.items()) if isinstance(value, Mapping) else str(value)


def _describe_entry(use: str, kind: PluginKind, entry: Entry) -> str:
    lines = [f"{use}: {kind.name}", entry.summary]
    if isinstance(entry, TaskGroupEntry):
        plugin, _ = split_name(use)
        lines.append(f"members: {', '.join(join_name(plugin, member) for member in entry.members)}")
    if isinstance(entry, MethodEntry):
        lines.append(f"task kinds: {', '.join(sorted(entry.task_kinds)).replace('_', ' ')}")
    if has_options(entry):
        lines.append("options:" if entry.options.model_fields else "options: none")
        for option in option_docs(entry.options):
            lines += _option_lines(option)
    return "\n".join(lines)


def _option_lines(option: OptionDoc) -> list[str]:
    """Return the lines on an option; those on options within it are indented below."""
    default = ["required"] if option.is_required else [f"default {option.default}"] if option.default else []
    lines = [f"  {option.name}: {', '.join([option.type, *default])}"]
    if option.meaning:
        lines.append(f"      {option.meaning}")
    return lines + [f"    {line}" for nested in option.nested for line in _option_lines(nested)]
