"""Checks that the data and the methods of a spec fit its design, before any trial runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from peekbench.data.loading import class_counts, find_absent_class, fingerprint, load_dataset
from peekbench.errors import DataError, PluginError, UnavailableError
from peekbench.formatting import pluralize
from peekbench.plugins.entries import MethodEntry, MethodTaskKind
from peekbench.records.data import Dataset, Split, TaskKind
from peekbench.spec.components import TaskSpec
from peekbench.spec.design import Design
from peekbench.spec.experiment import ExperimentSpec

MAX_CLASSES_PER_ROW = 1 / 3  # more classes are no classes: most would have one or two rows
MAX_NAMED = 3  # tasks named in an error about all tasks


def check_tasks(spec: ExperimentSpec) -> None:
    """Load the data of every task and check that the design and the methods fit them.

    Raises
    ------
    DataError
        If data are unavailable or have too few rows. The message names all affected tasks.
    PluginError
        If a method does not support the kind of a task, or its inputs.
    """
    errors: dict[str, DataError] = {}
    kinds: dict[TaskKind, str] = {}
    for task in spec.tasks:
        try:
            dataset = load_dataset(spec.source(task))
            check_sizes(dataset, spec.design_of(task), task.name)
        except DataError as error:
            errors[task.name] = error
        else:
            _check_kinds(spec, task.name, dataset)
            kinds.setdefault(dataset.kind, task.name)
    if len(kinds) > 1:
        listed = ", ".join(f"{name} is {kind}" for kind, name in kinds.items())
        raise DataError(
            f"tasks of different kinds have scores without a common average: {listed}; put them into different specs"
        )
    if len(errors) == 1:
        raise next(iter(errors.values()))
    if errors:
        raise DataError("\n".join(list_errors(errors, len(spec.tasks))))


def list_errors(errors: Mapping[str, DataError], num_tasks: int) -> Iterator[str]:
    """Yield one line per error of a task, and only one for tasks that are unavailable for the same reason."""
    names_by_cause: dict[object, list[str]] = {}
    for name, error in errors.items():
        names_by_cause.setdefault(error.reason if isinstance(error, UnavailableError) else error, []).append(name)
    for cause, names in names_by_cause.items():
        if len(names) == 1:
            yield str(errors[names[0]])
        else:  # if all tasks are affected, readers need only a few names
            count = f"{len(names)} tasks"
            if len(names) == num_tasks and len(names) > MAX_NAMED + 1:
                names[MAX_NAMED:] = ["..."]
            yield f"{count} ({', '.join(names)}): {cause}"


def _check_kinds(spec: ExperimentSpec, task: str, dataset: Dataset) -> None:
    for method in spec.methods:
        if mismatch := find_mismatch(method.entry, dataset, f"task {task}"):
            raise PluginError(
                f"method {method.name} ({method.use}) {mismatch}; {_remedy(dataset.kind, len(spec.methods))}"
            )


def find_mismatch(entry: MethodEntry, dataset: Dataset, task: str) -> str:
    """Return a clause that says why a method cannot be used on a task; empty if it can.

    Parameters
    ----------
    entry
        The method.
    dataset
        Rows of the task.
    task
        The task in the clause.

    Examples
    --------
    >>> import numpy as np
    >>> entry = MethodEntry(name="lsa", method="my_package.lsa:fit", summary="LSA")
    >>> find_mismatch(entry, Dataset(np.zeros((2, 3)), [0, 1], ("low", "high")), "task iris")
    'supports classification, but task iris is tabular_classification'
    """
    kind: MethodTaskKind = dataset.kind
    if dataset.kind == "classification" and dataset.input_kind == "features":
        kind = "tabular_classification"
    elif dataset.kind == "regression" and dataset.input_kind == "texts":
        kind = "text_regression"
    if kind in entry.task_kinds:
        return ""
    return f"supports {' and '.join(sorted(entry.task_kinds))}, but {task} is {kind}"


def _remedy(kind: TaskKind, num_methods: int) -> str:
    remedy = "choose a method for this kind of task"
    if num_methods > 1:
        remedy = "put them into different specs"
    if kind == "language_modeling":
        remedy += ", or use the labels: remove `kind` from the task, and `label` null from its options"
    return remedy


def rows_per_class(num_train: int, num_classes: int) -> int:
    """Return the number of train rows drawn from each class."""
    return num_train // num_classes


def rows_behind(design: Design) -> int:
    """Return the number of rows that the largest sets of a subsample and the shared unlabeled texts take."""
    num_test = max(design.num_test)
    return design.num_sets * num_test + design.num_shared(num_test)


def check_sizes(dataset: Dataset, design: Design, task: str) -> None:
    """Refuse a design for which a task has too few rows.

    Raises
    ------
    DataError
        If there are too few rows. The message names the task, the class or the split, and the number of rows.
    """
    num_train, num_test = max(design.num_train), max(design.num_test)
    needed, sets, sizes = rows_behind(design), f"{design.num_sets} x num_test {num_test}", "num_test"
    if shared := design.num_shared(num_test):
        sets, sizes = f"{sets} + {shared} shared unlabeled texts", "num_unlabeled or num_test"
    if dataset.kind == "classification":
        num_train = _check_classes(dataset, design, task)
    if not dataset.splits:
        if len(dataset.labels) < num_train + needed:
            raise DataError(
                f"task {task}: {pluralize(len(dataset.labels), 'row')}, but num_train {num_train} + {sets} = "
                f"{num_train + needed} are needed; lower {sizes} or num_train"
            )
        return
    rows = Counter(dataset.splits)
    if rows["train"] < num_train:
        raise DataError(
            f"task {task}: {pluralize(rows['train'], 'row')} in its train split, but num_train is {num_train}; lower "
            "num_train, or do not use official splits"
        )
    if rows["test"] < needed:
        raise DataError(
            f"task {task}: {pluralize(rows['test'], 'row')} in its test split, but {sets} = {needed} are needed for "
            f"test and extra rows; lower {sizes}, or do not use official splits"
        )


def _check_classes(dataset: Dataset, design: Design, task: str) -> int:
    """Refuse train sets without some class, or with too few rows of it. Return the number of train rows."""
    num_train, num_classes = max(design.num_train), len(dataset.class_names)
    if num_classes > MAX_CLASSES_PER_ROW * len(dataset.labels):
        raise DataError(
            f"task {task}: {num_classes} classes in {pluralize(len(dataset.labels), 'row')}; these labels are numbers "
            "of a scale, or identifiers. Name another column as the label, or replace the numbers by a few ranges"
        )
    if min(design.num_train) < num_classes:
        raise DataError(
            f"task {task}: num_train {min(design.num_train)} is below the number of classes, {num_classes}, so no "
            f"train set can contain every class; use num_train of at least {num_classes}"
        )
    needed = 1
    if design.train == "balanced":
        needed = rows_per_class(num_train, num_classes)
        num_train = needed * num_classes
    counts = class_counts(dataset, "train")
    place = " in its train split" if dataset.splits else ""
    for label, class_name in enumerate(dataset.class_names):
        if not counts.get(label):
            raise DataError(f"task {task}: {find_absent_class(dataset)}")
        if counts[label] < needed:
            raise DataError(
                f"task {task}, class {class_name!r}: {pluralize(counts[label], 'row')}{place}, but num_train "
                f"{max(design.num_train)} needs {needed} from each of {num_classes} classes; lower num_train, set "
                "`train` to natural in the design, or merge the class with another one in the data"
            )
    return num_train


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
    return {
        "use": task.use,
        "kind": dataset.kind,
        "rows": len(dataset.labels),
        "class_names": list(dataset.class_names),
        "class_counts": _list_class_counts(dataset),
        "splits": {
            split: {"rows": rows, "class_counts": _list_class_counts(dataset, split)}
            for split, rows in Counter(dataset.splits).items()
        },
        "fingerprint": fingerprint(dataset),
        "details": dict(dataset.details),
    }


def _list_class_counts(dataset: Dataset, split: Split | None = None) -> list[int]:
    """Return the number of rows of each class; empty for regression."""
    counts = class_counts(dataset, split)
    return [counts.get(label, 0) for label in range(len(dataset.class_names))]


def describe_splits(spec: ExperimentSpec) -> Iterator[str]:
    """Yield a line on the number of rows of each task with official splits."""
    for task in spec.tasks:
        if sizes := Counter(load_dataset(spec.source(task)).splits):
            yield (
                f"task {task.name}: official splits, {pluralize(sizes['train'], 'row')} for train sets, "
                f"{pluralize(sizes['test'], 'row')} for extra and test sets"
            )


def majority_share(facts: Mapping[str, Any]) -> float | None:
    """Return the share of the largest class among the rows that test sets are drawn from; None for regression.

    Parameters
    ----------
    facts
        Facts about a task's data, as `describe_data` returns them.
    """
    counts: list[int] = facts["splits"].get("test", facts)["class_counts"]
    if not counts:
        return None
    return max(counts) / sum(counts)
