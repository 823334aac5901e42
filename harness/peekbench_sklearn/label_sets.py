"""Classifiers of scikit-learn for labels of which a text has any number: one classifier for each label."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.multiclass import OneVsRestClassifier

from peekbench.records import FloatArray, IntArray


def fit_classifier(classifier: Any, rows: Any, labels: IntArray | FloatArray) -> Any:
    """Fit a classifier to classes, or a copy of it to each label of a multi-label task.

    Parameters
    ----------
    classifier
        A classifier with `predict_proba`.
    rows
        Features, (n_train, n_features).
    labels
        Classes, (n_train,), or 0 and 1, (n_train, n_labels). A label that all rows have is certain.

    Returns
    -------
    estimator
        Its `predict_proba` returns shape (n, n_classes) or (n, n_labels).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> model = fit_classifier(LogisticRegression(), [[0.0], [1.0], [2.0]], np.array([[1, 0], [1, 1], [1, 1]]))
    >>> model.predict_proba([[5.0]]).round(1).tolist()
    [[1.0, 1.0]]
    """
    if labels.ndim == 1:
        return classifier.fit(rows, labels)
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # that all rows have a label
        return OneVsRestClassifier(classifier).fit(rows, labels)
