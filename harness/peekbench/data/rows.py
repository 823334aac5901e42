"""Turns columns of labels and groups into the rows of a task, in the same way for all sources of data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from numbers import Real
from reprlib import repr as short_repr
from typing import Any, TypeAlias, get_args

from peekbench.data.labels import (
    SEPARATORS,
    ClassNames,
    LabelSet,
    find_missing,
    is_label_set,
    name_classes,
    name_label_sets,
    read_label_set,
    read_reference,
    refuse_hidden,
    refuse_joined,
    refuse_missing,
    refuse_written_list,
    split_labels,
)
from peekbench.errors import DataError
from peekbench.formatting import pluralize, shorten
from peekbench.identity import key_of
from peekbench.records.data import Split

Finish: TypeAlias = Callable[[list[int], dict[str, Any]], dict[str, Any]]
"""Takes the numbers of the rows that are kept, and facts about the data to add to; returns fields of a `Dataset`."""
TRAIN, TEST = get_args(Split)


@dataclass(frozen=True, slots=True)
class Columns:
    """Labels and groups of the rows of one split, or of all rows, as a source has them."""

    labels: Sequence[Any]
    """A text or a number for each row, a list of labels or None; in generation, a reference."""
    groups: Sequence[Any] | None = None
    """None if every row is a group of its own."""
    code_names: Sequence[str] | None = None
    """Names of the labels 0, 1, ..., as a `ClassLabel` of `datasets` has them."""
    name: str = ""
    """Name of the split in messages."""
    locate: Callable[[int], str] = "row {}".format
    """Returns the position of a row in messages."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What labels mean, and which rows are dropped."""

    place: str
    """Where the labels are, in messages."""
    kind: str = ""
    """'generation', 'regression', 'language_modeling' without labels, or empty for classes and sets of labels."""
    class_names: ClassNames = None
    separator: str = ""
    """Separator of several labels in a text."""
    sorts_texts: bool = False
    """Whether classes are sorted as texts if all labels are texts, as scikit-learn does."""
    drop_missing: bool = False
    drop_shared_groups: bool = False
    other_split: str = "use the validation split"
    """Remedy for a test split without labels."""
    dropped: Mapping[str, Sequence[bool]] = field(default_factory=dict)
    """Which further rows are dropped, by reason."""


def select_rows(
    splits: Sequence[Columns], is_blank: Sequence[bool], reading: Reading
) -> tuple[list[int], dict[str, Any]]:
    """Return the numbers of the rows that a task keeps, and the other fields of its `Dataset`.

    Parameters
    ----------
    splits
        Columns of all rows, or of the official train and test splits.
    is_blank
        Whether each row has no input.
    reading
        What labels mean, and which rows are dropped.

    Raises
    ------
    DataError
        If a value is missing or has a wrong type, labels are not what they seem, or no row is left.

    Examples
    --------
    >>> kept, fields = select_rows([Columns(["bug", "question", "bug"])], [False] * 3, Reading("tickets.csv"))
    >>> kept, fields["labels"], fields["class_names"]
    ([0, 1, 2], (0, 1, 0), ('bug', 'question'))
    """

    def locate(row: int) -> str:
        for part in splits:
            if row < len(part.labels):
                return part.locate(row)
            row -= len(part.labels)
        raise IndexError(row)

    of_split: list[Split] = []
    if len(splits) > 1:
        of_split = [split for split, part in zip((TRAIN, TEST), splits, strict=True) for _ in part.labels]
    groups = _read_groups(splits, locate)
    if not reading.drop_missing:
        _refuse(is_blank, "no text", locate)
        _refuse([group == "" for group in groups], "no group", locate)
    labels = list(chain.from_iterable(part.labels for part in splits))
    is_unlabeled, finish = _read_labels(labels, splits, reading, locate)
    num_rows = len(labels)
    left_out: dict[str, Sequence[bool]] = {
        "missing": [
            is_blank[row] or is_unlabeled[row] or (groups != [] and groups[row] == "") for row in range(num_rows)
        ]
    }
    if reading.drop_shared_groups:
        if not (groups and of_split):
            raise DataError(
                f"{reading.place}: drop_shared_groups needs groups and a test split; name both, or remove it"
            )
        of_test = {group for group, split in zip(groups, of_split, strict=True) if split == TEST}
        left_out["group of the test split"] = [
            group in of_test and split == TRAIN for group, split in zip(groups, of_split, strict=True)
        ]
    left_out |= reading.dropped
    kept = list(range(num_rows))
    dropped = {}
    for reason, is_dropped in left_out.items():
        remaining = [row for row in kept if not is_dropped[row]]
        dropped[reason] = len(kept) - len(remaining)
        kept = remaining
    remaining_splits = tuple(of_split[row] for row in kept) if of_split else ()
    if not kept or (of_split and len(set(remaining_splits)) < len(splits)):
        raise DataError(f"{reading.place}: no row is left of the data or of one of their splits; add rows")
    details: dict[str, Any] = {"rows_read": num_rows, "dropped": dropped}
    if of_split:
        details["test_rows_read"] = of_split.count(TEST)
    fields = finish(kept, details)
    return kept, {
        **fields,
        "groups": tuple(groups[row] for row in kept) if groups else (),
        "splits": remaining_splits,
        "details": details,
    }


