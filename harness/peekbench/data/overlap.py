"""Finds copies of rows once per task: test rows that are also train rows, and rows that sets of one subsample share.

Texts are equal if `peekbench.identity` normalizes them to the same text, features if all values are equal. Near
duplicates are those of `peekbench.data.texts`. Searching for equal rows takes linear time, so data of any size are
searched. Near duplicates are searched for in data of at most `MAX_CHARACTERS`, which takes about a second per 10,000
texts of 200 characters.

A test text that a fit was trained on says nothing about new texts. One that is also an extra text contaminates both
arms, which hides the bias that peekbench measures.

Rows of features can be equal by chance, such as in tables with few categories. Those of official splits count as copies
only if test rows equal train rows more often than train rows equal each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from peekbench.data.loading import fingerprint
from peekbench.errors import DataError
from peekbench.identity import normalize
from peekbench.records.data import Dataset

MAX_CHARACTERS = 5_000_000
"""Characters of all texts in which near duplicates are searched for."""
MAX_EXCESS = 0.05
"""Share of test rows of features that equal train rows, minus the share of train rows that equal each other, at which
the splits overlap by more than chance."""
MAX_EXAMPLES = 5
PAIRS = ("test-train", "test-test", "train-train", "test-extra", "extra-test", "extra-train", "all-all")

_found: dict[tuple[str, str], dict[str, Any]] = {}


def find_copies(dataset: Dataset) -> dict[str, Any]:
    """Return facts about the copies among the rows of a task, which are computed once in a process.

    Parameters
    ----------
    dataset
        All rows.

    Returns
    -------
    dict
        `likeness`: 'near' if near duplicates count as copies, otherwise 'exact'.
        `rows`: number of rows by place: the official splits 'train' and 'test', or 'all' without these; 'extra' for
        private extra texts.
        `pairs`: by a pair of places such as 'test-train', the number of rows of the first place that have an equal row
        in the second, and with near duplicates. Pairs without copies are left out.
        `test_rows`: the test rows that are also train rows, as ranges of row numbers from 0: first, and last plus 1.
        `drawn`: number of rows that test and extra sets are drawn from; copies within a group count once.
        `sizes`: number of these rows that are copies of each other, with the number of such texts.
        `conflicting`: number of texts whose copies have different labels.
        `examples`: the first two rows of the first texts with copies.

    Examples
    --------
    >>> splits = ["train", "train", "test", "test"]
    >>> copies = find_copies(Dataset(["a", "b", "B ", "c"], [0, 1, 1, 0], ("x", "y"), splits=splits))
    >>> copies["pairs"], copies["test_rows"]
    ({'test-train': [1, 1]}, [[2, 3]])
    """
    key = (dataset.kind, fingerprint(dataset))
    if key not in _found:
        _found[key] = _find(dataset)
    return _found[key]


def _find(dataset: Dataset) -> dict[str, Any]:
    places = ["all"] * len(dataset.labels)
    if dataset.splits:
        places = list(dataset.splits)
    places += ["extra"] * len(dataset.extra)
    keys = _row_keys(dataset)
    equal = _number(keys)
    groups, likeness = equal, "exact"
    if dataset.input_kind == "texts" and sum(map(len, keys)) <= MAX_CHARACTERS:
        groups, likeness = _number_near(keys, dataset), "near"
    rows = Counter(places)
    pairs = {}
    for pair in PAIRS:
        counts = [len(_rows_with_copies(numbers, places, pair)) for numbers in (equal, groups)]
        if counts[1]:
            pairs[pair] = counts
    test_rows = _rows_with_copies(groups, places, "test-train")
    if dataset.input_kind == "features" and test_rows and not _are_same(groups, places):
        by_chance = pairs.get("train-train", [0, 0])[1] / rows["train"]
        if len(test_rows) / rows["test"] <= by_chance + MAX_EXCESS:
            test_rows = []
    drawn = [row for row, place in enumerate(places) if place in ("test", "all")]
    sizes = Counter(Counter(_without_groups(groups, drawn, dataset)).values())
    conflicting, examples = _compare_labels(groups, dataset)
    return {
        "likeness": likeness,
        "rows": dict(rows),
        "pairs": pairs,
        "test_rows": _as_ranges(test_rows),
        "drawn": sum(size * number for size, number in sizes.items()),
        "sizes": sorted([size, number] for size, number in sizes.items() if size > 1),
        "conflicting": conflicting,
        "examples": examples,
    }


def drop_copies(dataset: Dataset, likeness: str) -> Dataset:
    """Return the first row of each group of copies, or none if their labels differ; and new private extra rows.

    Train rows that are also in the official test split are removed, so that this split keeps all of its texts.

    Parameters
    ----------
    dataset
        All rows. Those of features have no near duplicates.
    likeness
        'none' to keep all rows, 'exact', or 'near' if near duplicates count as copies.

    Examples
    --------
    >>> drop_copies(Dataset(["a", "b", "A"], [0, 1, 0], ("x", "y")), "exact").inputs
    ('a', 'b')
    """
    details = {**dataset.details, "dropped": {**dataset.details.get("dropped", {}), "duplicate": 0}}
    if likeness == "none":
        return replace(dataset, details=details)
    keys = _row_keys(dataset)
    groups = _number(keys)
    if likeness == "near" and dataset.input_kind == "texts":
        groups = _number_near(keys, dataset)
    labels = _plain_labels(dataset)
    tested = {group for group, split in zip(groups, dataset.splits, strict=False) if split == "test"}
    first_rows: dict[int, int] = {}
    conflicting = set()
    for row, group in enumerate(groups):
        if group in tested and dataset.splits[row : row + 1] == ("train",):
            continue
        earliest = first_rows.setdefault(group, row)
        if row < len(labels) and labels[row] != labels[earliest]:
            conflicting.add(group)
    first = [row for group, row in first_rows.items() if group not in conflicting]
    kept = [row for row in first if row < len(labels)]
    extra = [row - len(labels) for row in first if row >= len(labels)]
    details["dropped"]["duplicate"] = len(groups) - len(first)
    rows = {field: take_rows(getattr(dataset, field), kept) for field in ("inputs", "labels", "splits", "groups")}
    return replace(dataset, **rows, extra=take_rows(dataset.extra, extra), details=details)


def _plain_labels(dataset: Dataset) -> list[Any]:
    """Return values that are equal for equal labels; those of language modeling are no labels."""
    if dataset.kind == "language_modeling":
        return [0] * len(dataset.labels)
    labels: Any = dataset.labels
    return labels.tolist() if hasattr(labels, "tolist") else list(labels)


def take_rows(values: Any, rows: Sequence[int]) -> Any:
    """Return some rows of a data frame, an array or a sequence; all of an empty sequence."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if isinstance(values, Sequence):
        return tuple(values[row] for row in rows if values)
    return values[rows]


