"""Scores of scikit-learn, computed from predictions that a run has stored."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer, get_scorer_names

from peekbench.errors import SpecError
from peekbench.plugins.protocols import is_estimator
from peekbench.records import Dataset, FloatArray, IntArray, TaskKind
from peekbench.records.answers import Predicted, find_answers
from peekbench.records.scores import SCORE_NAMES, find_score

Scorer: TypeAlias = Callable[[Predicted, IntArray | FloatArray], float]

SAME = {"brier": "neg_log_loss", "log_loss": "neg_log_loss", "macro_f1": "f1_macro"}
"""Scores of scikit-learn that are defined where those of peekbench are."""
SAME_OF_LABELS = {**SAME, "brier": "average_precision", "log_loss": "average_precision", "micro_f1": "f1_micro"}
"""Those of multi-label tasks."""
USUAL = (
    "accuracy", "balanced_accuracy", "f1_macro", "neg_log_loss", "roc_auc", "r2", "neg_mean_absolute_error",
    "neg_root_mean_squared_error",
)  # fmt: skip
"""Scores that messages name, if they are defined."""


class _StoredLabels(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that shows only the labels that a method chose; its inputs are their true labels."""

    def __init__(self, predicted: Predicted) -> None:
        self.predicted = predicted
        self.classes_ = np.arange(predicted.numbers.shape[1])

    def predict(self, inputs: IntArray) -> IntArray:
        return find_answers(self.predicted, inputs)


class _StoredProbabilities(_StoredLabels):
    """A classifier that shows the probabilities as well."""

    def predict_proba(self, inputs: IntArray) -> FloatArray:
        return self.predicted.numbers.astype(np.float64)


class _StoredNumbers(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor with the numbers that a method predicted."""

    def __init__(self, predicted: Predicted) -> None:
        self.predicted = predicted

    def predict(self, inputs: FloatArray) -> FloatArray:
        return self.predicted.numbers


def check_scorer(name: str) -> None:
    """Refuse a name that scikit-learn does not have.

    Raises
    ------
    ValueError
        The message has the nearest name.
    """
    names = get_scorer_names()
    if name not in names:
        near = get_close_matches(name, [*names, *SCORE_NAMES], n=1)
        raise ValueError(
            f"no score is named {name!r}; "
            + (f"did you mean {near[0]!r}?" if near else "sklearn.metrics.get_scorer_names() has the names")
        )


def load_scorer(name: str) -> Scorer:
    """Return a function of predictions and labels that computes a score, of which higher is better.

    Source: https://scikit-learn.org/stable/modules/model_evaluation.html

    Parameters
    ----------
    name
        Name in scikit-learn. The scores of two classes are about the second one.

    Returns
    -------
    callable
        Takes predictions, and labels of shape (n,) or, in multi-label tasks, (n, n_labels). It raises `ValueError` if
        the score is not defined for them, such as `f1` for three classes.

    Examples
    --------
    >>> score = load_scorer("neg_mean_squared_error")
    >>> score(Predicted(np.array([1.0, 2.0])), np.array([1.0, 4.0]))
    -2.0
    >>> load_scorer("roc_auc")(Predicted(np.array([[0.8, 0.2], [0.3, 0.7]])), np.array([0, 1]))
    1.0
    """
    check_scorer(name)
    return partial(_compute, name)


def _compute(name: str, predicted: Predicted, labels: Any, kind: Any = _StoredProbabilities) -> float:
    if predicted.numbers.ndim == 1:
        kind = _StoredNumbers
    with warnings.catch_warnings(action="ignore"):  # of scores that are undefined, which are refused
        value = float(get_scorer(name)(kind(predicted), labels, labels))
    if not np.isfinite(value):
        raise ValueError(f"{name} is not defined for these labels")
    return value


def check_score(name: str, dataset: Dataset, task: str, method: Any) -> TaskKind:
    """Return the kind of a task that has a score, or refuse the score.

    Parameters
    ----------
    name
        A `ScoreName`, or the name of a score of scikit-learn.
    dataset
        Rows of the task.
    task
        Name of the task, for the message.
    method
        The method. An estimator without `predict_proba` has no scores of probabilities.

    Raises
    ------
    SpecError
        If the score is unknown, or not defined for the labels or for the predictions of the method.
    """
    if name in SCORE_NAMES and name not in SAME and dataset.kind in find_score(name).functions:
        return dataset.kind
    labels, num_classes = np.asarray(dataset.labels), len(dataset.class_names)
    own, kind = SAME.get(name, name), _StoredProbabilities
    good = np.eye(num_classes)[labels] if dataset.kind == "classification" else labels + 0.25
    if dataset.kind == "multilabel":
        own, good = SAME_OF_LABELS.get(name, name), labels.astype(float)
    if num_classes and is_estimator(method) and not hasattr(method, "predict_proba"):
        kind = _StoredLabels

    def is_defined(name: str) -> bool:
        return _compares_numbers(name) == (not num_classes) and _works(name, good, labels, kind)

    try:
        check_scorer(own)
    except ValueError as error:
        raise SpecError(str(error)) from error
    if is_defined(own):
        return dataset.kind
    raise SpecError(
        f"score {name!r} is not defined for the labels of task {task} and what the method predicts; use one of "
        f"{', '.join(filter(is_defined, USUAL))}"
    )


def _works(name: str, numbers: Any, labels: Any, kind: Any = _StoredProbabilities) -> bool:
    with suppress(ValueError, TypeError, AttributeError):
        return bool(np.isfinite(_compute(name, Predicted(numbers), labels, kind)))
    return False


def _compares_numbers(name: str) -> bool:
    """Return whether a score compares numbers; scores of classes take texts as well."""
    values = np.array([0.25, 0.5, 0.75]), np.array(["a", "b", "b"])
    return [_works(name, value, value) for value in values] == [True, False]
