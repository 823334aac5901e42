"""Three unsupervised steps before a linear model; with no unlabeled rows, the first two are the linear model alone.

Why each has the bias that it has is told in docs/methods.md. Source of the question for screening and standardization:
Moscovich and Rosset (2022), https://doi.org/10.1111/rssb.12537
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peekbench import Context, DataError, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray
from peekbench_tabular.linear import column_means, fit_linear

if TYPE_CHECKING:
    from peekbench_tabular import Pca, Screening, Standardize

USUAL_PENALTY = 1.0  # of logistic regression after principal components or screening: scikit-learn's default


def pca(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Pca, context: Context) -> Predictor:
    """Principal components of the unlabeled rows alone, not of train's, then a linear model on train.

    Source: Appendix G of arXiv 2410.00179.
    """
    import numpy as np

    features = _features(train.inputs)
    penalty = _penalty(task)
    if unlabeled is None:
        return fit_linear(train, task, penalty=penalty)
    rows = np.asarray(unlabeled)
    most = min(features.shape[1], len(rows))
    if options.num_components > most:
        raise DataError(
            f"num_components is {options.num_components}, but {len(rows)} unlabeled rows of {features.shape[1]} "
            f"features have {most} components; lower num_components"
        )
    centered = rows - column_means(rows)
    _, axes = np.linalg.eigh(centered.T @ centered)  # in ascending order of variance
    return fit_linear(train, task, axes[:, -options.num_components :], penalty)


def screening(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Screening, context: Context
) -> Predictor:
    """The features of largest variance among the unlabeled rows, then a linear model on train."""
    import numpy as np

    features = _features(train.inputs)
    penalty = _penalty(task)
    if unlabeled is None:
        return fit_linear(train, task, penalty=penalty)
    num_features = features.shape[1]
    if options.num_features > num_features:
        raise DataError(
            f"num_features is {options.num_features}, but the rows have {num_features} features; lower num_features"
        )
    order = np.argsort(-np.asarray(unlabeled).var(axis=0), kind="stable")
    return fit_linear(train, task, np.eye(num_features)[:, order[: options.num_features]], penalty)


def standardize(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Standardize, context: Context
) -> Predictor:
    """Features scaled to a standard deviation of 1 among the unlabeled rows (in the base arm, train), then a linear
    model with a penalty."""
    import numpy as np

    features = _features(train.inputs)
    rows = features if unlabeled is None else np.asarray(unlabeled)
    spread = rows.std(axis=0)
    spread[rows.min(axis=0) == rows.max(axis=0)] = 1  # a constant says nothing; its deviation need not be exactly 0
    return fit_linear(train, task, np.diag(1 / spread), options.penalty)


def _features(inputs: Inputs) -> FloatArray:
    """Refuse texts."""
    import numpy as np

    if not isinstance(inputs, np.ndarray):
        raise DataError(
            "the methods of tabular take rows of numbers, and this task's inputs are texts; use tasks such as "
            "tabular.regression, or a method for texts"
        )
    return inputs


def _penalty(task: Task) -> float:
    return USUAL_PENALTY if task.kind == "classification" else 0.0
