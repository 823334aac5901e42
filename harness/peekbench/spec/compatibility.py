"""Specs as plain JSON values: what differs between two, and how another process makes the same spec.

A run may be extended, but its numbers must come from one experiment.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from peekbench.errors import StoredTrialsError
from peekbench.spec.experiment import ExperimentSpec, canonical, make_spec


@dataclass(frozen=True, slots=True)
class Experiment:
    """What the numbers of stored trials depend on: a spec and its data."""

    spec: Mapping[str, Any]
    """Canonical form of the spec."""
    tasks: Mapping[str, Mapping[str, Any]]
    """Facts about the data by task, with their `fingerprint`."""
    base_keys: Mapping[tuple[str, str], str]
    """`MethodSpec.base_key` by method and task."""
    finished: Mapping[tuple[str, str, int], int] | None = None
    """Subsamples up to the last one with a finished trial, by method, task and num_test. None if it is not known; every
    part of the spec then counts as if all of its trials were finished."""

    @classmethod
    def of(cls, spec: ExperimentSpec, tasks: Mapping[str, Mapping[str, Any]]) -> Experiment:
        """Return the experiment of a spec, given facts about its data by task."""
        return cls(canonical(spec), tasks, spec.base_keys())

    def finished_part(self) -> Experiment:
        """Return the part on which finished trials depend: the tasks and methods that have one."""
        if self.finished is None:
            return self
        methods, tasks = {method for method, _, _ in self.finished}, {task for _, task, _ in self.finished}
        spec = {
            **self.spec,
            "tasks": [task for task in self.spec["tasks"] if task["name"] in tasks],
            "methods": [method for method in self.spec["methods"] if method["name"] in methods],
        }
        data = {name: facts for name, facts in self.tasks.items() if name in tasks}
        base_keys = {key: value for key, value in self.base_keys.items() if key[0] in methods and key[1] in tasks}
        return replace(self, spec=spec, tasks=data, base_keys=base_keys)


def refuse_changes(
    path: Path, stored: Experiment, spec: ExperimentSpec, tasks: Mapping[str, Mapping[str, Any]]
) -> None:
    """Refuse a spec whose trials would mix two experiments in a store.

    Raises
    ------
    StoredTrialsError
        If it changes what finished trials depend on.
    """
    if changed := changed_experiment(stored, spec, tasks):
        raise StoredTrialsError(
            f"store {path} contains another experiment named {spec.name!r}. Changed:\n  "
            + "\n  ".join(changed)
            + "\nOnly tasks, methods and subsamples may be added under the same name. For other changes, give the spec "
            "another name"
        )


def changed_experiment(stored: Experiment, spec: ExperimentSpec, tasks: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the changes of spec, base arms or data that would mix the numbers of two experiments.

    What no finished trial depends on may change.
    """
    if stored.finished is not None and not stored.finished:
        return []
    part = stored.finished_part()
    changed = incompatible_changes(part.spec, canonical(spec), part.finished)
    written = changed if part is stored else incompatible_changes(stored.spec, canonical(spec))
    base_keys = spec.base_keys()
    for (method, task), key in part.base_keys.items():
        new_key = base_keys.get((method, task), key)
        # Options determine the key. A plugin has changed it if they are the same.
        if new_key != key and not any(change.startswith(f"methods[{method}].") for change in written):
            changed.append(f"base arm of method {method} in task {task}: {key} before, {new_key} now (by its plugin)")
    for name, facts in part.tasks.items():
        if name in tasks and facts["fingerprint"] != tasks[name]["fingerprint"]:
            before, now = facts["fingerprint"][:12], tasks[name]["fingerprint"][:12]
            changed.append(f"data of task {name}: fingerprint {before} before, {now} now")
    return changed


def incompatible_changes(
    old: Mapping[str, Any], new: Mapping[str, Any], finished: Mapping[tuple[str, str, int], int] | None = None
) -> list[str]:
    """Return the changes that would mix the numbers of two experiments, each with its place.

    New tasks, new methods and more subsamples are extensions and are allowed, and so are fewer subsamples that include
    all finished ones.

    Parameters
    ----------
    old, new
        Canonical forms of two specs.
    finished
        As in `Experiment`.
    """
    changes: list[str] = []
    known = {task["name"] for task in old["tasks"]}
    for group in ("tasks", "methods"):
        after = {component["name"]: _for_tasks(known, component) for component in new[group]}
        for before in old[group]:
            if before["name"] not in after:
                changes.append(f"{group}: {before['name']!r} was removed")
            else:
                place = f"{group}[{before['name']}]"
                changes += _describe(place, _for_tasks(known, before), after[before["name"]])
    changes += describe_repeats(old, new, finished)
    old_design, new_design = ({**spec["design"], "num_subsamples": None} for spec in (old, new))
    if old["design"]["num_subsamples"] != new["design"]["num_subsamples"] and old_design["stop"] and new_design["stop"]:
        new_design["stop"] = {**new_design["stop"], "looks": old_design["stop"]["looks"]}  # an extension adds one
    changes += _describe("design", old_design, new_design)
    for key in ("name", "seed"):
        changes += _describe(key, old[key], new[key])
    changes += _describe("arms", *(sorted(spec["arms"], key=json.dumps) for spec in (old, new)))
    return changes


