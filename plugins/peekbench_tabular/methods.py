"""Unsupervised steps before a linear model; without unlabeled rows, `pca` and `screening` are the linear model alone.

docs/methods/tabular.md explains the bias of each. The question about screening and standardization comes from Moscovich
and Rosset (2022), https://doi.org/10.1111/rssb.12537
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression

from peekbench import Context, DataError, Dataset, Inputs, Labeled, Options, Predictor, Task
from peekbench.records import FloatArray
from peekbench_tabular import Impute, Pca, Prepared, Screening, Standardize

DEFAULT_PENALTY = 1.0  # of logistic regression after principal components or screening: scikit-learn's default
MIN_PENALTY = 1e-6  # of logistic regression, whose weights diverge if classes are separable


def fit_linear(train: Labeled, task: Task, basis: FloatArray | None = None, penalty: float = 0.0) -> Predictor:
    """Fit a linear model with an unpenalized intercept on `train.inputs @ basis`.

    The intercept compensates for anything that was added to all rows before `basis`, such as centering.

    Parameters
    ----------
    train
        Labeled rows: (n_train, n_features).
    task
        The task; its kind decides between linear and logistic regression.
    basis
        Linear map of the features: (n_features, n_used); None for the identity.
    penalty
        Penalty of the sum of squared coefficients, as in `sklearn.linear_model.Ridge`; 0 is least squares.

    Returns
    -------
    Predictor
        Targets (n,) for regression, or probabilities (n, n_classes) for classification.
    """
    if task.kind == "regression":
        return _least_squares(train, basis, penalty)
    return _logistic(train, basis, max(penalty, MIN_PENALTY))


def column_means(rows: FloatArray) -> FloatArray:
    """Return the means of columns: (n, n_features) to (n_features,).

    A matrix product is several times as fast as `mean` on narrow columns.
    """
    means: FloatArray = np.full(len(rows), 1 / len(rows)) @ rows
    return means


def _least_squares(train: Labeled, basis: FloatArray | None, penalty: float) -> Predictor:
    """Fit the same model as scikit-learn's `LinearRegression` and `Ridge`, except for rounding, but much faster."""
    inputs, labels = np.asarray(train.inputs), np.asarray(train.labels)
    center, level = column_means(inputs), labels.mean()
    features = inputs - center
    if basis is not None:
        features = features @ basis
    if penalty:
        gram = features.T @ features
        gram.flat[:: len(gram) + 1] += penalty
        coefficients = np.linalg.solve(gram, features.T @ (labels - level))
    else:
        coefficients = np.linalg.lstsq(features, labels - level)[0]
    weights = coefficients if basis is None else basis @ coefficients
    intercept = level - center @ weights

    def predict(rows: Inputs) -> FloatArray:
        predicted: FloatArray = _check_complete(rows) @ weights + intercept
        return predicted

    return Predictor(predict)


def _logistic(train: Labeled, basis: FloatArray | None, penalty: float) -> Predictor:
    features = np.asarray(train.inputs) if basis is None else np.asarray(train.inputs) @ basis
    model = LogisticRegression(C=1 / penalty, max_iter=1000, tol=1e-6)
    with warnings.catch_warnings():
        if penalty >= DEFAULT_PENALTY:  # without a penalty, weights may diverge
            warnings.simplefilter("error", ConvergenceWarning)
        try:
            model.fit(features, train.labels)
        except ConvergenceWarning as warning:
            raise DataError(
                "the logistic regression does not converge, because columns have very different units; set the option "
                "`prepare`, or scale them in the file"
            ) from warning

    def predict(rows: Inputs) -> FloatArray:
        array = _check_complete(rows)
        probabilities: FloatArray = model.predict_proba(array if basis is None else array @ basis)
        return probabilities

    return Predictor(predict)


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
    if options.prepare:
        return _fit_prepared(pca, unlabeled, train, task, options)
    penalty = _penalty(task)
    _check_complete(features)
    if unlabeled is None:
        return fit_linear(train, task, penalty=penalty)
    rows = _check_complete(unlabeled)
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
    if options.prepare:
        return _fit_prepared(screening, unlabeled, train, task, options)
    penalty = _penalty(task)
    _check_complete(features)
    if unlabeled is None:
        return fit_linear(train, task, penalty=penalty)
    num_features = features.shape[1]
    if options.num_features > num_features:
        raise DataError(
            f"num_features is {options.num_features}, but the rows have {num_features} features; lower num_features"
        )
    order = np.argsort(-_check_complete(unlabeled).var(axis=0), kind="stable")
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
    features = _check_complete(_check_numeric(train.inputs))
    rows = features if unlabeled is None else _check_complete(unlabeled)
    return fit_linear(train, task, np.diag(1 / _deviations(rows)), options.penalty)


