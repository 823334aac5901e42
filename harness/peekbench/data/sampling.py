"""Draws train, extra and test rows so that designs of several sizes, and all methods, are paired.

One seeded permutation of a task's rows belongs to each subsample number. Train rows are taken from its front, class by
class; test and extra rows alternately from its back, past every row that the design's largest train set needs. So a
smaller train, extra or test set is the beginning of a larger one, the three are disjoint, and extra and test rows are
exchangeable, which is what makes acc_extra an unbiased score.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING

from peekbench.data.loading import class_counts
from peekbench.errors import DataError
from peekbench.formatting import pluralize
from peekbench.records.data import Dataset, IntArray
from peekbench.records.trials import Draw, Subsample

if TYPE_CHECKING:
    from peekbench.spec.design import Design


def derive_seed(*parts: object, bits: int = 32) -> int:
    """Hash `parts` to an integer below 2**bits; the same on every machine and in every process."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[: bits // 8], "big")


def per_class(num_train: int, num_classes: int) -> int:
    """Train rows of each class."""
    return num_train // num_classes


def check_sizes(dataset: Dataset, design: Design, task: str) -> None:
    """Refuse a design for which there are too few rows.

    Raises
    ------
    DataError
        Naming the task, the class and the count.
    """
    num_train, num_test = max(design.num_train), max(design.num_test)
    num_rows = len(dataset.labels)
    if dataset.kind == "classification":
        smallest, num_classes = min(design.num_train), len(dataset.class_names)
        if smallest < num_classes:
            raise DataError(
                f"task {task}: num_train {smallest} is below its {num_classes} classes, so no train set can hold "
                f"every class; use num_train of at least {num_classes}"
            )
        wanted = per_class(num_train, num_classes)
        counts = class_counts(dataset)
        for label, class_name in enumerate(dataset.class_names):
            if counts.get(label, 0) < wanted:
                raise DataError(
                    f"task {task}, class {class_name!r}: {pluralize(counts.get(label, 0), 'row')}, but "
                    f"num_train {num_train} takes {wanted} of each of its {num_classes} classes; lower num_train "
                    "or leave the class out"
                )
        num_train = wanted * num_classes
    if num_rows < num_train + 2 * num_test:
        raise DataError(
            f"task {task}: {pluralize(num_rows, 'row')}, but num_train {num_train} + 2 x num_test {num_test} = "
            f"{num_train + 2 * num_test} are needed; lower num_test or num_train"
        )


class Sampler:
    """Draws from one task's rows for every point of one design."""

    def __init__(self, dataset: Dataset, design: Design, seed: int, task: str) -> None:
        import numpy as np

        check_sizes(dataset, design, task)
        self.labels = np.asarray(dataset.labels)
        self._num_classes = len(dataset.class_names) if dataset.kind == "classification" else 0
        self._seed, self._task = seed, task
        self._largest, self._largest_test = max(design.num_train), max(design.num_test)
        self._order = lru_cache(maxsize=4)(self._make_order)

    def draw(self, draw: Draw) -> Subsample:
        """Rows of one draw: train of shape (floor(num_train / C) * C,), extra and test of shape (num_test,)."""
        front, back = self._order(draw.subsample)
        if self._num_classes:
            train = front[:, : per_class(draw.num_train, self._num_classes)].T.ravel()
        else:
            train = front[0, : draw.num_train]
        return Subsample(train, extra=back[1 : 2 * draw.num_test : 2], test=back[0 : 2 * draw.num_test : 2])

    def _make_order(self, subsample: int) -> tuple[IntArray, IntArray]:
        """Candidates for train, of shape (C, most of each class), and for test and extra, of shape (n_rest,)."""
        import numpy as np

        rng = np.random.default_rng(derive_seed(self._seed, self._task, subsample, bits=128))
        order = rng.permutation(len(self.labels))
        front = self._front(order) if self._num_classes else order[None, : self._largest].copy()
        # The front may reach into the back, but takes no more than its own size from there.
        backwards = order[: -(2 * self._largest_test + front.size) - 1 : -1]
        is_free = np.ones(len(order), dtype=bool)
        is_free[front] = False
        return front, backwards[is_free[backwards]]

    def _front(self, order: IntArray) -> IntArray:
        """The first rows of each class, looked for no further than it takes."""
        import numpy as np

        wanted = per_class(self._largest, self._num_classes)
        looked_at = 4 * self._largest
        while True:
            labels = self.labels[order[:looked_at]]
            found = [np.flatnonzero(labels == label)[:wanted] for label in range(self._num_classes)]
            if looked_at >= len(order) or min(map(len, found)) == wanted:
                return np.stack([order[places] for places in found])
            looked_at *= 4
