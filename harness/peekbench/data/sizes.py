"""Refuses designs for which a task has too few rows, of whichever groups they are."""

from __future__ import annotations

from collections import Counter

from peekbench.data.dataset_checks import class_counts, find_absent_class
from peekbench.errors import DataError
from peekbench.formatting import pluralize
from peekbench.records.data import Dataset
from peekbench.spec.design import Design

MAX_CLASSES_PER_ROW = 1 / 3  # more classes are no classes: most would have one or two rows


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
    if dataset.class_names:
        num_train = _check_classes(dataset, design, task)
    if not dataset.splits:
        if len(dataset.extra):
            raise DataError(f"task {task}: private extra texts need an official train and test split; name both")
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
    if len(dataset.extra) and not design.folds:
        raise DataError(f"task {task}: private extra texts need folds; set `design` to official, or remove these texts")
    if design.folds:
        largest = -(-rows["test"] // max(design.folds))
        if 0 < len(dataset.extra) < largest:
            raise DataError(
                f"task {task}: {pluralize(len(dataset.extra), 'extra text')}, too few to take the place of a fold of "
                f"{largest:,}; add some, or use more folds"
            )
        needed = 2 * max(design.folds)
        if rows["test"] < needed:
            raise DataError(
                f"task {task}: {pluralize(rows['test'], 'row')} in its test split, too few for {max(design.folds)} "
                f"folds; use at most {rows['test'] // 2}"
            )
        return
    if rows["test"] < needed:
        raise DataError(
            f"task {task}: {pluralize(rows['test'], 'row')} in its test split, but {sets} = {needed} are needed for "
            f"test and extra rows; lower {sizes}, or do not use official splits"
        )


def _check_classes(dataset: Dataset, design: Design, task: str) -> int:
    """Refuse train sets without some class or label, or with too few rows of it. Return the number of train rows."""
    num_train, num_classes = max(design.num_train), len(dataset.class_names)
    if num_classes > MAX_CLASSES_PER_ROW * len(dataset.labels):
        raise DataError(
            f"task {task}: {num_classes} classes in {pluralize(len(dataset.labels), 'row')}; these labels are numbers "
            "of a scale, or identifiers. Name another column as the label, or replace the numbers by a few ranges"
        )
    if min(design.num_train) < num_classes:
        what, named = "classes", "class"
        if dataset.kind == "multilabel":
            what, named = "labels", "label"
        raise DataError(
            f"task {task}: num_train {min(design.num_train)} is below the number of {what}, {num_classes}, so train "
            f"sets may lack a {named}; use num_train of at least {num_classes}"
        )
    needed = 1
    if design.train == "balanced" and dataset.kind == "classification":
        needed = rows_per_class(num_train, num_classes)
        num_train = needed * num_classes
    counts = class_counts(dataset, "train")
    for label, class_name in enumerate(dataset.class_names):
        if not counts.get(label):
            raise DataError(f"task {task}: {find_absent_class(dataset)}")
        if counts[label] < needed:
            raise DataError(
                f"task {task}, class {class_name!r}: {pluralize(counts[label], 'row')} for train sets, but num_train "
                f"{max(design.num_train)} needs {needed} from each of {num_classes} classes; lower num_train, set "
                "`train` to natural in the design, or merge the class with another one in the data"
            )
    return num_train
