"""Methods with a fixed encoder: a linear classifier on embeddings, corrected by the unlabeled texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.linear_model import LogisticRegression

from peekbench import Context, DataError, Inputs, Labeled, Predictor, Task
from peekbench.plugins.estimators import fit_classifier
from peekbench.records import FloatArray
from peekbench_embedding.options import AllButTheTop, CorpusContext, Linear, Whitening
from peekbench_encoders.embeddings import Embedder, unit_length


def linear_predictor(
    features: Callable[[Inputs], FloatArray],
    train: Labeled,
    regularization: float,
    metrics: dict[str, float] | None = None,
) -> Predictor:
    """Fit a multinomial logistic regression, or one for each label, with unpenalized intercepts; return the predictor.

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
    head = fit_classifier(head, features(train.inputs), train.labels)
    return Predictor(lambda inputs: np.asarray(head.predict_proba(features(inputs))), metrics or {})


MIN_VARIANCE = 1e-12  # of a component, relative to the largest; rounding gives components without variance less


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean and covariance of embeddings; the covariance as its eigenvectors and eigenvalues."""

    mean: FloatArray
    """(n_features,)."""
    variances: FloatArray
    """Positive eigenvalues, the largest first: (n_components,), at most as many as embeddings, less one."""
    components: FloatArray
    """Their eigenvectors as columns: (n_features, n_components)."""


def estimate_moments(rows: FloatArray) -> Moments:
    """Return the mean and the covariance, with divisor n, of embeddings.

    Parameters
    ----------
    rows
        Embeddings of the unlabeled texts: (n, n_features).

    Raises
    ------
    DataError
        If all embeddings are equal.
    """
    mean = rows.mean(axis=0)
    centered = rows - mean
    _, lengths, vectors = np.linalg.svd(centered, full_matrices=False)
    variances, components = lengths**2 / len(rows), vectors.T
    if variances[0] <= np.finfo(np.float64).eps * len(rows) * float((mean**2).sum()):
        raise DataError(
            f"the {len(rows)} unlabeled texts have equal embeddings, which have no covariance; use more "
            "unlabeled texts, and different ones"
        )
    kept = variances > MIN_VARIANCE * variances[0]
    return Moments(mean, variances[kept], components[:, kept])


def linear(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Linear, context: Context) -> Predictor:
    """Fit a logistic regression on the embeddings of the train texts.

    Parameters
    ----------
    unlabeled
        Not used.
    train
        Labeled texts.
    task
        Not used.
    options
        Encoder and regularization.
    context
        Folders of the fit.

    Returns
    -------
    Predictor
        The classifier.

    Raises
    ------
    DataError
        If the inputs are arrays, or the model does not exist, is unavailable or cannot be loaded.
    SpecError
        If this machine has no such device.
    """
    return linear_predictor(Embedder(options, context.folders), train, options.regularization)


def _corrected(
    unlabeled: Inputs | None,
    train: Labeled,
    options: Linear,
    context: Context,
    correct: Callable[[FloatArray], tuple[Callable[[FloatArray], FloatArray], dict[str, float]]],
) -> Predictor:
    """Fit a linear classifier on embeddings that a correction, fitted on the unlabeled ones, maps to length 1.

    `correct` takes the embeddings of the unlabeled texts, and returns the correction and metrics. Without unlabeled
    texts, embeddings stay as in `embedding.linear`.
    """
    embed = Embedder(options, context.folders)
    if unlabeled is None:
        return linear_predictor(embed, train, options.regularization)
    transform, metrics = correct(embed(unlabeled))
    return linear_predictor(
        lambda inputs: unit_length(transform(embed(inputs))), train, options.regularization, metrics
    )


def whitening(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Whitening, context: Context
) -> Predictor:
    """Whiten embeddings by the mean and covariance of the unlabeled texts, and fit a linear classifier on train.

    Source: Su et al. (2021), https://doi.org/10.48550/arXiv.2103.15316, algorithm 1. Here whitened embeddings are
    scaled to length 1, since the paper compares them by their cosine. Few texts do not determine a covariance, so it is
    shrunk towards a multiple of the identity (Ledoit and Wolf 2004, https://doi.org/10.1016/S0047-259X(03)00096-4).
    The metrics are `shrinkage` and `components`, except in the base arm. Parameters and errors are those of `linear`;
    also a `DataError` is raised if all unlabeled texts have equal embeddings.
    """

    def correct(rows: FloatArray) -> tuple[Callable[[FloatArray], FloatArray], dict[str, float]]:
        moments = estimate_moments(rows)
        shrinkage = options.shrinkage if options.shrinkage != "ledoit_wolf" else float(ledoit_wolf_shrinkage(rows))
        whiten, num_components = fit_whitening(moments, shrinkage, options.num_components)
        return whiten, {"shrinkage": shrinkage, "components": float(num_components)}

    return _corrected(unlabeled, train, options, context, correct)


def fit_whitening(
    moments: Moments, shrinkage: float, num_components: int | None
) -> tuple[Callable[[FloatArray], FloatArray], int]:
    """Return a function that whitens embeddings: (n, n_features) to (n, n_components or n_features).

    Parameters
    ----------
    moments
        Moments of the unlabeled texts.
    shrinkage
        Weight s of the identity: the covariance C becomes (1 - s) C + s trace(C) / n_features.
    num_components
        Number of components to keep; None for all. Directions without variance have no component, unless all
        are kept and s > 0. Then the result has the shape of the embeddings, and is a rotation of Su's.

    Returns
    -------
    whiten
        The function.
    num_components
        Number of components of the result.
    """
    mean, variances, components = moments.mean, moments.variances, moments.components
    num_features = len(mean)
    floor = shrinkage * variances.sum() / num_features
    scales = 1 / np.sqrt((1 - shrinkage) * variances + floor)
    if num_components is None and floor > 0:
        # The covariance in directions without variance among the unlabeled texts is `floor`.
        matrix = (components * (scales - 1 / np.sqrt(floor))) @ components.T
        matrix[np.diag_indices(num_features)] += 1 / np.sqrt(floor)
        return lambda embeddings: (embeddings - mean) @ matrix, num_features
    matrix = (components * scales)[:, :num_components]
    return lambda embeddings: (embeddings - mean) @ matrix, matrix.shape[1]


def all_but_the_top(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: AllButTheTop, context: Context
) -> Predictor:
    """Remove the mean and the strongest principal components of the unlabeled texts from embeddings.

    Source: Mu and Viswanath (2018), https://doi.org/10.48550/arXiv.1702.01417, algorithm 1, with sentences instead of
    words. The result is scaled to length 1, since the paper compares embeddings by their cosine. Parameters and errors
    are those of `whitening`; the metric is `removed_variance`.
    """

    def correct(rows: FloatArray) -> tuple[Callable[[FloatArray], FloatArray], dict[str, float]]:
        moments = estimate_moments(rows)
        removed = moments.components[:, : options.num_components]

        def transform(embeddings: FloatArray) -> FloatArray:
            centered: FloatArray = embeddings - moments.mean
            return centered - centered @ removed @ removed.T

        share = float(moments.variances[: options.num_components].sum() / moments.variances.sum())
        return transform, {"removed_variance": share}

    return _corrected(unlabeled, train, options, context, correct)


def context(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: CorpusContext, context: Context
) -> Predictor:
    """Subtract the mean of the unlabeled texts from embeddings.

    Contextual document embeddings (Morris and Rush 2024, https://doi.org/10.48550/arXiv.2410.02525) depend on the
    texts of a corpus and not only on the text itself, because what distinguishes a text differs between corpora. That
    paper trains an encoder that reads embeddings of other texts of the corpus. This method takes only the idea: the
    encoder is fixed, and the corpus enters through a mean. Differences are scaled to length 1; otherwise the mean
    would change nothing, because the intercepts of the classifier compensate for it. Parameters and errors are those
    of `linear`; the metric is `mean_length`.
    """

    def correct(rows: FloatArray) -> tuple[Callable[[FloatArray], FloatArray], dict[str, float]]:
        mean = rows.mean(axis=0)
        return lambda embeddings: embeddings - mean, {"mean_length": float(np.linalg.norm(mean))}

    return _corrected(unlabeled, train, options, context, correct)