def _refuse(is_missing: Sequence[bool], what: str, locate: Callable[[int], str]) -> None:
    """Refuse rows that miss a value, and name the first one."""
    if any(is_missing):
        rows = [row for row, misses in enumerate(is_missing) if misses]
        raise DataError(
            f"{locate(rows[0])}: {what}; add it to {pluralize(len(rows), 'row')}, or set `drop_missing` to True to "
            "drop such rows"
        )


def _read_groups(splits: Sequence[Columns], locate: Callable[[int], str]) -> list[str]:
    """Return the group of each row, empty if it is missing; an empty list without groups."""
    parts = [part.groups for part in splits if part.groups is not None]
    if parts and len(parts) < len(splits):
        raise DataError(f"only one of {' and '.join(part.name for part in splits)} has groups; give those of both")
    groups = []
    for row, value in enumerate(chain.from_iterable(parts)):
        group = key_of(value)
        if group is None:
            raise DataError(
                f"{locate(row)}: the group {shorten(repr(value), 40)} is {type(value).__name__}, but a group is text "
                "or an integer; store it as one of them, or name another column as `group`"
            )
        groups.append(group)
    return groups


def _read_labels(
    labels: list[Any], splits: Sequence[Columns], reading: Reading, locate: Callable[[int], str]
) -> tuple[Sequence[bool], Finish]:
    """Return whether each row has no label, and a function that reads those of selected rows."""
    if reading.kind == "language_modeling":
        return [False] * len(labels), lambda kept, details: {"kind": "language_modeling"}
    if reading.kind == "regression":
        return _read_targets(labels, reading, locate)
    names = dict.fromkeys(name for part in splits for name in part.code_names or ())
    code_names = tuple(key_of(name) or "" for name in names)
    decoded = list(chain.from_iterable(_decode(part, reading.kind) for part in splits))
    if reading.kind == "generation":
        return _read_references(decoded, reading, locate)
    class_names = _name_codes(reading.class_names, code_names)
    read = _read_classes
    if reading.separator or any(map(is_label_set, labels)):
        read = _read_sets
    return read(decoded, len(splits[0].labels), class_names, reading, locate)


def _decode(part: Columns, kind: str) -> Iterator[Any]:
    """Yield the labels of a split, and the names of codes instead of these."""
    by_code: dict[str | None, str | None] = {str(code): name for code, name in enumerate(part.code_names or ())}
    if by_code and kind == "generation":
        by_code["-1"] = None  # the code of a missing label, which is no reference
    for label in part.labels:
        if by_code and is_label_set(label):
            yield [by_code.get(key_of(code), code) for code in label]
        elif by_code:
            yield by_code.get(key_of(label), label)
        else:
            yield label


def _name_codes(chosen: ClassNames, code_names: Sequence[str]) -> ClassNames:
    """Return the user's names of the classes; lists and numbers are those of the codes."""
    if not code_names or chosen is None:
        return chosen or code_names or None
    if not isinstance(chosen, Mapping):
        return chosen if set(code_names) <= set(chosen) else dict(zip(code_names, chosen, strict=False))
    by_code = {str(code): name for code, name in enumerate(code_names)}
    return {label if label in code_names else by_code.get(label, label): name for label, name in chosen.items()}


