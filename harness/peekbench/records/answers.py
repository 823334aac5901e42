"""Answers of predictions to single texts, and whether they are right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peekbench.lazy import LazyModule
from peekbench.records.data import BoolArray, FloatArray, IntArray, TaskKind

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")  # reading a spec needs the names of the scores, and must not import numpy

THRESHOLD = 0.5
"""A text is given the labels of a multi-label task whose probability is greater."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """What a model predicts for inputs: the labels that it chooses, and the numbers that other scores need.

    Examples
    --------
    >>> cautious = Predicted(np.array([[0.6, 0.4], [0.3, 0.7]]), np.array([0, 0]))  # a threshold of 0.75
    >>> find_correct(cautious, np.array([0, 1])).tolist()
    [True, False]
    """

    numbers: FloatArray
    """Probabilities of classes, (n, n_classes), or of labels, (n, n_labels); (n,) for other kinds of tasks: targets,
    logarithms of the probabilities of texts, or grades."""
    labels: IntArray | None = None
    """Classes, (n,), or 0 and 1, (n, n_labels), as the model itself predicts them; None if it gives only probabilities:
    then the class of the highest one, or labels above `THRESHOLD`."""

    def __len__(self) -> int:
        """Return the number of inputs."""
        return len(self.numbers)

    def __getitem__(self, rows: slice | BoolArray) -> Predicted:
        """Return the predictions for some inputs."""
        if self.labels is None:
            return Predicted(self.numbers[rows])
        return Predicted(self.numbers[rows], self.labels[rows])

    def by_fit(self, num_texts: int) -> Predicted:
        """Return predictions of several fits for the same texts, one fit after another, with a first axis of fits."""
        numbers = self.numbers.reshape(-1, num_texts, *self.numbers.shape[1:])
        if self.labels is None:
            return Predicted(numbers)
        return Predicted(numbers, self.labels.reshape(-1, num_texts, *self.labels.shape[1:]))


def join_predicted(parts: Sequence[Predicted]) -> Predicted:
    """Return predictions of consecutive parts of the inputs, all of which have labels or none has, as one."""
    numbers = np.concatenate([part.numbers for part in parts])
    labels = [part.labels for part in parts if part.labels is not None]
    if not labels:
        return Predicted(numbers)
    return Predicted(numbers, np.concatenate(labels))


def find_answers(predicted: Predicted, labels: IntArray | FloatArray) -> IntArray:
    """Return the labels that a model chose; see `Predicted`.

    Parameters
    ----------
    predicted
        Predictions of shape (..., n_texts) and, of numbers, another axis of classes or labels.
    labels
        Class indices, (n_texts,), or 0 and 1, (n_texts, n_labels).

    Returns
    -------
    numpy.ndarray
        Class indices, (..., n_texts), or 0 and 1, (..., n_texts, n_labels).

    Examples
    --------
    >>> find_answers(Predicted(np.array([[0.8, 0.7], [0.3, 0.4]])), np.array([[1, 0], [0, 0]])).tolist()
    [[1, 1], [0, 0]]
    """
    if predicted.labels is not None:
        return predicted.labels
    if labels.ndim == 2:
        return (predicted.numbers > THRESHOLD).astype(np.int64)
    answers: IntArray = predicted.numbers.argmax(axis=-1)
    return answers


def find_correct(predicted: Predicted, labels: IntArray | FloatArray) -> BoolArray:
    """Return whether the answer to each text is its class or, in a multi-label task, exactly its labels.

    Parameters
    ----------
    predicted, labels
        As for `find_answers`.

    Returns
    -------
    numpy.ndarray
        Shape (..., n_texts).

    Examples
    --------
    >>> find_correct(Predicted(np.array([[0.8, 0.7], [0.3, 0.4]])), np.array([[1, 0], [0, 0]])).tolist()
    [False, True]
    """
    agrees: BoolArray = find_answers(predicted, labels) == labels
    if labels.ndim == 2:
        agrees = np.logical_and.reduce(agrees, axis=-1)
    return agrees


GRADED = frozenset[TaskKind]({"classification", "multilabel", "generation"})
"""Kinds of tasks whose score is the mean over single answers."""


def find_grades(kind: TaskKind, predicted: Predicted, labels: IntArray | FloatArray) -> FloatArray:
    """Return the score of the answer to each text of a task of the kinds `GRADED`.

    Parameters
    ----------
    kind
        Kind of the task.
    predicted, labels
        As for `find_answers`; in generation grades, (..., n_texts).

    Returns
    -------
    numpy.ndarray
        Shape (..., n_texts): grades, or 1 for right and 0 for wrong answers.

    Examples
    --------
    >>> find_grades("classification", Predicted(np.array([[0.8, 0.2], [0.3, 0.7]])), np.array([0, 0])).tolist()
    [1.0, 0.0]
    """
    if kind == "generation":
        return predicted.numbers
    return find_correct(predicted, labels).astype(np.float64)


def find_true_probabilities(numbers: FloatArray, labels: IntArray | FloatArray) -> FloatArray:
    """Return the probability of each text's class, (..., n_texts); or of the presence or absence of its labels.

    These have the shape (..., n_texts, n_labels). Parameters are the `numbers` of `Predicted`, and true labels.
    """
    if labels.ndim == 2:
        return np.where(labels == 1, numbers, 1 - numbers)
    return numbers[..., np.arange(len(labels)), labels]


def number_label_sets(labels: IntArray | FloatArray) -> IntArray:
    """Return the number of the set of labels of each text; class indices, which are 1-D, as they are.

    Parameters
    ----------
    labels
        0 and 1, (n_texts, n_labels).

    Examples
    --------
    >>> number_label_sets(np.array([[1, 0], [0, 0], [1, 0]])).tolist()
    [1, 0, 1]
    """
    if labels.ndim == 1:
        return labels  # type: ignore[return-value]
    _, numbers = np.unique(labels, axis=0, return_inverse=True)
    return numbers.astype(np.int64)
