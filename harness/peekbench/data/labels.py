"""Turns labels, and lists of labels, into classes, for all sources of data.

A label is a sign of a missing label, not a class, if it is empty, null, NaN, `?`, `unlabeled` or a text that pandas
reads as missing, or if it is the only negative number and not the opposite of the only other label.

A row of a multi-label task has a list of labels, one text in which a separator divides them, or a column for each label
with 0 or 1.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import compress
from reprlib import repr as short_repr
from typing import Any, TypeAlias

from peekbench.errors import DataError
from peekbench.formatting import pluralize
from peekbench.identity import DIFFERENCES, find_alike, key_of, normalize
from peekbench.records.data import Reference

ClassNames: TypeAlias = Sequence[str] | Mapping[str, str] | None
INTEGER = re.compile(r"-?[0-9]{1,18}")
MISSING = {"", "?", "#N/A", "#NA", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}
UNLABELED = {"unlabeled", "unlabelled"}  # in any case
HOLD_OUT = "hold out a part of the train rows as test rows"
"""Remedy for a test split without labels, because scores need them."""
SEPARATORS = ("|", ";", ",")  # of several labels in one text
LabelSet: TypeAlias = tuple[str, ...] | None
"""Labels of a row as `key_of` returns them; None if it is unknown which labels it has."""
NamedLabels: TypeAlias = tuple[tuple[str, ...], tuple[tuple[int, ...], ...], tuple[str, ...]]
WRITTEN_LIST = re.compile(r"\s*\[\s*(['\"].*['\"])?\s*\]\s*", re.S)
INDICATORS = {"0": False, "1": True, "false": False, "true": True}


def read_reference(value: object, place: str) -> Reference:
    """Return the reference of an answer: a text or a number as text, or a tuple of several; empty if it is missing.

    Missing parts of a list are left out.

    Raises
    ------
    DataError
        If the value at a place is neither text nor a number, nor a list of them.

    Examples
    --------
    >>> read_reference(42, "sums.jsonl, line 2"), read_reference(["4", "four"], ""), read_reference(None, "")
    ('42', ('4', 'four'), '')
    """
    if isinstance(value, list | tuple):
        parts = (_read_text(part, place) for part in value)
        return tuple(part for part in parts if part)
    return _read_text(value, place)


def _read_text(value: object, place: str) -> str:
    if isinstance(value, str):
        return value if value.strip() else ""
    text = key_of(value)
    if text is None and isinstance(value, float):
        text = repr(value)
    if text is None:
        raise DataError(
            f"{place}: {short_repr(value)} is {type(value).__name__}, but a reference is text or a number, or a list "
            "of them of which the best grade counts; store it as one of them"
        )
    return text


def find_missing(labels: Collection[str], class_names: ClassNames = None) -> list[str]:
    """Return the labels that are signs of a missing label, unless a mapping names their classes.

    Parameters
    ----------
    labels
        The labels that occur, as `key_of` returns them, each once.
    class_names
        Names that the user has given to the classes.

    Raises
    ------
    DataError
        If a negative number occurs beside another sign, so it can be a class or a second sign, and no mapping names it.

    Examples
    --------
    >>> find_missing(["-1", "0", "1"]), find_missing(["-1", "1"]), find_missing(["-2", "-1", "0"])
    (['-1'], [], [])
    >>> find_missing(["bug", "question", "?"])
    ['?']
    """
    found = [label for label in labels if label in MISSING or normalize(label) in UNLABELED]
    others = [label for label in labels if label not in found]
    numbers = {label: int(label) for label in others if INTEGER.fullmatch(label)}
    negative = [label for label, number in numbers.items() if number < 0]
    if len(negative) == 1:
        opposite = -numbers[negative[0]]
        if [numbers.get(label) for label in others if label not in negative] != [opposite]:
            if found and len(others) > 1 and not isinstance(class_names, Mapping):
                raise DataError(
                    f"the labels {negative[0]} and {short_repr(found[0])} can both stand for a missing label; set "
                    f"`class_names` to a mapping from labels to names, without {negative[0]} if it is one"
                )
            found += negative
    if isinstance(class_names, Mapping):
        return [label for label in found if label not in class_names]
    return found


def refuse_missing(counts: Mapping[str, int], class_names: ClassNames, place: str, first: str) -> None:
    """Refuse labels that are signs of a missing label, given the number of rows of each, and the place of the first."""
    missing = find_missing(counts, class_names)
    number, total = sum(counts[label] for label in missing), sum(counts.values())
    signs = " or ".join(map(short_repr, missing))
    if number == total:
        raise DataError(
            f"{place}: all labels are missing, {signs}, so these labels may not be public; use a split that has labels"
        )
    raise DataError(
        f"{place}: {number:,} of {pluralize(total, 'row')} have the label {signs}, which stands for a missing label; "
        f"the first is {first}. To drop such rows, set `drop_missing` to True; if they are a class, set `class_names` "
        "to a mapping from all labels to names"
    )


def refuse_hidden(found: Collection[str], known: Collection[str], class_names: ClassNames, use: str) -> None:
    """Refuse a test split in which all labels are signs of a missing label, as competitions publish it.

    `known` has the labels of all rows, and `use` is the remedy.
    """
    if found and set(found) <= {*find_missing({*known}, class_names)}:
        signs = " or ".join(map(short_repr, sorted(found)))
        raise DataError(f"the labels of the test split are not public: all are {signs}; {use}, or {HOLD_OUT}")


def split_labels(text: str, separator: str) -> list[str]:
    """Return the keys of the labels that a separator divides.

    Examples
    --------
    >>> split_labels("bug | 1.0|", "|")
    ['bug', '1']
    """
    return [part for part in map(key_of, text.split(separator)) if part]


def refuse_joined(labels: Collection[str], place: str) -> None:
    """Refuse labels that seem to be several labels in one text: each part is also in others, and some are alone.

    Examples
    --------
    >>> refuse_joined(["red, white", "red, blue"], "column 'flag'")  # no part is a label
    """
    for separator in SEPARATORS:
        parts = {label: split_labels(label, separator) for label in labels}
        joined = [label for label in labels if len(parts[label]) > 1]
        counts = Counter(part for label in labels for part in set(parts[label]))
        of_joined = {part for label in joined for part in parts[label]}
        if len(joined) > 1 and min(counts[part] for part in of_joined) > 1 and not of_joined.isdisjoint(labels):
            raise DataError(
                f"{place}: labels such as {short_repr(joined[0])} seem to be several labels; if texts have any number "
                f"of labels, set `label_separator` to {separator!r}; if these are classes, list them as `class_names`"
            )


def name_classes(
    counts: Mapping[str, int], class_names: ClassNames, place: str, locate: Callable[[str], str] | None = None
) -> tuple[tuple[str, ...], dict[str, int]]:
    """Return the class names, and for each label the position of its class among them.

    Parameters
    ----------
    counts
        Number of rows of each label, as `key_of` returns it, without signs of a missing label.
    class_names
        A list: labels are these names, or 0, 1, ... A mapping gives a name to each label; labels with the same name
        form one class. None: the labels, sorted.
    place
        Where the labels are, for messages.
    locate
        Returns the position of the first row with a label.

    Raises
    ------
    DataError
        If a label has no class, or two classes have names that are alike.

    Examples
    --------
    >>> name_classes({"1": 7, "0": 3}, ["bug", "question"], "tickets.csv")
    (('bug', 'question'), {'0': 0, '1': 1})
    """
    is_numeric = all(map(INTEGER.fullmatch, counts))
    if class_names is None:
        class_names = _sort(counts)
    if isinstance(class_names, Mapping):
        name_of = dict(class_names)
    elif is_numeric and not counts.keys() <= {key_of(name) for name in class_names}:
        name_of = {str(position): name for position, name in enumerate(class_names)}
    else:
        name_of = {key_of(name) or "": name for name in class_names}
    if unknown := [label for label in counts if label not in name_of]:
        refuse_variants({**name_of, **{label: label for label in counts if label not in name_of}}, place)
        label = unknown[0]
        if locate is not None:
            place = locate(label)
        raise DataError(
            f"{place}: the label {short_repr(label)} has no class; class_names "
            f"contains {short_repr(list(name_of))}. Add the label to class_names, or remove its "
            f"{pluralize(counts[label], 'row')}"
        )
    refuse_variants({label: name_of[label] for label in counts}, place)
    names = tuple(dict.fromkeys(name_of.values()))
    positions = {name: position for position, name in enumerate(names)}
    return names, {label: positions[name] for label, name in name_of.items()}


def _sort(labels: Collection[str]) -> list[str]:
    if all(map(INTEGER.fullmatch, labels)):
        return sorted(labels, key=lambda label: (int(label), label))
    return sorted(labels)


def refuse_variants(name_of: Mapping[str, str], place: str) -> None:
    """Refuse classes whose names are alike."""
    variants = next(iter(find_alike(name_of.values())), None)
    if variants is None:
        return
    raise DataError(
        f"{place}: the labels {' and '.join(map(json.dumps, variants))} differ only by {DIFFERENCES}. "
        "Correct them, or set `class_names` to a mapping from all labels to names, which joins those of the same name"
    )


def name_labels(labels: Any, class_names: Sequence[str]) -> list[Any]:
    """Return the name of the class of each row, or a tuple of the names of its labels.

    Parameters
    ----------
    labels
        Indices of classes, shape (n,); or 0 and 1, shape (n, n_labels).
    class_names
        Names of the classes or labels.

    Examples
    --------
    >>> name_labels([[1, 1], [0, 0]], ["bug", "urgent"]), name_labels([1], ["bug", "question"])
    ([('bug', 'urgent'), ()], ['question'])
    """
    rows = labels if isinstance(labels, Sequence) else labels.tolist()
    if rows and isinstance(rows[0], Sequence):
        return [tuple(compress(class_names, row)) for row in rows]
    return [class_names[row] for row in rows]


def check_class_names(counts: Mapping[str, int], use: str) -> None:
    """Refuse names of classes that are signs of a missing label, or alike."""
    for name in find_missing({key_of(name) or "": name for name in counts}):
        raise DataError(
            f"{use}: {pluralize(counts[name], 'row')} of the class {name!r}, which stands for a missing label; drop "
            "these rows, or give the class another name in class_names"
        )
    refuse_variants({name: name for name in counts}, use)


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
