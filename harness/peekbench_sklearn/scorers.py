"""Scores of scikit-learn, computed from predictions that a run has stored."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, TypeAlias, get_args

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer, get_scorer_names

from peekbench.records import FloatArray, IntArray, ScoreName

Scorer: TypeAlias = Callable[[FloatArray, IntArray | FloatArray], float]


class _StoredClasses(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose inputs are its probabilities, (n, n_classes)."""

    def __init__(self, num_classes: int) -> None:
        self.classes_ = np.arange(num_classes)

    def predict_proba(self, inputs: FloatArray) -> FloatArray:
        return inputs

    def predict(self, inputs: FloatArray) -> IntArray:
        answers: IntArray = inputs.argmax(axis=1)
        return answers


class _StoredNumbers(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor whose inputs are its predictions, (n,)."""

    def predict(self, inputs: FloatArray) -> FloatArray:
        return inputs


def check_scorer(name: str) -> None:
    """Refuse a name that scikit-learn does not have.

    Raises
    ------
    ValueError
        The message has the nearest name.
    """
    names = get_scorer_names()
    if name not in names:
        near = get_close_matches(name, [*names, *get_args(ScoreName)], n=1)
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
        Takes probabilities of shape (n, n_classes) or numbers of shape (n,), and labels of shape (n,). It raises
        `ValueError` if the score is not defined for them, such as `f1` for three classes.

    Examples
    --------
    >>> score = load_scorer("neg_mean_squared_error")
    >>> score(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    -2.0
    >>> load_scorer("roc_auc")(np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([0, 1]))
    1.0
    """
    check_scorer(name)
    scorer: Any = get_scorer(name)

    def score(predictions: FloatArray, labels: IntArray | FloatArray) -> float:
        is_of_classes = predictions.ndim == 2
        model = _StoredClasses(predictions.shape[1]) if is_of_classes else _StoredNumbers()
        with warnings.catch_warnings(action="ignore"):  # of scores that are undefined, which are refused
            value = float(scorer(model, predictions, labels))
        if not np.isfinite(value):
            raise ValueError(f"{name} is not defined for these labels")
        return value

    return score
