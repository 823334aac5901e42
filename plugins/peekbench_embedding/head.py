"""The linear classifier on embeddings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.linear_model import LogisticRegression

from peekbench import Inputs, Labeled, Predictor
from peekbench.records import FloatArray


def linear_predictor(
    features: Callable[[Inputs], FloatArray],
    train: Labeled,
    regularization: float,
    metrics: dict[str, float] | None = None,
) -> Predictor:
    """Fit a multinomial logistic regression with unpenalized intercepts, and return the predictor of a method.

    Parameters
    ----------
    features
        Returns the features of texts: (n, n_features), each row from one text alone.
    train
        Labeled texts.
    regularization
        Inverse strength C of the L2 penalty.
    metrics
        Numbers to record.
    """
    # Newton's method is as fast as L-BFGS here, and much more precise.
    head = LogisticRegression(C=regularization, solver="newton-cg", max_iter=1000, tol=1e-6)
    head.fit(features(train.inputs), train.labels)
    return Predictor(lambda inputs: np.asarray(head.predict_proba(features(inputs))), metrics or {})
