"""Draws train, extra and test rows such that designs of several sizes, and all methods, are paired.

Each subsample number has one seeded permutation of the task's rows. Train rows come from its front, class by class.
Test and extra rows come alternately from its back, behind every row that the largest train set of the design needs. So
a smaller train, extra or test set is the beginning of a larger one, the three sets are disjoint, and extra and test
rows are exchangeable. Therefore the score of the arm `extra` is unbiased.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np

from peekbench.data.preflight import check_sizes, rows_per_class
from peekbench.records.data import Dataset, IntArray
from peekbench.records.trials import Draw, Subsample
from peekbench.spec.design import Design


def derive_seed(*parts: object, bits: int = 32) -> int:
    """Hash values to a seed that is the same on every machine and in every process.

    Parameters
    ----------
    *parts
        Values whose texts identify the seed.
    bits
        The seed is below 2**bits.

    Examples
    --------
    >>> derive_seed(7, "news", 0) == derive_seed(7, "news", 0) != derive_seed(7, "news", 1)
    True
    """
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[: bits // 8], "big")


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
        self.labels = np.asarray(dataset.labels)
        self._num_classes = len(dataset.class_names) if dataset.kind == "classification" else 0
        self._seed, self._task = seed, task
        self._max_train, self._max_test = max(design.num_train), max(design.num_test)
        self._order = lru_cache(maxsize=4)(self._make_order)

    def draw(self, draw: Draw) -> Subsample:
        """Return the row numbers of one draw.

        Returns
        -------
        Subsample
            Train rows of shape (floor(num_train / n_classes) * n_classes,), or (num_train,) for regression; extra and
            test rows of shape (num_test,).
        """
        front, back = self._order(draw.subsample)
        if self._num_classes:
            train = front[:, : rows_per_class(draw.num_train, self._num_classes)].T.ravel()
        else:
            train = front[0, : draw.num_train]
        return Subsample(train, extra=back[1 : 2 * draw.num_test : 2], test=back[0 : 2 * draw.num_test : 2])

    def _make_order(self, subsample: int) -> tuple[IntArray, IntArray]:
        """Return candidates for train, shape (n_classes, n_per_class), and for test and extra, shape (n_rest,)."""
        rng = np.random.default_rng(derive_seed(self._seed, self._task, subsample, bits=128))
        order = rng.permutation(len(self.labels))
        front = self._front(order) if self._num_classes else order[None, : self._max_train].copy()
        # The front may overlap the back, but takes at most its own size from there.
        backwards = order[: -(2 * self._max_test + front.size) - 1 : -1]
        is_free = np.ones(len(order), dtype=bool)
        is_free[front] = False
        return front, backwards[is_free[backwards]]

    def _front(self, order: IntArray) -> IntArray:
        """Return the first rows of each class, searching no further than necessary."""
        needed = rows_per_class(self._max_train, self._num_classes)
        num_searched = 4 * self._max_train
        while True:
            labels = self.labels[order[:num_searched]]
            positions = [np.flatnonzero(labels == label)[:needed] for label in range(self._num_classes)]
            if num_searched >= len(order) or min(map(len, positions)) == needed:
                return np.stack([order[of_class] for of_class in positions])
            num_searched *= 4
