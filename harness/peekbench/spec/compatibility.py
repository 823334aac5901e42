"""Tells the extension of a spec from a change of it: a run may grow, its numbers may not come from two experiments."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from typing import Any


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Differences between two specs that are no mere extension, each with its place; empty where there are none."""
    found: list[str] = []
    known = {task["name"] for task in old["tasks"]}
    for group in ("tasks", "methods"):
        after = {thing["name"]: _for_tasks(known, thing) for thing in new[group]}
        for before in old[group]:
            if before["name"] not in after:
                found.append(f"{group}: {before['name']!r} was removed")
            else:
                found += _differences(f"{group}[{before['name']}]", before, after[before["name"]])
    for size in old["design"]["num_test"]:
        was, now = _repeats(old, size), _repeats(new, size)
        if now < was:
            found.append(f"design.num_subsamples for num_test {size}: {was} before, {now} now")
    old_design, new_design = (
        {key: value for key, value in spec["design"].items() if key != "num_subsamples"} for spec in (old, new)
    )
    found += _differences("design", old_design, new_design)
    for key in ("name", "seed", "arms"):
        found += _differences(key, old[key], new[key])
    return found


def _for_tasks(known: Container[str], thing: Mapping[str, Any]) -> Mapping[str, Any]:
    """A task, or a method without its exceptions for tasks that are new, which change no number that is there."""
    if "by_task" not in thing:
        return thing
    return {**thing, "by_task": {task: options for task, options in thing["by_task"].items() if task in known}}


def _repeats(spec: Mapping[str, Any], num_test: int) -> int:
    repeats = spec["design"]["num_subsamples"]
    return int(repeats.get(str(num_test), 0) if isinstance(repeats, Mapping) else repeats)


def _differences(place: str, old: Any, new: Any) -> list[str]:
    return [f"{where}: {was} before, {now} now" for where, was, now in differences(place, old, new)]


def differences(place: str, old: Any, new: Any) -> list[tuple[str, str, str]]:
    """(place, before, after) of every value that two nested mappings do not share; as JSON, 'null' for none."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return [
            found
            for key in sorted({*old, *new})
            for found in differences(f"{place}.{key}" if place else key, old.get(key), new.get(key))
        ]
    was, now = json.dumps(old), json.dumps(new)
    return [] if old == new or was == now else [(place, was, now)]  # NaN is not equal to itself
