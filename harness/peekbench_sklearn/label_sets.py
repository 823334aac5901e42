"""Labels of which a text has any number: fits of classifiers to them, and the forms in which users hold them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline

from peekbench import DataError
from peekbench.data.label_sets import (
    LabelSet,
    is_label_set,
    read_indicators,
    read_label_set,
    refuse_written_list,
)
from peekbench.records import FloatArray, IntArray
from peekbench_sklearn.rows import as_array


def fit_classifier(classifier: Any, rows: Any, labels: IntArray | FloatArray) -> Any:
    """Fit a classifier to classes, or a copy of it to each label of a multi-label task.

    Parameters
    ----------
    classifier
        A classifier with `predict_proba`.
    rows
        Features, (n_train, n_features).
    labels
        Classes, (n_train,), or 0 and 1, (n_train, n_labels). A label that all rows have is certain.

    Returns
    -------
    estimator
        Its `predict_proba` returns shape (n, n_classes) or (n, n_labels).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> model = fit_classifier(LogisticRegression(), [[0.0], [1.0], [2.0]], np.array([[1, 0], [1, 1], [1, 1]]))
    >>> model.predict_proba([[5.0]]).round(1).tolist()
    [[1.0, 1.0]]
    """
    if labels.ndim == 1:
        return classifier.fit(rows, labels)
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # that all rows have a label
        return OneVsRestClassifier(classifier).fit(rows, labels)


def check_label_sets(estimator: Any) -> None:
    """Refuse a classifier that cannot be fitted to labels of shape (n, n_labels), with a DataError."""
    if accepts_label_sets(estimator):
        return
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    classifier = type(estimator).__name__
    raise DataError(
        f"{classifier} cannot be fitted to sets of labels; put sklearn.multiclass.OneVsRestClassifier"
        f"({classifier}(...)) in its place, which fits a copy to each label"
    )


def accepts_label_sets(estimator: Any) -> bool:
    """Return whether a classifier can be fitted to labels of shape (n, n_labels).

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> accepts_label_sets(LogisticRegression()), accepts_label_sets(OneVsRestClassifier(LogisticRegression()))
    (False, True)
    """
    if isinstance(estimator, Pipeline):
        return accepts_label_sets(estimator.steps[-1][1])
    if isinstance(estimator, GridSearchCV | RandomizedSearchCV):
        return accepts_label_sets(estimator.estimator)
    if not hasattr(estimator, "__sklearn_tags__"):
        return True  # nothing is known of it
    tags = estimator.__sklearn_tags__()
    if tags.classifier_tags is None:
        return False
    return bool(tags.classifier_tags.multi_label or tags.target_tags.multi_output)


@dataclass(frozen=True, slots=True)
class HeldLabels:
    """Labels of rows that have any number of them."""

    sets: tuple[LabelSet, ...]
    """Labels of each row; None if they are unknown."""
    names: Sequence[str] | None = None
    """Names of the labels, if the rows have a column for each."""


def find_label_sets(
    labels: Any, place: str, separator: str = "", names: Sequence[str] | None = None, chosen: Any = None
) -> HeldLabels | None:
    """Return the labels of rows that have any number of them; None for one label or number for each row.

    Parameters
    ----------
    labels
        Indicators, 0 or 1, of shape (n, n_labels): a data frame, an array, a sparse matrix or lists. Or n lists of
        labels, or n texts in which a separator divides labels.
    place
        Name of the data, for messages.
    separator
        Separator of labels; empty if there is none.
    names
        Names that the labels 0, 1, ... of lists have.
    chosen
        Names of the labels that the user gives, which name the columns of an array.

    Raises
    ------
    DataError
        If labels have none of these forms, or each row of indicators without names has exactly one label.

    Examples
    --------
    >>> find_label_sets([["bug", "urgent"], []], "tickets").sets
    (('bug', 'urgent'), ())
    """
    if hasattr(labels, "toarray"):
        labels = labels.toarray()
    array = _indicators_of(labels)
    if array is not None:
        columns = getattr(labels, "columns", chosen or None)
        num_labels = array.shape[1]
        if columns is None and array.dtype.kind in "biuf" and (array.sum(axis=1) == 1).all():
            raise DataError(
                f"{place}: each row of the labels has exactly one 1; for classes, give y.argmax(axis=1); for a "
                "multi-label task, name the labels with class_names"
            )
        known = [str(name) for name in (range(num_labels) if columns is None else columns)]
        if len(known) != num_labels:
            raise DataError(f"{place}: {num_labels} columns of labels, but {len(known)} names; name each column")
        rows = enumerate(array.tolist())
        return HeldLabels(tuple(read_indicators(row, known, f"{place}: row {number}") for number, row in rows), known)
    if not isinstance(labels, list | tuple) and getattr(labels, "ndim", 0) != 1:
        return None
    values = list(labels)
    if not separator and not any(map(is_label_set, values)):
        for row, value in enumerate(values):
            refuse_written_list(value, f"{place}: row {row}")
        return None
    sets = []
    for row, value in enumerate(values):
        own = read_label_set(value, separator, f"{place}: row {row}")
        if own is not None and names is not None:
            numbers = {str(number): name for number, name in enumerate(names)}
            own = tuple(numbers.get(label, label) for label in own)
        sets.append(own)
    return HeldLabels(tuple(sets))


def join_labels(parts: Sequence[Any], numbers: Sequence[Mapping[int, int]], name: str) -> Any:
    """Return the labels of the rows of all parts.

    Parameters
    ----------
    parts
        `HeldLabels`, or one label for each row.
    numbers
        Numbers of classes of each part, as `peekbench.data.labels.align_classes` gives them.
    name
        Name of the data, for messages.

    Raises
    ------
    DataError
        If only some parts have sets of labels.
    """
    held = [part for part in parts if isinstance(part, HeldLabels)]
    if held and len(held) < len(parts):
        raise DataError(f"{name}: only one of train and test has sets of labels; give both in one form")
    if held:
        return HeldLabels(tuple(chain.from_iterable(part.sets for part in held)), held[0].names)
    series = [pd.Series(as_array(part).ravel()) for part in parts]
    return pd.concat([part.replace(new) for part, new in zip(series, numbers, strict=True)], ignore_index=True)


def _indicators_of(labels: Any) -> Any:
    """Return labels as an array if they have two or more columns of 0 and 1; lists of labels are no such columns."""
    if isinstance(labels, list | tuple):
        if not all(is_label_set(row) and len(row) > 1 and set(row) <= {0, 1} for row in labels):
            return None
        if len({len(row) for row in labels}) > 1:
            return None
    elif getattr(labels, "ndim", 0) != 2:
        return None
    array = np.asarray(labels)
    return array if array.ndim == 2 and array.shape[1] > 1 else None
