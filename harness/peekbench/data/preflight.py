"""Loads a spec's tasks and checks that the design and the methods fit them, before any work is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from peekbench.data.loading import class_counts, fingerprint, load_dataset
from peekbench.data.sampling import check_sizes
from peekbench.errors import DataError, PluginError, UnavailableError

if TYPE_CHECKING:
    from peekbench.records.data import TaskKind
    from peekbench.spec.components import TaskSpec
    from peekbench.spec.experiment import ExperimentSpec


def check_tasks(spec: ExperimentSpec) -> None:
    """Load every task's data; refuse a design that it is too small for, and a method that does not take it.

    Raises
    ------
    DataError
        Where data cannot be had, or there are too few rows; of all tasks for which that is so.
    PluginError
        Where a method takes other kinds of tasks.
    """
    faults: dict[str, DataError] = {}
    for task in spec.tasks:
        try:
            dataset = load_dataset(spec.source(task))
            check_sizes(dataset, spec.design_of(task), task.name)
        except DataError as error:
            faults[task.name] = error
        else:
            _check_kind(spec, task.name, dataset.kind)
    if len(faults) == 1:
        raise next(iter(faults.values()))
    if faults:
        raise DataError("\n".join(_tell_once(faults, len(spec.tasks))))


def _tell_once(faults: Mapping[str, DataError], num_tasks: int) -> Iterator[str]:
    """A line a fault; tasks that are unavailable for one reason share theirs."""
    alike: dict[object, list[str]] = {}
    for name, fault in faults.items():
        alike.setdefault(fault.reason if isinstance(fault, UnavailableError) else fault, []).append(name)
    for cause, names in alike.items():
        if len(names) == 1:
            yield str(faults[names[0]])
        else:  # who lacks some of the tasks wants to know which; where it is all of them, a few will do
            named = names if len(names) < num_tasks or len(names) <= 4 else [*names[:3], "..."]
            yield f"{len(names)} tasks ({', '.join(named)}): {cause}"


def _check_kind(spec: ExperimentSpec, task: str, kind: TaskKind) -> None:
    for method in spec.methods:
        if kind not in method.entry.task_kinds:
            raise PluginError(
                f"method {method.name} ({method.use}) takes {' or '.join(sorted(method.entry.task_kinds))}, "
                f"but task {task} is {kind}; put them into different specs"
            )


def describe_tasks(spec: ExperimentSpec) -> dict[str, dict[str, Any]]:
    """What each task's data are, by name; raises as `check_tasks`."""
    check_tasks(spec)
    return {task.name: describe_data(spec, task) for task in spec.tasks}


def describe_data(spec: ExperimentSpec, task: TaskSpec) -> dict[str, Any]:
    """What one task's data are; raises as `load_dataset`."""
    dataset = load_dataset(spec.source(task))
    counts = class_counts(dataset) if dataset.kind == "classification" else {}
    return {
        "use": task.use,
        "kind": dataset.kind,
        "rows": len(dataset.labels),
        "class_names": list(dataset.class_names),
        "class_counts": [counts.get(label, 0) for label in range(len(dataset.class_names))],
        "fingerprint": fingerprint(dataset),
        "details": dict(dataset.details),
    }
