"""The forms in which users hold labels of which a text has any number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from peekbench.data.label_sets import (
    LabelSet,
    is_label_set,
    read_indicators,
    read_label_set,
    refuse_written_list,
)
from peekbench.errors import DataError


def as_array(values: Any) -> Any:
    """Return values as an array; numpy would make texts of the other values of a list with texts, as of NaN."""
    array = np.asarray(values)
    is_list = array.dtype.kind == "U" and not hasattr(values, "dtype")
    return np.asarray(values, dtype=object) if is_list else array


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
