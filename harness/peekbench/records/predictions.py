"""What analyses see of the predictions of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from peekbench.records.data import BoolArray, IntArray


@dataclass(frozen=True, slots=True)
class Answers:
    """Which test texts the fits of one method classified correctly, in one task at one design point.

    Examples
    --------
    >>> import numpy as np
    >>> is_correct = {"extra": np.array([[True, False]]), "test": np.array([[True, True]])}
    >>> answers = Answers(subsamples=np.array([0]), rows=np.array([[17, 3]]), is_correct=is_correct)
    >>> float(answers.is_correct["test"].mean())
    1.0
    """

    subsamples: IntArray
    """Numbers of the subsamples, ascending: (n_subsamples,)."""
    rows: IntArray
    """Number of each test text in the data of the task: (n_subsamples, n_test). Equal numbers are the same text."""
    is_correct: Mapping[str, BoolArray]
    """Whether each answer is correct, by arm: (n_subsamples, n_test)."""


class Predictions(Protocol):
    """Predictions of a run, read on demand.

    Examples
    --------
    >>> def accuracy(predictions: Predictions, task: str, method: str) -> float:
    ...     answers = predictions.answers(task, method, num_train=50, num_test=200, arms=["test"])
    ...     return float(answers.is_correct["test"].mean())
    """

    def answers(self, task: str, method: str, num_train: int, num_test: int, arms: Sequence[str]) -> Answers:
        """Read the answers of all finished trials of one method in one classification task at one design point.

        Parameters
        ----------
        task, method, num_train, num_test
            Place in the design.
        arms
            Arms to read, such as ('extra', 'test').

        Returns
        -------
        Answers
            Answers of the trials.

        Raises
        ------
        StoreError
            If predictions are missing, or are not those that were stored.
        """
        ...
