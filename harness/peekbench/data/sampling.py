"""Draws train, extra and test rows such that designs of several sizes, and all methods, are paired.

Each subsample number has one seeded permutation of the task's rows. Train rows come from its front: of balanced train
sets class by class, of natural ones in order, except that the first row of each class comes first. Test and extra rows
come alternately from its back, behind every row that the largest train set of the design needs. So a smaller train,
extra or test set is the beginning of a larger one, all sets are disjoint, and extra and test rows are exchangeable.
Therefore the score of the arm `extra` is unbiased. If crossover scoring needs more than two sets, rows come from the
back in turn for each of them. Unlabeled texts that all fits share (`num_unlabeled`) come next.

With folds, the only set is the whole official test split, in another order in each subsample.

If a task has official splits, the front has only rows of its train split, and the back only rows of its test split.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from peekbench.data.preflight import check_sizes, rows_behind, rows_per_class
from peekbench.records.data import Dataset, FloatArray, IntArray
from peekbench.records.trials import Draw, Subsample
from peekbench.seeds import seed_of_subsample
from peekbench.spec.design import Design


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
        self.labels: IntArray | FloatArray = np.asarray(dataset.labels)
        if dataset.kind != "classification":  # stores expect floats
            self.labels = self.labels.astype(np.float64)
        self._num_classes = len(dataset.class_names) if dataset.kind == "classification" else 0
        self._is_test = np.asarray(dataset.splits) == "test" if dataset.splits else None
        self._is_balanced = design.train == "balanced" and self._num_classes > 0
        self._seed, self._task, self._design = seed, task, design
        self._max_train = max(design.num_train)
        self._num_behind = len(self.labels) if design.folds else rows_behind(design)
        self._order = lru_cache(maxsize=4)(self._make_order)

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
            return Subsample(train, (back,), back[:0])
        number = self._design.num_sets
        end = number * draw.num_test
        sets = tuple(back[first:end:number] for first in range(number))
        return Subsample(train, sets, back[end : end + self._design.num_shared(draw.num_test)])

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
        order = train_order = test_order = rng.permutation(len(self.labels))
        if self._is_test is not None:
            is_test = self._is_test[order]
            train_order, test_order = order[~is_test], order[is_test]
        front = self._balanced_front(train_order) if self._is_balanced else self._natural_front(train_order)[None]
        # The front may overlap the back, but takes at most its own size from there.
        backwards = test_order[: -(self._num_behind + front.size) - 1 : -1]
        is_free = np.ones(len(order), dtype=bool)
        is_free[front] = False
        return front, backwards[is_free[backwards]]

    def _natural_front(self, order: IntArray) -> IntArray:
        """Return the first rows, beginning with one of each class.

        If every class occurs among the first m rows, a train set of m rows consists of these rows. Otherwise the rows
        of absent classes replace as many of the last ones.
        """
        first = self._first_of_classes(order, 1).ravel()
        others = order[: self._max_train]
        return np.concatenate([first, others[~np.isin(others, first)]])[: self._max_train]

    def _balanced_front(self, order: IntArray) -> IntArray:
        return self._first_of_classes(order, rows_per_class(self._max_train, self._num_classes))

    def _first_of_classes(self, order: IntArray, needed: int) -> IntArray:
        """Return the first rows of each class, shape (n_classes, needed), searching no further than necessary."""
        if not self._num_classes:
            return order[:0]
        num_searched = 4 * self._max_train
        while True:
            labels = self.labels[order[:num_searched]]
            positions = [np.flatnonzero(labels == label)[:needed] for label in range(self._num_classes)]
            if num_searched >= len(order) or min(map(len, positions)) == needed:
                return np.stack([order[of_class] for of_class in positions])
            num_searched *= 4
