"""Draws train, extra and test rows such that designs of several sizes, and all methods, are paired.

Each subsample number has one seeded permutation of the task's rows. Train rows come from its front: of balanced train
sets class by class, of natural ones in order, except that the first row of each class or label comes first. Test and
extra rows come alternately from its back, behind every row that the largest train set of the design needs. So a smaller
train, extra or test set is the beginning of a larger one, all sets are disjoint, and extra and test rows are
exchangeable. Therefore the score of the arm `extra` is unbiased. If crossover scoring needs more than two sets, rows
come from the back in turn for each of them. Unlabeled texts that all fits share (`num_unlabeled`) come next.

With folds, the test set is the whole official test split, in another order in each subsample. Private extra texts, if
there are any, are a second set, from which texts take the places of a fold.

Every random number of a run comes from the seed of the spec and the names of what it is for. A seed never depends on
the order of work, so any executor and any number of workers give the same numbers.

If a task has official splits, the front has only rows of its train split, and the back only rows of its test split.

If rows have groups, the groups are permuted, and the rows of each follow each other in a random order. Groups with a
row at the front have none at the back. Each further group goes to the set that has the fewest rows, which depends on
earlier groups only, so the sets remain exchangeable. A set uses as many rows of its last group as it needs.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from heapq import heapreplace
from itertools import pairwise
from typing import Any

import numpy as np
from pydantic import ValidationError

from peekbench.data.dataset_checks import check_sizes, rows_behind, rows_per_class
from peekbench.errors import DataError
from peekbench.formatting import pluralize
from peekbench.records.data import BoolArray, Dataset, IntArray
from peekbench.records.trials import Draw, Subsample
from peekbench.spec.arms import split
from peekbench.spec.design import Design


def derive_seed(*parts: object, bits: int = 32) -> int:
    """Hash values to a seed below 2**bits that is the same on every machine and in every process.

    Examples
    --------
    >>> derive_seed(7, "news", 0) == derive_seed(7, "news", 0) != derive_seed(7, "news", 1)
    True
    """
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[: bits // 8], "big")


def seed_of_subsample(seed: int, task: str, subsample: int) -> int:
    """Return the seed that shuffles a task's rows: all methods and sizes share their draws."""
    return derive_seed(seed, task, subsample, bits=128)


def seed_of_fit(seed: int, task: str, num_train: int, num_test: int, subsample: int) -> int:
    """Return the seed of the fits of a trial: it names neither method nor arm, which reduces the noise of effects."""
    return derive_seed(seed, "fit", task, num_train, num_test, subsample)


def group_codes(dataset: Dataset) -> IntArray:
    """Return the number of the group of each row, in the order of their first rows: (n,)."""
    if not dataset.groups:
        return np.arange(len(dataset.labels))
    codes = {group: code for code, group in enumerate(dict.fromkeys(dataset.groups))}
    return np.fromiter(map(codes.__getitem__, dataset.groups), dtype=np.int64)


def label_array(dataset: Dataset) -> Any:
    """Return the labels of all rows as an array of integers, of floats without classes, or of objects in generation."""
    if dataset.kind == "generation":
        return np.fromiter(dataset.labels, dtype=object)
    labels = np.asarray(dataset.labels)
    return labels if dataset.class_names else labels.astype(np.float64)


def check_groups(dataset: Dataset, design: Design, seed: int, task: str) -> None:
    """Refuse a design for which groups run out in some draw.

    Parameters
    ----------
    dataset, design, seed, task
        As for `Sampler`.

    Raises
    ------
    DataError
        If there are too few groups. The message names the largest sets for which they suffice.
    """
    if not dataset.groups:
        return
    sampler = Sampler(dataset, design, seed, task)
    found = f"task {task}: {pluralize(sampler.num_groups, 'group')} of {pluralize(len(dataset.labels), 'row')}"
    if design.folds:
        sizes = Counter(group for group, place in zip(dataset.groups, dataset.splits, strict=True) if place == "test")
        if len(sizes) < 2 * max(design.folds):
            raise DataError(
                f"task {task}: {pluralize(len(sizes), 'group')} in its test split, too few for {max(design.folds)} "
                f"folds; use at most {len(sizes) // 2}"
            )
        largest = sizes.total() // min(design.folds) + max(sizes.values())
        if 0 < len(dataset.extra) < largest:
            raise DataError(
                f"task {task}: {pluralize(len(dataset.extra), 'extra text')}, but folds of whole groups have up to "
                f"{largest:,} texts, whose place they take; add some, or use more folds"
            )
        return
    for label, name in enumerate(dataset.class_names):
        rows = sampler.has_class(label, np.arange(len(dataset.labels)))
        if not dataset.splits and len({*sampler.groups[rows].tolist()}) == 1:
            raise DataError(
                f"{found}; all rows of the class {name!r} are of one group, which every train set needs, so no "
                "test set would have the class; merge it with another one, or name another column of groups"
            )
    for num_test in design.num_test:
        largest = sampler.largest_set(num_test)
        if largest < num_test:
            remedy = "lower num_train, or name a column with smaller groups"
            if largest:
                remedy = f"use num_test of at most {largest}, lower num_train, or name a column with smaller groups"
            raise DataError(
                f"{found}; no group is in two sets, so beside train sets of {max(design.num_train)} they suffice for "
                f"{design.num_sets} sets of {largest} in all of {pluralize(design.repeats(num_test), 'subsample')}, "
                f"not of num_test {num_test}; {remedy}"
            )


