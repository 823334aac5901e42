"""The linear classifier of these methods, as weights that a method can change; and entropies of predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import entr, softmax
from sklearn.linear_model import LogisticRegression

from peekbench.records import FloatArray, IntArray
from peekbench_transductive.features import Matrix


@dataclass(frozen=True, slots=True)
class Head:
    """A linear classifier: softmax of `rows @ weights + intercepts`."""

    weights: FloatArray
    """(n_features, n_classes)."""
    intercepts: FloatArray
    """(n_classes,)."""

    def predict(self, rows: Matrix) -> FloatArray:
        """Return the probabilities of features: (n, n_features) to (n, n_classes)."""
        probabilities: FloatArray = softmax(rows @ self.weights + self.intercepts, axis=1)
        return probabilities


def fit_head(rows: Matrix, labels: IntArray | FloatArray, regularization: float) -> Head:
    """Fit a multinomial logistic regression with an unpenalized intercept.

    Parameters
    ----------
    rows
        Features of the train inputs: (n_train, n_features).
    labels
        Their classes: (n_train,).
    regularization
        Inverse strength C of the L2 penalty.

    Returns
    -------
    Head
        The classifier.
    """
    # Newton's method is as fast as L-BFGS here, and much more precise.
    model = LogisticRegression(C=regularization, solver="newton-cg", max_iter=1000, tol=1e-6).fit(rows, labels)
    weights, intercepts = model.coef_.T, model.intercept_
    if len(model.classes_) == 2:  # scikit-learn keeps only the weights of the second class
        weights, intercepts = np.hstack([np.zeros_like(weights), weights]), np.append(0.0, intercepts)
    return Head(weights, intercepts)


def mean_entropy(probabilities: FloatArray) -> float:
    """Return the mean entropy of rows of probabilities, in nats."""
    return float(entr(probabilities).sum(axis=1).mean())