def _read_classes(
    labels: Sequence[Any], num_train: int, class_names: ClassNames, reading: Reading, locate: Callable[[int], str]
) -> tuple[Sequence[bool], Finish]:
    keys = []
    for row, label in enumerate(labels):
        key = key_of(label)
        if key is None:
            raise DataError(
                f"{locate(row)}: the label {shorten(repr(label), 40)} is {type(label).__name__}, but a label is text "
                "or an integer; store it as one of them, or name another column as `label`"
            )
        keys.append(key)
    counts = Counter(keys)
    for label in counts:
        refuse_written_list(label, reading.place)
    if class_names is None:
        refuse_joined(counts, reading.place)
    refuse_hidden({*keys[num_train:]}, counts, class_names, reading.other_split)
    missing = {*find_missing(counts, class_names)}
    is_unlabeled = [key in missing for key in keys]
    if missing and not reading.drop_missing:
        refuse_missing(counts, class_names, reading.place, locate(is_unlabeled.index(True)))

    def finish(kept: list[int], details: dict[str, Any]) -> dict[str, Any]:
        found, order = Counter(keys[row] for row in kept), class_names
        if order is None and reading.sorts_texts and all(isinstance(labels[row], str) for row in kept):
            order = sorted(found)
        names, positions = name_classes(found, order, reading.place, lambda label: locate(keys.index(label)))
        return {"labels": tuple(positions[keys[row]] for row in kept), "class_names": names}

    return is_unlabeled, finish


def _check_separator(sets: Sequence[LabelSet], labels: Collection[str], reading: Reading) -> None:
    """Refuse a separator that no row has, and labels that another separator divides into other labels."""
    occurs = any(own and len(own) > 1 for own in sets)
    problem = f"{reading.place}: no row has the `label_separator` {reading.separator!r}"
    for label, other in product(labels, SEPARATORS):
        if other in label and not occurs:
            raise DataError(f"{problem}; set it to {other!r}")
        if not {*labels}.isdisjoint({*split_labels(label, other)} - {label}):
            raise DataError(
                f"{reading.place}: {short_repr(label)} seems to be several labels, but the `label_separator` is "
                f"{reading.separator!r}; write one separator in all rows, or list all labels as `class_names`"
            )
    if not occurs:
        raise DataError(f"{problem}; remove it if each text has one label")


def _read_sets(
    labels: Sequence[Any], num_train: int, class_names: ClassNames, reading: Reading, locate: Callable[[int], str]
) -> tuple[Sequence[bool], Finish]:
    sets = [read_label_set(label, reading.separator, locate(row)) for row, label in enumerate(labels)]
    counts = Counter(label for own in sets for label in own or ())
    if reading.separator and class_names is None:
        _check_separator(sets, counts, reading)
    if num_train < len(sets) and not any(sets[num_train:]):
        refuse_hidden({""}, {""}, None, reading.other_split)
    missing = {*find_missing(counts, class_names)}
    is_unlabeled = [own is None or not missing.isdisjoint(own) for own in sets]
    if any(is_unlabeled) and not reading.drop_missing:
        first = is_unlabeled.index(True)
        if sets[first] is None:
            raise DataError(
                f"{locate(first)}: no labels; store an empty list, an empty text or zeros if it has none, or set "
                "`drop_missing` to True to drop such rows"
            )
        refuse_missing(counts, class_names, reading.place, locate(first))

    def finish(kept: list[int], details: dict[str, Any]) -> dict[str, Any]:
        names, indicators, left_out = name_label_sets([sets[row] for row in kept], class_names, reading.place)
        if left_out:
            details["labels left out"] = ", ".join(left_out)
        return {"labels": indicators, "class_names": names, "kind": "multilabel"}

    return is_unlabeled, finish


def _read_targets(
    labels: Sequence[Any], reading: Reading, locate: Callable[[int], str]
) -> tuple[Sequence[bool], Finish]:
    targets = []
    for row, value in enumerate(labels):
        if key_of(value) == "":
            value = math.nan
        if not isinstance(value, Real) or isinstance(value, bool):
            raise DataError(
                f"{locate(row)}: the label {shorten(repr(value), 40)} is not a number; give numbers to predict"
            )
        targets.append(float(value))
    is_unlabeled = list(map(math.isnan, targets))
    if not reading.drop_missing:
        _refuse(is_unlabeled, "no label", locate)
    return is_unlabeled, lambda kept, _: {"labels": tuple(targets[row] for row in kept), "kind": "regression"}


def _read_references(
    labels: Sequence[Any], reading: Reading, locate: Callable[[int], str]
) -> tuple[Sequence[bool], Finish]:
    references = [read_reference(label, f"{reading.place}, {locate(row)}") for row, label in enumerate(labels)]
    is_unlabeled = [not reference for reference in references]
    if not reading.drop_missing:
        _refuse(is_unlabeled, "no reference", locate)
    return is_unlabeled, lambda kept, _: {"labels": tuple(references[row] for row in kept), "kind": "generation"}
