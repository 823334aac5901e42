"""Whitening: embeddings are transformed so that those of the unlabeled texts are uncorrelated, with equal variances."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray
from peekbench_embedding.head import linear_predictor
from peekbench_embedding.moments import Moments, estimate_moments
from peekbench_embedding.options import Whitening
from peekbench_encoders.embeddings import Embedder, unit_length


def whitening(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Whitening, context: Context
) -> Predictor:
    """Whiten embeddings by the mean and covariance of the unlabeled texts, and fit a linear classifier on train.

    Source: Su et al. (2021), https://doi.org/10.48550/arXiv.2103.15316, algorithm 1. Here whitened embeddings are
    scaled to length 1, since the paper compares them by their cosine. Few texts do not determine a covariance, so it is
    shrunk towards a multiple of the identity (Ledoit and Wolf 2004, https://doi.org/10.1016/S0047-259X(03)00096-4).

    Parameters
    ----------
    unlabeled
        Unlabeled texts; in the base arm None, and embeddings are not whitened, as in `embedding.linear`.
    train
        Labeled texts.
    task
        Not used.
    options
        Encoder, number of components, shrinkage and regularization.
    context
        Folders of the fit.

    Returns
    -------
    Predictor
        The classifier, with the metrics `shrinkage` and `components` except in the base arm.

    Raises
    ------
    DataError
        If all unlabeled texts have equal embeddings.
    SpecError, DataError
        As for `linear`.
    """
    embed = Embedder(options, context.folders)
    if unlabeled is None:
        return linear_predictor(embed, train, options.regularization)
    rows = embed(unlabeled)
    moments = estimate_moments(rows)
    shrinkage = options.shrinkage if options.shrinkage != "ledoit_wolf" else ledoit_wolf_shrinkage(rows, moments)
    whiten, num_components = fit_whitening(moments, shrinkage, options.num_components)
    metrics = {"shrinkage": shrinkage, "components": float(num_components)}
    return linear_predictor(lambda inputs: unit_length(whiten(embed(inputs))), train, options.regularization, metrics)


def ledoit_wolf_shrinkage(rows: FloatArray, moments: Moments) -> float:
    """Return the weight of the identity with the smallest expected error of the covariance, from 0 to 1.

    Source: Ledoit and Wolf (2004), https://doi.org/10.1016/S0047-259X(03)00096-4, section 3.2. scikit-learn computes
    the same from the rows alone, which takes longer than to use their eigenvalues.

    Parameters
    ----------
    rows
        Embeddings of the unlabeled texts: (n_unlabeled, n_features).
    moments
        Their moments.
    """
    squared_norm = float((moments.variances**2).sum())  # of the covariance
    distance = squared_norm - float(moments.variances.sum()) ** 2 / rows.shape[1]  # from the identity
    lengths = ((rows - moments.mean) ** 2).sum(axis=1)
    error = (float((lengths**2).mean()) - squared_norm) / len(rows)
    return min(error / distance, 1.0) if distance > 0 else 1.0


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
