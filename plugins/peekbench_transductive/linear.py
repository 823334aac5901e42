"""Methods that adapt a linear classifier: its normalization, its predictions, or its features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize_scalar
from scipy.special import entr, log_softmax, softmax
from sklearn.linear_model import LogisticRegression

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray, IntArray
from peekbench_transductive import BatchStatistics, ClassPriors, EntropyMinimization
from peekbench_transductive.features import Features, Matrix, column_variances, fit_features


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


@dataclass(frozen=True, slots=True)
class LinearClassifier:
    """Features that are fitted on train, and a linear classifier of them."""

    features: Features
    head: Head

    def predict(self, inputs: Inputs) -> FloatArray:
        """Return the probabilities of inputs: (n, n_classes)."""
        return self.head.predict(self.features.transform(inputs))


MAX_SPANNED = 250
"""Rows up to which their span is found faster than Newton's method ends on sparse features; it takes cubic time."""


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
    if rows.shape[0] < min(rows.shape[1], MAX_SPANNED):
        products = rows @ rows.T
        return _fit_few(rows, products.toarray() if hasattr(products, "toarray") else products, labels, regularization)
    return _fit(rows, labels, regularization)


def _fit_few(rows: Matrix, products: FloatArray, labels: IntArray | FloatArray, regularization: float) -> Head:
    """Fit the same classifier in the space that the rows span, which has fewer dimensions than there are features.

    The penalty makes the weights a combination of the rows. Coordinates of the rows in an orthonormal basis of their
    span keep all products of rows, and so the length of the weights.
    """
    values, vectors = eigh(products)
    is_spanned = values > values[-1] * len(values) * np.finfo(np.float64).eps
    if not is_spanned.any():
        return _fit(rows, labels, regularization)
    roots, vectors = np.sqrt(values[is_spanned]), vectors[:, is_spanned]
    head = _fit(vectors * roots, labels, regularization)
    return Head(rows.T @ (vectors @ (head.weights / roots[:, None])), head.intercepts)


def _fit(rows: Matrix, labels: IntArray | FloatArray, regularization: float) -> Head:
    # Newton's method is as fast as L-BFGS here, and much more precise: a further iteration squares the error.
    model = LogisticRegression(C=regularization, solver="newton-cg", max_iter=1000, tol=1e-9).fit(rows, labels)
    weights, intercepts = model.coef_.T, model.intercept_
    if len(model.classes_) == 2:  # scikit-learn keeps only the weights of the second class
        weights, intercepts = np.hstack([np.zeros_like(weights), weights]), np.append(0.0, intercepts)
    return Head(weights, intercepts)


def mean_entropy(probabilities: FloatArray) -> float:
    """Return the mean entropy of rows of probabilities, in nats."""
    return float(entr(probabilities).sum(axis=1).mean())


def class_priors(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: ClassPriors, context: Context
) -> Predictor:
    """Fit and calibrate a linear classifier on train, and adapt it to the class shares of the unlabeled inputs.

    Sources: EM of Saerens et al. (2002), https://doi.org/10.1162/089976602753284446, equations 2.4 and 2.9, for
    calibrated probabilities (Alexandari et al. 2020, https://doi.org/10.48550/arXiv.1901.06852), with a Dirichlet prior
    of the shares. The adapted probabilities are applied to every input.

    Parameters
    ----------
    unlabeled
        Unlabeled inputs; None in the base arm.
    train
        Labeled inputs; their class shares are the priors of the classifier.
    task
        The task; it gives the number of classes.
    options
        Encoder, strength of the Dirichlet prior and regularization.
    context
        Folders of the fit.

    Returns
    -------
    Predictor
        The classifier, with metrics of its temperature and the estimated class shares except in the base arm.

    Raises
    ------
    DataError
        If the inputs are texts, and those of train have no words or the encoder is unavailable; or if they are arrays,
        and there is an encoder.
    SpecError
        If this machine has no such device.
    """
    features, rows = fit_features(train.inputs, options.encoder, context.folders)
    head = fit_head(rows, train.labels, options.regularization)
    temperature = fit_temperature(rows, train.labels, options.regularization)
    classifier = LinearClassifier(features, Head(head.weights / temperature, head.intercepts / temperature))
    if unlabeled is None:
        return Predictor(classifier.predict)
    shares = np.bincount(train.labels, minlength=task.num_classes) / len(train.labels)
    priors, iterations = estimate_priors(classifier.predict(unlabeled), shares, options.prior_strength)
    return Predictor(
        lambda inputs: adapt(classifier.predict(inputs), priors / shares),
        {
            "temperature": temperature,
            "smallest_prior": float(priors.min()),
            "largest_prior": float(priors.max()),
            "prior_change": float(np.abs(priors - shares).sum() / 2),
            "iterations": float(iterations),
        },
    )


