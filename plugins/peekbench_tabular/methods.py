"""Three unsupervised steps before a linear model; without unlabeled rows, the first two are the linear model alone.

docs/methods.md explains the bias of each. The question about screening and standardization comes from Moscovich and
Rosset (2022), https://doi.org/10.1111/rssb.12537
"""

from __future__ import annotations

import numpy as np

from peekbench import Context, DataError, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray
from peekbench_tabular import Pca, Screening, Standardize
from peekbench_tabular.linear import column_means, fit_linear

DEFAULT_PENALTY = 1.0  # of logistic regression after principal components or screening: scikit-learn's default


def pca(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Pca, context: Context) -> Predictor:
    """Fit principal components on the unlabeled rows alone, without train's, then a linear model on train.

    Source: Appendix G of arXiv 2410.00179.

    Parameters
    ----------
    unlabeled
        Unlabeled rows (n_unlabeled, n_features); None in the base arm.
    train
        Labeled rows.
    task
        The task.
    options
        Number of components.
    context
        Not used.

    Returns
    -------
    Predictor
        The linear model.

    Raises
    ------
    DataError
        If inputs are texts, or the unlabeled rows have fewer components.
    """
    features = _check_numeric(train.inputs)
    penalty = _penalty(task)
    if unlabeled is None:
        return fit_linear(train, task, penalty=penalty)
    rows = np.asarray(unlabeled)
    max_components = min(features.shape[1], len(rows))
    if options.num_components > max_components:
        raise DataError(
            f"num_components is {options.num_components}, but {len(rows)} unlabeled rows of {features.shape[1]} "
            f"features have {max_components} components; lower num_components"
        )
    centered = rows - column_means(rows)
    _, axes = np.linalg.eigh(centered.T @ centered)  # in ascending order of variance
    return fit_linear(train, task, axes[:, -options.num_components :], penalty)


def screening(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Screening, context: Context
) -> Predictor:
    """Select the features with the largest variance among the unlabeled rows, then fit a linear model on train.

    Parameters
    ----------
    unlabeled
        Unlabeled rows (n_unlabeled, n_features); None in the base arm.
    train
        Labeled rows.
    task
        The task.
    options
        Number of features.
    context
        Not used.

    Returns
    -------
    Predictor
        The linear model.

    Raises
    ------
    DataError
        If inputs are texts, or the rows have fewer features.
    """
    features = _check_numeric(train.inputs)
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
    """Scale features to a standard deviation of 1 among the unlabeled rows, then fit a linear model with a penalty.

    In the base arm, the train rows give the standard deviations.

    Parameters
    ----------
    unlabeled
        Unlabeled rows (n_unlabeled, n_features); None in the base arm.
    train
        Labeled rows.
    task
        The task.
    options
        Penalty of the linear model.
    context
        Not used.

    Returns
    -------
    Predictor
        The linear model.

    Raises
    ------
    DataError
        If inputs are texts.
    """
    features = _check_numeric(train.inputs)
    rows = features if unlabeled is None else np.asarray(unlabeled)
    sd = rows.std(axis=0)
    sd[rows.min(axis=0) == rows.max(axis=0)] = 1  # rounding may give a constant column a deviation other than 0
    return fit_linear(train, task, np.diag(1 / sd), options.penalty)


def _check_numeric(inputs: Inputs) -> FloatArray:
    """Return the inputs, or raise an error if they are texts."""
    if not isinstance(inputs, np.ndarray):
        raise DataError(
            "the methods of tabular take rows of numbers, and this task's inputs are texts; use tasks such as "
            "tabular.regression, or a method for texts"
        )
    return inputs


def _penalty(task: Task) -> float:
    return DEFAULT_PENALTY if task.kind == "classification" else 0.0