def _row_keys(dataset: Dataset) -> list[Any]:
    """Return a value for each row and each private extra row, which is the same for equal rows."""
    keys: list[Any] = []
    part: Any
    for part in (dataset.inputs, dataset.extra):
        if hasattr(part, "iloc"):
            import pandas as pd  # noqa: PLC0415 - only the data of an estimator are a data frame

            keys += pd.util.hash_pandas_object(part, index=False, categorize=False).tolist()
        elif isinstance(part, Sequence):
            keys += map(normalize, part)
        else:
            keys += (row.tobytes() for row in part + 0.0)  # -0.0 becomes 0.0
    return keys


def _number(keys: Sequence[Hashable]) -> list[int]:
    """Return for each key the position of the first equal one."""
    first: dict[Hashable, int] = {}
    return [first.setdefault(key, row) for row, key in enumerate(keys)]


def _number_near(texts: Sequence[Any], dataset: Dataset) -> list[int]:
    """Return for each text the position of the first one of its group of near duplicates."""
    from peekbench.data.texts import group_duplicates  # noqa: PLC0415 - it imports numpy

    references: list[Any] | None = None
    if dataset.kind == "generation":
        references = [None] * len(texts)  # private extra prompts have none, so only numbers are compared
        if not len(dataset.extra):
            references = list(dataset.labels)
    groups: list[int] = group_duplicates(texts, "near", references).tolist()
    return groups


def _rows_with_copies(groups: Sequence[int], places: Sequence[str], pair: str) -> list[int]:
    """Return the rows of the first place of a pair that have a copy in the second place."""
    first, second = pair.split("-")
    counts = Counter(group for group, place in zip(groups, places, strict=True) if place == second)
    needed = 1
    if first == second:  # a row is no copy of itself
        needed = 2
    rows = enumerate(zip(groups, places, strict=True))
    return [row for row, (group, place) in rows if place == first and counts[group] >= needed]


def _are_same(groups: Sequence[int], places: Sequence[str]) -> bool:
    """Return whether both official splits have the same rows."""
    train, test = (
        Counter(group for group, place in zip(groups, places, strict=True) if place == split)
        for split in ("train", "test")
    )
    return train == test