def impute(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Impute, context: Context) -> Predictor:
    """Replace missing values by an imputer that is fitted on the unlabeled rows, then fit a linear model on train.

    In the base arm, the imputer is fitted on the train rows. Features are scaled by the train rows in all arms.

    Parameters
    ----------
    unlabeled
        Unlabeled rows (n_unlabeled, n_features), NaN if missing; None in the base arm.
    train
        Labeled rows.
    task
        The task.
    options
        Strategy of the imputer, and penalty of the linear model.
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
    rows = train.inputs if unlabeled is None else unlabeled
    _check_numeric(train.inputs)
    penalty = _penalty(task) if options.penalty is None else options.penalty
    imputer = _make_imputer(options.strategy).fit(rows)
    filled = imputer.transform(train.inputs)
    prepare = _scale_by(imputer, _deviations(filled), column_means(filled))
    fitted = fit_linear(Labeled(prepare(train.inputs), train.labels), task, penalty=penalty)
    return Predictor(lambda tested: fitted.predict(prepare(tested)))


def _make_imputer(strategy: str) -> Any:
    if strategy == "knn":
        return KNNImputer(keep_empty_features=True)
    return SimpleImputer(strategy=strategy, keep_empty_features=True)


def _fit_prepared(
    method: Callable[..., Predictor], unlabeled: Inputs | None, train: Labeled, task: Task, options: Prepared
) -> Predictor:
    """Fit a method on rows that are filled and scaled by the train rows."""
    imputer = _make_imputer("mean").fit(train.inputs)
    ranges = np.ptp(imputer.transform(train.inputs), axis=0)
    prepare = _scale_by(imputer, np.where(ranges == 0, 1, ranges))
    own = None
    if unlabeled is not None:
        own = prepare(unlabeled)
    prepared, plain = Labeled(prepare(train.inputs), train.labels), options.model_copy(update={"prepare": False})
    fitted = method(own, prepared, task, options=plain, context=None)
    return Predictor(lambda rows: fitted.predict(prepare(rows)))


def _scale_by(imputer: Any, scale: FloatArray, center: FloatArray | float = 0.0) -> Callable[[Inputs], FloatArray]:
    def prepare(rows: Inputs) -> FloatArray:
        prepared: FloatArray = (imputer.transform(rows) - center) / scale
        return prepared

    return prepare


def _deviations(rows: FloatArray) -> FloatArray:
    """Return the standard deviation of each column, 1 for a constant one."""
    sd: FloatArray = rows.std(axis=0)
    sd[rows.min(axis=0) == rows.max(axis=0)] = 1  # rounding may give a constant column a deviation other than 0
    return sd


def check_rows(dataset: Dataset, *, options: Options) -> None:
    """Refuse rows with missing values before the first fit, unless the options replace these."""
    if dataset.input_kind == "features" and not getattr(options, "prepare", False):
        _check_complete(_check_numeric(dataset.inputs))


def _check_complete(rows: Inputs) -> FloatArray:
    """Return the rows as an array, or raise an error if a value is missing."""
    array: FloatArray = np.asarray(rows)
    if np.isnan(array).any():
        raise DataError(
            "rows have missing values, which this method does not take; use tabular.impute, the option "
            "`prepare` of tabular.pca or tabular.screening, or a pipeline of scikit-learn that begins with an imputer"
        )
    return array


def _check_numeric(inputs: Inputs) -> FloatArray:
    """Return the inputs, or raise an error if they are texts."""
    if hasattr(inputs, "columns"):
        raise DataError(
            "the methods of tabular take rows of numbers, and this task's rows are a data frame; set `encode` of the "
            "task to one-hot, or use a pipeline of scikit-learn"
        )
    if not isinstance(inputs, np.ndarray):
        raise DataError(
            "the methods of tabular take rows of numbers, and this task's inputs are texts; use tasks such as "
            "tabular.regression, or a method for texts"
        )
    return inputs


def _penalty(task: Task) -> float:
    return DEFAULT_PENALTY if task.kind == "classification" else 0.0
