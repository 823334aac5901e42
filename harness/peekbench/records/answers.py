"""Answers of predictions to single texts, and whether they are right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peekbench.lazy import LazyModule
from peekbench.records.data import BoolArray, FloatArray, IntArray, TaskKind

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")  # reading a spec needs the names of the scores, and must not import numpy

THRESHOLD = 0.5
"""A text is given the labels of a multi-label task whose probability is greater."""


def find_answers(predictions: FloatArray, labels: IntArray | FloatArray) -> IntArray:
    """Return the class of the highest probability, the first one among equal ones; or the labels above the threshold.

    Parameters
    ----------
    predictions
        Probabilities of classes, (..., n_texts, n_classes), or of labels, (..., n_texts, n_labels).
    labels
        Class indices, (n_texts,), or 0 and 1, (n_texts, n_labels).

    Returns
    -------
    numpy.ndarray
        Class indices, (..., n_texts), or 0 and 1, (..., n_texts, n_labels).

    Examples
    --------
    >>> find_answers(np.array([[0.8, 0.7], [0.3, 0.4]]), np.array([[1, 0], [0, 0]])).tolist()
    [[1, 1], [0, 0]]
    """
    if labels.ndim == 2:
        return (predictions > THRESHOLD).astype(np.int64)
    answers: IntArray = predictions.argmax(axis=-1)
    return answers


def find_correct(predictions: FloatArray, labels: IntArray | FloatArray) -> BoolArray:
    """Return whether the answer to each text is its class or, in a multi-label task, exactly its labels.

    Parameters
    ----------
    predictions, labels
        As for `find_answers`.

    Returns
    -------
    numpy.ndarray
        Shape (..., n_texts).

    Examples
    --------
    >>> find_correct(np.array([[0.8, 0.7], [0.3, 0.4]]), np.array([[1, 0], [0, 0]])).tolist()
    [False, True]
    """
    agrees: BoolArray = find_answers(predictions, labels) == labels
    if labels.ndim == 2:
        agrees = np.logical_and.reduce(agrees, axis=-1)
    return agrees


GRADED = frozenset[TaskKind]({"classification", "multilabel", "generation"})
"""Kinds of tasks whose score is the mean over single answers."""


def find_grades(kind: TaskKind, predictions: FloatArray, labels: IntArray | FloatArray) -> FloatArray:
    """Return the score of the answer to each text of a task of the kinds `GRADED`.

    Parameters
    ----------
    kind
        Kind of the task.
    predictions, labels
        As for `find_answers`; in generation grades, (..., n_texts).

    Returns
    -------
    numpy.ndarray
        Shape (..., n_texts): grades, or 1 for right and 0 for wrong answers.

    Examples
    --------
    >>> find_grades("classification", np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([0, 0])).tolist()
    [1.0, 0.0]
    """
    if kind == "generation":
        return predictions
    return find_correct(predictions, labels).astype(np.float64)


def find_true_probabilities(predictions: FloatArray, labels: IntArray | FloatArray) -> FloatArray:
    """Return the probability of each text's class, (..., n_texts); or of the presence or absence of its labels.

    These have the shape (..., n_texts, n_labels). Parameters are those of `find_answers`.
    """
    if labels.ndim == 2:
        return np.where(labels == 1, predictions, 1 - predictions)
    return predictions[..., np.arange(len(labels)), labels]


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