NUM_FOLDS, LARGEST_LOG_TEMPERATURE = 5, 3.0


def fit_temperature(rows: Matrix, labels: IntArray | FloatArray, regularization: float) -> float:
    """Return the temperature of logits with the smallest log loss in cross-validation on train.

    Source: Guo et al. (2017), https://doi.org/10.48550/arXiv.1706.04599, section 4.2. Each class is spread over five
    folds; the only row of a class is never held out.

    Parameters
    ----------
    rows
        Features of the train inputs: (n_train, n_features).
    labels
        Their classes: (n_train,).
    regularization
        Inverse strength C of the L2 penalty of the classifier.

    Returns
    -------
    float
        The temperature; 1 if no class has two rows.
    """
    folds = np.full(len(labels), -1)
    for label in np.unique(labels):
        (of_class,) = np.nonzero(labels == label)
        if len(of_class) > 1:
            folds[of_class] = np.arange(len(of_class)) % NUM_FOLDS
    logits, held_out = [], []
    for fold in range(folds.max() + 1):
        head = fit_head(rows[folds != fold], labels[folds != fold], regularization)
        logits.append(rows[folds == fold] @ head.weights + head.intercepts)
        held_out.append(labels[folds == fold])
    if not logits:
        return 1.0
    stacked, targets = np.concatenate(logits), np.concatenate(held_out)

    def loss(logarithm: float) -> float:
        probabilities = log_softmax(stacked / np.exp(logarithm), axis=1)
        return -float(probabilities[np.arange(len(targets)), targets].mean())

    bounds = (-LARGEST_LOG_TEMPERATURE, LARGEST_LOG_TEMPERATURE)
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-8}).x))


MAX_ITERATIONS, TOLERANCE = 1000, 1e-8  # of EM: change of a class share


def estimate_priors(posteriors: FloatArray, shares: FloatArray, prior_strength: float) -> tuple[FloatArray, int]:
    """Estimate class shares by EM.

    Parameters
    ----------
    posteriors
        Probabilities of the unlabeled inputs: (n_unlabeled, n_classes).
    shares
        Class shares of train: (n_classes,).
    prior_strength
        Weight of these shares, as a number of inputs.

    Returns
    -------
    priors
        Estimated class shares: (n_classes,).
    iterations
        Number of iterations.
    """
    priors, iterations, change = shares, 0, np.inf
    while iterations < MAX_ITERATIONS and change > TOLERANCE:
        previous, ratios = priors, priors / shares
        # The sum of `adapt(posteriors, ratios)`, without the matrix of all adapted probabilities.
        sums = ratios * (1 / (posteriors @ ratios) @ posteriors)
        priors = (sums + prior_strength * shares) / (len(posteriors) + prior_strength)
        change = np.abs(priors - previous).max()
        iterations += 1
    return priors, iterations


def adapt(posteriors: FloatArray, ratios: FloatArray) -> FloatArray:
    """Multiply probabilities (n, n_classes) by the ratios of new to old priors (n_classes,), and normalize rows."""
    weighted = posteriors * ratios
    adapted: FloatArray = weighted / weighted.sum(axis=1, keepdims=True)
    return adapted


DECAYS, EPSILON = (0.9, 0.999), 1e-8  # of Adam, as in its paper and in torch


def entropy_minimization(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: EntropyMinimization, context: Context
) -> Predictor:
    """Fit a linear classifier on train, then minimize the mean entropy of its predictions of the unlabeled inputs.

    Source: the objective of Tent, Wang et al. (2021), https://doi.org/10.48550/arXiv.2006.10726. Tent adapts the scales
    and shifts of normalization layers; before a linear classifier, shifts of features are only an intercept, so this
    method adapts the weights and intercepts. Tent adapts while it predicts; this method adapts to all unlabeled inputs
    first, so that a prediction depends on one input only.

    Parameters
    ----------
    unlabeled
        Unlabeled inputs; None in the base arm.
    train
        Labeled inputs.
    task
        Not used.
    options
        Encoder, steps, learning rate and regularization.
    context
        Folders of the fit.

    Returns
    -------
    Predictor
        The classifier, with the metrics `entropy_before` and `entropy_after` except in the base arm.

    Raises
    ------
    DataError
        If the inputs are texts, and those of train have no words or the encoder is unavailable; or if they are arrays,
        and there is an encoder.
    SpecError
        If this machine has no such device.
    """
    features, train_rows = fit_features(train.inputs, options.encoder, context.folders)
    head = fit_head(train_rows, train.labels, options.regularization)
    if unlabeled is None:
        return Predictor(LinearClassifier(features, head).predict)
    rows = features.transform(unlabeled)
    adapted = minimize_entropy(rows, head, options)
    return Predictor(
        LinearClassifier(features, adapted).predict,
        {"entropy_before": mean_entropy(head.predict(rows)), "entropy_after": mean_entropy(adapted.predict(rows))},
    )