def _for_tasks(known: Container[str], component: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a component without what may change: options for new tasks, and the number of subsamples of a task."""
    component = {key: value for key, value in component.items() if key != "num_subsamples"}
    if "by_task" not in component:
        return component
    by_task = {task: options for task, options in component["by_task"].items() if task in known}
    return {**component, "by_task": by_task}


def describe_repeats(
    old: Mapping[str, Any], new: Mapping[str, Any], finished: Mapping[tuple[str, str, int], int] | None = None
) -> list[str]:
    """Return the numbers of subsamples below the finished ones, and those that planned looks do not allow."""
    later = {task["name"]: task for task in new["tasks"]}
    changes, ratios, fewer = {}, set(), []
    for task in old["tasks"]:
        other = later.get(task["name"], task)
        place = "design"
        if task.get("num_subsamples") or other.get("num_subsamples"):
            place = f"tasks[{task['name']}]"
        for num_test in task.get("num_test") or old["design"]["num_test"]:
            before, now = _repeats(old, task, num_test), _repeats(new, other, num_test)
            needed = before
            if finished is not None:
                sizes = [size for (_, *of_size), size in finished.items() if of_size == [task["name"], num_test]]
                needed = min(before, max(sizes, default=0))
            key = f"{place}.num_subsamples for num_test {num_test}"
            changes[key] = f"{key}: {before} before, {now} now"
            ratios.add(now / before)
            if now < needed:
                fewer.append(changes[key])
            elif now == before:
                del changes[key]
    if len(ratios) > 1 and new["design"]["stop"]:
        return [
            f"{change}; with planned looks, all numbers of subsamples grow in proportion" for change in changes.values()
        ]
    return list(dict.fromkeys(fewer))


def _repeats(spec: Mapping[str, Any], task: Mapping[str, Any], num_test: int) -> int:
    repeats = task.get("num_subsamples") or spec["design"]["num_subsamples"]
    if isinstance(repeats, Mapping):
        repeats = repeats.get(str(num_test), 0)
    return int(repeats)


def _describe(place: str, old: Any, new: Any) -> list[str]:
    return [f"{name}: {before} before, {now} now" for name, before, now in differences(place, old, new)]


def differences(place: str, old: Any, new: Any) -> list[tuple[str, str, str]]:
    """Return the place, the old value and the new value as JSON of each difference of two nested mappings.

    Examples
    --------
    >>> differences("design", {"num_train": 50, "num_test": 100}, {"num_train": 60, "num_test": 100})
    [('design.num_train', '50', '60')]
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return [
            difference
            for key in sorted({*old, *new})
            for difference in differences(f"{place}.{key}".removeprefix("."), old.get(key), new.get(key))
        ]
    before, now = json.dumps(old), json.dumps(new)
    if old == new or before == now:  # NaN is not equal to itself
        return []
    return [(place, before, now)]


def spec_to_plain(spec: ExperimentSpec) -> dict[str, Any]:
    """Return a spec as JSON values, with its folder and with pinned versions.

    Unlike a pickled spec, the result names no class of a plugin, so that `spec_from_plain` can tell what a machine
    lacks. A spec that is cut at a planned look is no valid spec by itself.

    Examples
    --------
    >>> import json, peekbench
    >>> spec = peekbench.ExperimentSpec(
    ...     name="small",
    ...     tasks=["docstrings.stdlib"],
    ...     methods=["classic.lsa"],
    ...     design={"num_train": 50, "num_test": 100, "num_subsamples": 20},
    ... )
    >>> spec_from_plain(json.loads(json.dumps(spec_to_plain(spec)))) == spec
    True
    """
    return {"spec": canonical(spec), "folder": str(spec.folder), "pinned": pins_to_plain(spec)}


def pins_to_plain(spec: ExperimentSpec) -> list[list[Any]]:
    """Return the pinned options of a spec as JSON values: group, name and options of each component."""
    return [[*place, options.model_dump(mode="json")] for place, options in spec.pinned.items()]


def spec_from_plain(plain: Mapping[str, Any]) -> ExperimentSpec:
    """Make the spec of which `spec_to_plain` returned the plain data, also after a round trip through JSON."""
    pinned = {(group, name): options for group, name, options in plain["pinned"]}
    return make_spec(plain["spec"], folder=Path(plain["folder"])).with_pinned(pinned, "spec")
