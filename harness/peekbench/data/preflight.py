"""Checks that the data and the methods of a spec fit its design, before any trial runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from peekbench.data.loading import class_counts, fingerprint, load_dataset
from peekbench.errors import DataError, PluginError, UnavailableError
from peekbench.formatting import pluralize
from peekbench.records.data import Dataset, TaskKind
from peekbench.spec.components import TaskSpec
from peekbench.spec.design import Design
from peekbench.spec.experiment import ExperimentSpec

MAX_NAMED = 3  # tasks named in an error about all tasks


def check_tasks(spec: ExperimentSpec) -> None:
    """Load the data of every task and check that the design and the methods fit them.

    Raises
    ------
    DataError
        If data are unavailable or have too few rows. The message names all affected tasks.
    PluginError
        If a method does not support the kind of a task.
    """
    errors: dict[str, DataError] = {}
    for task in spec.tasks:
        try:
            dataset = load_dataset(spec.source(task))
            check_sizes(dataset, spec.design_of(task), task.name)
        except DataError as error:
            errors[task.name] = error
        else:
            _check_kind(spec, task.name, dataset.kind)
    if len(errors) == 1:
        raise next(iter(errors.values()))
    if errors:
        raise DataError("\n".join(_summarize(errors, len(spec.tasks))))


def _summarize(errors: Mapping[str, DataError], num_tasks: int) -> Iterator[str]:
    """Yield one line per error, and only one for tasks that are unavailable for the same reason."""
    names_by_cause: dict[object, list[str]] = {}
    for name, error in errors.items():
        names_by_cause.setdefault(error.reason if isinstance(error, UnavailableError) else error, []).append(name)
    for cause, names in names_by_cause.items():
        if len(names) == 1:
            yield str(errors[names[0]])
        else:  # if all tasks are affected, readers need only a few names
            is_partial = len(names) < num_tasks or len(names) <= MAX_NAMED + 1
            yield f"{len(names)} tasks ({', '.join(names if is_partial else [*names[:MAX_NAMED], '...'])}): {cause}"


def _check_kind(spec: ExperimentSpec, task: str, kind: TaskKind) -> None:
    for method in spec.methods:
        if kind not in method.entry.task_kinds:
            raise PluginError(
                f"method {method.name} ({method.use}) supports {' and '.join(sorted(method.entry.task_kinds))}, "
                f"but task {task} is {kind}; put them into different specs"
            )


def rows_per_class(num_train: int, num_classes: int) -> int:
    """Return the number of train rows drawn from each class."""
    return num_train // num_classes


def check_sizes(dataset: Dataset, design: Design, task: str) -> None:
    """Refuse a design for which a task has too few rows.

    Raises
    ------
    DataError
        If there are too few rows. The message names the task, the class and the number of rows.
    """
    num_train, num_test = max(design.num_train), max(design.num_test)
    num_rows = len(dataset.labels)
    if dataset.kind == "classification":
        min_num_train, num_classes = min(design.num_train), len(dataset.class_names)
        if min_num_train < num_classes:
            raise DataError(
                f"task {task}: num_train {min_num_train} is below the number of classes, {num_classes}, so no train "
                f"set can contain every class; use num_train of at least {num_classes}"
            )
        needed = rows_per_class(num_train, num_classes)
        counts = class_counts(dataset)
        for label, class_name in enumerate(dataset.class_names):
            if counts.get(label, 0) < needed:
                raise DataError(
                    f"task {task}, class {class_name!r}: {pluralize(counts.get(label, 0), 'row')}, but num_train "
                    f"{num_train} needs {needed} from each of {num_classes} classes; lower num_train or drop the class"
                )
        num_train = needed * num_classes
    if num_rows < num_train + 2 * num_test:
        raise DataError(
            f"task {task}: {pluralize(num_rows, 'row')}, but num_train {num_train} + 2 x num_test {num_test} = "
            f"{num_train + 2 * num_test} are needed; lower num_test or num_train"
        )


def describe_tasks(spec: ExperimentSpec) -> dict[str, dict[str, Any]]:
    """Return facts about each task's data by name, after the checks of `check_tasks`."""
    check_tasks(spec)
    return {task.name: describe_data(spec, task) for task in spec.tasks}


def describe_data(spec: ExperimentSpec, task: TaskSpec) -> dict[str, Any]:
    """Return facts about one task's data.

    Raises
    ------
    DataError
        If the data are unavailable or malformed.
    """
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
