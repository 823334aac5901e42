"""Reads the labels of texts that have any number of them, for all sources of data.

A row has a list of labels, one text in which a separator divides them, or a column for each label with 0 or 1.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from reprlib import repr as short_repr
from typing import Any, TypeAlias

from peekbench.data.labels import ClassNames, name_classes, refuse_variants, split_labels
from peekbench.errors import DataError
from peekbench.identity import key_of

LabelSet: TypeAlias = tuple[str, ...] | None
"""Labels of a row as `key_of` returns them; None if it is unknown which labels it has."""

NamedLabels: TypeAlias = tuple[tuple[str, ...], tuple[tuple[int, ...], ...], tuple[str, ...]]
WRITTEN_LIST = re.compile(r"\s*\[\s*(['\"].*['\"])?\s*\]\s*", re.S)
INDICATORS = {"0": False, "1": True, "false": False, "true": True}


def is_label_set(value: Any) -> bool:
    """Return whether the value of one cell is a list of labels."""
    return isinstance(value, list | tuple | set | frozenset) or getattr(value, "ndim", 0) == 1


def refuse_written_list(value: Any, place: str) -> None:
    """Refuse a text such as "['bug', 'urgent']", which pandas writes for a list of labels."""
    if isinstance(value, str) and WRITTEN_LIST.fullmatch(value):
        raise DataError(
            f"{place}: {short_repr(value)} is a list written as text; store lists in JSON Lines or Parquet, or join "
            "the labels, as in 'bug|urgent', and name the `label_separator`"
        )


def read_label_set(value: Any, separator: str, place: str) -> LabelSet:
    """Return the labels of a row.

    Parameters
    ----------
    value
        A list of labels, or a text in which `separator` divides them; empty if the row has none.
    separator
        Separator of labels within a text; empty if values are lists.
    place
        Where the value is, for messages.

    Raises
    ------
    DataError
        If it is neither, or a label is neither text nor an integer.

    Examples
    --------
    >>> read_label_set("bug | urgent", "|", ""), read_label_set([3, 1], "", ""), read_label_set("", "|", "")
    (('bug', 'urgent'), ('3', '1'), ())
    """
    refuse_written_list(value, place)
    if separator and isinstance(value, str):
        return tuple(split_labels(value, separator))
    if not is_label_set(value):
        if key_of(value) == "":
            return None
        form = f"a text with labels between {separator!r}" if separator else "a list, as in other rows"
        raise DataError(f"{place}: the labels {short_repr(value)} are {type(value).__name__}; give {form}")
    keys = [key_of(label) for label in value]
    for label, own in zip(value, keys, strict=True):
        if own is None:
            raise DataError(
                f"{place}: the label {short_repr(label)} is {type(label).__name__}, but a label is text or an integer"
            )
    return tuple(str(own) for own in keys)


def read_indicators(values: Sequence[Any], columns: Sequence[str], place: str) -> LabelSet:
    """Return the labels of a row whose columns have 1 or true; None if a value is missing.

    Parameters
    ----------
    values
        0, 1, false or true for each column.
    columns
        Names of the labels.
    place
        Where the values are, for messages.

    Raises
    ------
    DataError
        If a value is another one.

    Examples
    --------
    >>> read_indicators([1, 0, "1"], ["bug", "login", "urgent"], "")
    ('bug', 'urgent')
    """
    keys = [(key_of(value) or "").lower() for value in values]
    for value, own, column in zip(values, keys, columns, strict=True):
        if own not in INDICATORS and key_of(value) != "":
            raise DataError(
                f"{place}: {short_repr(value)} in the column of the label {column!r} is neither 0 nor 1; store 0 or 1 "
                "in the columns of labels"
            )
    if "" in keys:
        return None
    return tuple(column for column, own in zip(columns, keys, strict=True) if INDICATORS[own])


def name_label_sets(sets: Sequence[LabelSet], class_names: ClassNames, place: str) -> NamedLabels:
    """Return the names of the labels, which of them each row has as 1 or 0, and the labels that are left out.

    Parameters
    ----------
    sets
        Labels of each row, none of which is None.
    class_names
        As for `name_classes`, but a list of names leaves out all other labels.
    place
        Where the labels are, for messages.

    Raises
    ------
    DataError
        If labels have no names, and each row has exactly one, because such lists are rather classes.

    Examples
    --------
    >>> name_label_sets([("b", "a"), ("b",), ()], None, "tickets.csv")
    (('a', 'b'), ((1, 1), (0, 1), (0, 0)), ())
    >>> name_label_sets([("b", "a"), ("c",)], ["a", "b"], "tickets.csv")
    (('a', 'b'), ((1, 1), (0, 0)), ('c',))
    """
    if not class_names and all(labels is not None and len(labels) == 1 for labels in sets):
        raise DataError(
            f"{place}: each row has a list of exactly one label; for classes, give the labels themselves; for a "
            "multi-label task, name the labels with class_names"
        )
    counts = Counter(label for labels in sets for label in set(labels or ()))
    left_out: list[str] = []
    if class_names and not isinstance(class_names, Mapping) and not counts.keys().isdisjoint(map(key_of, class_names)):
        left_out = sorted(counts.keys() - set(map(key_of, class_names)))
        refuse_variants({label: label for label in (*map(str, class_names), *left_out)}, place)
    known = {label: number for label, number in counts.items() if label not in left_out}
    names, positions = name_classes(known, class_names, place)
    indicators = []
    for labels in sets:
        row = [0] * len(names)
        for label in labels or ():
            if label in known:
                row[positions[label]] = 1
        indicators.append(tuple(row))
    return names, tuple(indicators), tuple(left_out)
