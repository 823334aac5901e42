"""What analyses see of the answers to single test texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from peekbench.records.data import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Answers:
    """Scores of the answers of one method to single test texts, in one task at one design point.

    Examples
    --------
    >>> import numpy as np
    >>> scores = {"extra": np.array([[1.0, 0.0]]), "test": np.array([[1.0, 1.0]])}
    >>> answers = Answers(subsamples=np.array([0]), rows=np.array([[17, 3]]), scores=scores)
    >>> float(answers.scores["test"].mean())
    1.0
    """

    subsamples: IntArray
    """Numbers of the subsamples, ascending: (n_subsamples,)."""
    rows: IntArray
    """Number of each test text: (n_subsamples, n_texts). Equal numbers are the same text."""
    scores: Mapping[str, FloatArray]
    """Score of each answer, by arm: (n_subsamples, n_texts). That of a class is 1 if it is correct, otherwise 0; tables
    can have other scores, such as F1. The mean over texts is the score of the subsample."""
    labels: IntArray | None = None
    """True class of each text: (n_subsamples, n_texts); None if it is unknown."""


class Predictions(Protocol):
    """Answers to the test texts of a run or of a table with rows of texts, read on demand.

    Examples
    --------
    >>> def accuracy(predictions: Predictions, task: str, method: str) -> float:
    ...     answers = predictions.answers(task, method, num_train=50, num_test=200, arms=["test"])
    ...     return float(answers.scores["test"].mean())
    """

    def answers(
        self, task: str, method: str, num_train: int | None, num_test: int | None, arms: Sequence[str], model: str = ""
    ) -> Answers | None:
        """Read the answers of all finished trials of one method in one task at one design point.

        Parameters
        ----------
        task, method, num_train, num_test
            Place in the design; None for sizes that a table does not have.
        arms
            Arms to read, such as ('extra', 'test').
        model
            Model, which distinguishes configurations of tables; the methods of a run have one each.

        Returns
        -------
        Answers or None
            Answers of the trials; None if the score of the task is not a mean over texts, such as R^2.

        Raises
        ------
        StoreError
            If predictions are missing, or are not those that were stored.
        """
        ...