def largest_set(dataset: Dataset, parts: Mapping[str, Any], seed: int, task: str) -> int:
    """Return the largest size of sets, at most that of a design, for which groups suffice in all of its draws.

    Parameters
    ----------
    dataset, seed, task
        As for `Sampler`.
    parts
        Keys of the design, with one `num_test`, which is returned if they are invalid.
    """
    num_test: int = parts["num_test"]
    try:
        design = Design.model_validate(parts)
    except ValidationError:  # which the validation of the spec reports
        return num_test
    return max(1, Sampler(dataset, design, seed, task).largest_set(num_test))


def deal_groups(rows: IntArray, groups: IntArray, number: int, size: int) -> tuple[list[IntArray], IntArray]:
    """Deal whole groups, each to the set that has the fewest rows, until every set has enough or no group is left.

    Parameters
    ----------
    rows
        Rows; those of a group follow each other.
    groups
        Number of the group of each of them.
    number
        Number of sets.
    size
        Number of rows that each set needs.

    Returns
    -------
    tuple
        The rows of each set, and the rows that are left.

    Examples
    --------
    >>> sets, rest = deal_groups(np.array([11, 12, 13, 14, 15, 16, 17]), np.array([3, 3, 3, 0, 2, 2, 1]), 2, 3)
    >>> [rows.tolist() for rows in sets], rest.tolist()
    ([[11, 12, 13], [14, 15, 16]], [17])
    """
    dealt: list[list[IntArray]] = [[rows[:0]] for _ in range(number)]
    filled = [(0, position) for position in range(number)]  # a heap
    start = 0
    for end in (*(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(rows)):
        num_rows, fewest = filled[0]
        if num_rows >= size:
            break
        dealt[fewest].append(rows[start:end])
        heapreplace(filled, (num_rows + end - start, fewest))
        start = end
    return [np.concatenate(of_set) for of_set in dealt], rows[start:]


class Sampler:
    """Draws from one task's rows for every point of one design.

    Parameters
    ----------
    dataset
        All rows of the task.
    design
        Its largest sizes determine where train and test rows come from.
    seed
        Seed of the spec.
    task
        Name of the task.

    Raises
    ------
    DataError
        If the task has too few rows for the design.
    """

    def __init__(self, dataset: Dataset, design: Design, seed: int, task: str) -> None:
        check_sizes(dataset, design, task)
        self.labels = label_array(dataset)
        self._num_classes = len(dataset.class_names)
        self._is_test = np.asarray(dataset.splits) == "test" if dataset.splits else None
        self._is_balanced = design.train == "balanced" and dataset.kind == "classification"
        self.groups = group_codes(dataset)
        self._has_groups = len(dataset.groups) > 0
        self.num_groups = int(self.groups.max()) + 1
        self._seed, self._task, self._design = seed, task, design
        self._max_train = max(design.num_train)
        self._num_extra = len(dataset.extra)
        self._num_behind = rows_behind(design)
        if design.folds or self._has_groups:
            self._num_behind = len(self.labels)
        self._order = lru_cache(maxsize=4)(self._make_order)

    def has_class(self, label: int, rows: IntArray) -> BoolArray:
        """Return whether each row has a class, or a label of a multi-label task."""
        has_class: BoolArray = self.labels[rows] == label
        if self.labels.ndim == 2:
            has_class = self.labels[rows, label] == 1
        return has_class

    def draw(self, draw: Draw) -> Subsample:
        """Return the row numbers of one draw.

        Returns
        -------
        Subsample
            Train rows of shape (floor(num_train / n_classes) * n_classes,) if they are balanced, otherwise
            (num_train,); the rows of each set of shape (num_test,); shared rows of shape (num_unlabeled - num_test,).
        """
        front, back = self._order(draw.subsample)
        if self._is_balanced:
            train = front[:, : rows_per_class(draw.num_train, self._num_classes)].T.ravel()
        else:
            train = front[0, : draw.num_train]
        if self._design.folds:
            return self._divide(train, back, self._order_extra(draw.subsample), self._design.num_folds(draw.num_test))
        sets, rest = self._deal(back, draw.num_test)
        return Subsample(train, sets, rest[: self._design.num_shared(draw.num_test)])

    def _deal(self, back: IntArray, num_test: int) -> tuple[tuple[IntArray, ...], IntArray]:
        """Return the sets and the rows after them. Sets are smaller if there are too few groups."""
        number = self._design.num_sets
        if not self._has_groups:
            end = number * num_test
            return tuple(back[first:end:number] for first in range(number)), back[end:]
        dealt, rest = deal_groups(back, self.groups[back], number, num_test)
        return tuple(rows[:num_test] for rows in dealt), rest

    def _divide(self, train: IntArray, rows: IntArray, extra: IntArray, number: int) -> Subsample:
        """Return a draw whose test set is divided into folds, of whole groups if there are any.

        Extra texts are the second set. They are repeated if they are fewer, but no fold needs all of them.
        """
        folds = [rows[start:stop] for start, stop in split(len(rows), number)]
        if self._has_groups:
            folds, _ = deal_groups(rows, self.groups[rows], number, len(rows))
        ends = np.cumsum([0, *map(len, folds)]).tolist()
        sets = [np.concatenate(folds)]
        if len(extra):
            sets.append(np.resize(extra, len(rows)))
        return Subsample(train, tuple(sets), rows[:0], tuple(pairwise(ends)))

    def largest_set(self, num_test: int) -> int:
        """Return the largest size of sets, at most `num_test`, for which all draws of the design have enough groups."""
        for subsample in range(self._design.repeats(num_test)):
            _, back = self._order(subsample)
            if not self._suffices(back, num_test):
                sizes = range(1, num_test)
                num_test = bisect_left(sizes, True, key=lambda size: not self._suffices(back, size))
        return num_test

    def _suffices(self, back: IntArray, num_test: int) -> bool:
        sets, rest = self._deal(back, num_test)
        return min(map(len, sets)) == num_test and len(rest) >= self._design.num_shared(num_test)

    def _make_order(self, subsample: int) -> tuple[IntArray, IntArray]:
        """Return candidates for train and for test and extra.

        Returns
        -------
        front
            Shape (n_classes, n_per_class) if train sets are balanced, otherwise (1, n_train).
        back
            Shape (n_rest,).
        """
        rng = np.random.default_rng(seed_of_subsample(self._seed, self._task, subsample))
        order = rng.permutation(len(self.labels))
        if self._has_groups:
            rank = rng.permutation(self.num_groups)
            order = order[np.argsort(rank[self.groups[order]], kind="stable")]
        train_order = test_order = order
        if self._is_test is not None:
            is_test = self._is_test[order]
            train_order, test_order = order[~is_test], order[is_test]
        if self._is_balanced:
            front = self._first_of_classes(train_order, rows_per_class(self._max_train, self._num_classes))
        else:
            front = self._natural_front(train_order)[None]
        # The front may overlap the back, but takes at most its own size from there.
        backwards = test_order[: -(self._num_behind + front.size) - 1 : -1]
        is_free = np.ones(self.num_groups, dtype=bool)
        is_free[self.groups[front]] = False
        return front, backwards[is_free[self.groups[backwards]]]

    def _order_extra(self, subsample: int) -> IntArray:
        """Return the rows of private extra texts in an order of the subsample."""
        rng = np.random.default_rng(seed_of_subsample(self._seed, f"{self._task} extra", subsample))
        return len(self.labels) + rng.permutation(self._num_extra)

    def _natural_front(self, order: IntArray) -> IntArray:
        """Return the first rows, beginning with one of each class or label, which one row can have several of.

        If every class occurs among the first m rows, a train set of m rows consists of these rows. Otherwise the rows
        of absent classes replace as many of the last ones.
        """
        first = self._first_of_classes(order, 1).ravel()
        rows = np.concatenate([first, order[: self._max_train]])
        _, positions = np.unique(rows, return_index=True)
        return rows[np.sort(positions)][: self._max_train]

    def _first_of_classes(self, order: IntArray, needed: int) -> IntArray:
        """Return the first rows of each class, shape (n_classes, needed), searching no further than necessary."""
        if not self._num_classes:
            return order[:0]
        num_searched = 4 * self._max_train
        while True:
            searched = order[:num_searched]
            positions = [np.flatnonzero(self.has_class(label, searched))[:needed] for label in range(self._num_classes)]
            if num_searched >= len(order) or min(map(len, positions)) == needed:
                return np.stack([order[of_class] for of_class in positions])
            num_searched *= 4