def _without_groups(groups: Sequence[int], drawn: Sequence[int], dataset: Dataset) -> list[int]:
    """Return the texts of rows that sets are drawn from, once for each group, as a group is never in two sets."""
    if not dataset.groups:
        return [groups[row] for row in drawn]
    return [text for text, _ in dict.fromkeys((groups[row], dataset.groups[row]) for row in drawn)]


def _as_ranges(rows: Sequence[int]) -> list[list[int]]:
    """Return ascending rows as ranges."""
    ranges: list[list[int]] = []
    for row in rows:
        if ranges and ranges[-1][1] == row:
            ranges[-1][1] = row + 1
        else:
            ranges.append([row, row + 1])
    return ranges


def _compare_labels(groups: Sequence[int], dataset: Dataset) -> tuple[int, list[list[int]]]:
    """Return the number of texts whose copies have different labels, and the first two rows of the first texts."""
    labels = _plain_labels(dataset)
    second: dict[int, int] = {}
    conflicting = set()
    for row, label in enumerate(labels):
        earliest = groups[row]
        if row != earliest:
            second.setdefault(earliest, row)
            if label != labels[earliest]:
                conflicting.add(earliest)
    return len(conflicting), [list(pair) for pair in sorted(second.items())[:MAX_EXAMPLES]]


def check_copies(dataset: Dataset, task: str) -> None:
    """Refuse official splits of which no test row is new, and private extra rows that are all test rows.

    Raises
    ------
    DataError
        If there are such rows.
    """
    copies = find_copies(dataset)
    noun = name_rows(dataset)
    rows, pairs = copies["rows"], copies["pairs"]
    if rows.get("test") and count_copied(copies) == rows["test"]:
        raise DataError(
            f"task {task}: all {rows['test']:,} test {noun} are also train {noun}, so no score on them is one on new "
            f"{noun}; give a test split of other {noun}, or one data set without splits, from which disjoint sets are "
            "drawn"
        )
    if rows.get("extra") and pairs.get("extra-test", [0, 0])[1] == rows["extra"]:
        raise DataError(
            f"task {task}: all {rows['extra']:,} extra {noun} are also test {noun}, so both arms adapt to the test "
            f"set; give extra {noun} that are not in the test set, or none"
        )


def name_rows(dataset: Dataset) -> str:
    """Return the name of the rows of a task in messages: 'texts', 'prompts' or 'rows'."""
    if dataset.input_kind == "features":
        return "rows"
    return {"generation": "prompts"}.get(dataset.kind, "texts")


def count_copied(copies: Mapping[str, Any]) -> int:
    """Return the number of test rows that are also train rows.

    Parameters
    ----------
    copies
        As `find_copies` returns them.
    """
    return sum(stop - start for start, stop in copies["test_rows"])


def count_in_words(copies: Mapping[str, Any], number: int, pair: str) -> str:
    """Return a number of copied rows, of how many, and how many are near copies.

    Parameters
    ----------
    copies
        As `find_copies` returns them.
    number
        Number of rows.
    pair
        Pair of places, such as 'test-train'.

    Examples
    --------
    >>> count_in_words({"rows": {"test": 400}, "pairs": {"test-train": [0, 44]}}, 44, "test-train")
    '44 of 400 (44 near copies, none exact)'
    """
    equal, near = copies["pairs"].get(pair, (0, 0))
    kinds = "all exact copies"
    if near > equal:
        kinds = f"{near - equal:,} near copies, {equal or 'none'} exact"
    return f"{number:,} of {copies['rows'][pair.partition('-')[0]]:,} ({kinds})"


def count_repeated(copies: Mapping[str, Any]) -> int:
    """Return the number of rows that test and extra sets are drawn from and that are copies of each other.

    Parameters
    ----------
    copies
        As `find_copies` returns them.
    """
    return sum(size * number for size, number in copies["sizes"])


def expected_share(copies: Mapping[str, Any], num_drawn: int) -> float:
    """Return the expected share of test rows that have a copy among other rows of a subsample.

    If n of N rows are drawn, a test row with c - 1 further copies has one among them with a probability of about
    1 - (1 - n / (N - 1))**(c - 1).

    Parameters
    ----------
    copies
        As `find_copies` returns them.
    num_drawn
        Number of the other rows.

    Examples
    --------
    >>> dataset = Dataset(["a", "a", "b", "c"], [0, 1, 0, 1], ("x", "y"))
    >>> round(expected_share(find_copies(dataset), 1), 3)
    0.167
    """
    missed = max(0.0, 1 - num_drawn / max(1, copies["drawn"] - 1))
    num_met: float = sum(number * size * (1 - missed ** (size - 1)) for size, number in copies["sizes"])
    return num_met / max(1, int(copies["drawn"]))
