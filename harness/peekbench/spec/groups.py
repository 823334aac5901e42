"""Groups of tasks that a spec names, such as `docstrings.all`: each is replaced by its members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationInfo

from peekbench.errors import PluginError
from peekbench.plugins import registry
from peekbench.plugins.entries import DataSourceEntry, TaskGroupEntry
from peekbench.plugins.hookspecs import kind_of
from peekbench.plugins.local_code import is_code, split_name
from peekbench.spec.base import STORED


def expand_groups(tasks: Any, info: ValidationInfo) -> Any:
    """Replace groups such as `docstrings.all` by their members; a store has the members already."""
    if not isinstance(tasks, list | tuple) or info.context == STORED:
        return tasks
    expanded: list[Any] = []
    for task in tasks:
        if isinstance(task, Mapping) and "name" in task and _find_group(task.get("use")) is not None:
            raise ValueError(
                f"[{len(expanded)}].name: {task['use']!r} is a group and its members have their own names; remove it"
            )
        expanded += _members(task)
    return expanded


def _members(task: Any) -> list[Any]:
    """Return the tasks that an entry under `tasks` means, each with all that was written there."""
    use: Any = task.get("use") if isinstance(task, Mapping) else task
    group = _find_group(use)
    if group is None:
        return [task]
    plugin, _ = split_name(use)
    written = task if isinstance(task, Mapping) else {}
    start = f"{plugin.rstrip(':')}:" if is_code(plugin) else f"{plugin}."
    return [{**written, "use": f"{start}{member}"} for member in group.members]


def written_positions(raw: Mapping[str, Any]) -> dict[str, list[int]]:
    """Return the position under `tasks` of each task after groups are expanded."""
    tasks = raw.get("tasks")
    if not isinstance(tasks, list | tuple):
        return {}
    return {"tasks": [position for position, task in enumerate(tasks) for _ in _members(task)]}


def _find_group(use: Any) -> TaskGroupEntry | None:
    if not isinstance(use, str):
        return None
    plugin, entry_name = split_name(use)
    if not registry.is_known(plugin):  # searching for a similar name takes time
        return None
    try:
        entry = registry.load(plugin).offers[kind_of(DataSourceEntry).name].get(entry_name)
    except PluginError:
        return None  # the validation of the task reports the error with its place
    return entry if isinstance(entry, TaskGroupEntry) else None