def minimize_entropy(rows: Matrix, head: Head, options: EntropyMinimization) -> Head:
    """Take steps of Adam (Kingma and Ba 2015, https://doi.org/10.48550/arXiv.1412.6980) down the mean entropy.

    Parameters
    ----------
    rows
        Features of the unlabeled inputs: (n_unlabeled, n_features).
    head
        The classifier fitted on train.
    options
        Steps and learning rate.

    Returns
    -------
    Head
        The adapted classifier.
    """
    parameters = [head.weights.copy(), head.intercepts.copy()]
    moments = [(np.zeros_like(parameter), np.zeros_like(parameter)) for parameter in parameters]
    for step in range(1, options.steps + 1):
        to_logits = _entropy_gradient(Head(*parameters).predict(rows))
        gradients = [rows.T @ to_logits, to_logits.sum(axis=0)]
        for parameter, gradient, (mean, square) in zip(parameters, gradients, moments, strict=True):
            mean += (1 - DECAYS[0]) * (gradient - mean)
            square += (1 - DECAYS[1]) * (gradient**2 - square)
            root = np.sqrt(square / (1 - DECAYS[1] ** step)) + EPSILON
            parameter -= options.learning_rate * mean / (1 - DECAYS[0] ** step) / root
    return Head(*parameters)


def _entropy_gradient(probabilities: FloatArray) -> FloatArray:
    """Return the gradient of the mean entropy with respect to the logits: (n, n_classes)."""
    logs = np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))
    entropies = -(probabilities * logs).sum(axis=1, keepdims=True)
    gradient: FloatArray = -probabilities * (logs + entropies) / len(probabilities)
    return gradient


def batch_statistics(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: BatchStatistics, context: Context
) -> Predictor:
    """Fit a linear classifier on features scaled by train, and apply it to features scaled by `unlabeled`.

    Sources: Nado et al. (2020), https://doi.org/10.48550/arXiv.2006.10963, and Schneider et al. (2020),
    https://doi.org/10.48550/arXiv.2006.16971, equation 1: variances are averages of those of train, with the weight
    `prior_strength`, and of the unlabeled inputs, with their number as weight. Means are not adapted, because a shift
    of features before a linear classifier is an intercept. A column that is constant among the unlabeled inputs, such
    as a word that they do not contain, keeps the variance of train.

    Parameters
    ----------
    unlabeled
        Unlabeled inputs; None in the base arm.
    train
        Labeled inputs.
    task
        Not used.
    options
        Encoder, weight of train's statistics and regularization.
    context
        Folders of the fit.

    Returns
    -------
    Predictor
        The classifier, with the metric `scale_change` except in the base arm.

    Raises
    ------
    DataError
        If the inputs are texts, and those of train have no words or the encoder is unavailable; or if they are arrays,
        and there is an encoder.
    SpecError
        If this machine has no such device.
    """
    features, train_rows = fit_features(train.inputs, options.encoder, context.folders)
    variances = column_variances(train_rows)
    # Scales become part of the weights, so that sparse rows stay sparse. Centering would not change the fit, because
    # the intercepts compensate for it.
    factors = _factors(variances)
    head = fit_head(_multiply(train_rows, factors), train.labels, options.regularization)
    if unlabeled is None:
        return Predictor(LinearClassifier(features, Head(factors[:, None] * head.weights, head.intercepts)).predict)

    share = len(unlabeled) / (len(unlabeled) + options.prior_strength)
    new_variances = column_variances(features.transform(unlabeled))
    # The variance of a constant column would shrink to that of the prior, and scale up the few inputs that differ.
    shares = np.where((new_variances > 0) & (variances > 0), share, 0)
    new_variances = (1 - shares) * variances + shares * new_variances
    ratios = np.where(variances > 0, new_variances / np.where(variances > 0, variances, 1), 1)
    adapted = Head(_factors(new_variances)[:, None] * head.weights, head.intercepts)
    metrics = {"scale_change": float(np.abs(np.log(ratios)).mean() / 2)}
    return Predictor(LinearClassifier(features, adapted).predict, metrics)


def _factors(variances: FloatArray) -> FloatArray:
    """Return the factors of columns in a standardization: 0 for constant ones, which say nothing about the classes.

    Division by the square root of the number of columns gives rows a mean squared length of 1.
    """
    return np.where(variances > 0, 1 / np.sqrt(np.where(variances > 0, variances, 1) * len(variances)), 0)


def _multiply(rows: Matrix, factors: FloatArray) -> Matrix:
    return rows * factors if isinstance(rows, np.ndarray) else rows.multiply(factors).tocsr()
