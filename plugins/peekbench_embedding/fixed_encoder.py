"""Methods with a fixed encoder: a linear classifier on embeddings, corrected by the unlabeled texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression

from peekbench import Context, DataError, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray
from peekbench_embedding.options import AllButTheTop, CorpusContext, Linear, Whitening
from peekbench_encoders.embeddings import Embedder, unit_length


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
    is_wide = centered.shape[0] < centered.shape[1]
    # The products of rows have the same positive eigenvalues as those of columns, and are fewer.
    products = (centered @ centered.T if is_wide else centered.T @ centered) / len(rows)
    variances, vectors = np.linalg.eigh(products)
    variances, vectors = variances[::-1], vectors[:, ::-1]
    if variances[0] <= np.finfo(np.float64).eps * len(rows) * float((mean**2).sum()):
        raise DataError(
            f"the {len(rows)} unlabeled texts have equal embeddings, which have no covariance; use more "
            "unlabeled texts, and different ones"
        )
    kept = variances > MIN_VARIANCE * variances[0]
    variances, vectors = variances[kept], vectors[:, kept]
    components = centered.T @ vectors / np.sqrt(len(rows) * variances) if is_wide else vectors
    return Moments(mean, variances, components)


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


def all_but_the_top(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: AllButTheTop, context: Context
) -> Predictor:
    """Remove the mean and the strongest principal components of the unlabeled texts from embeddings.

    Source: Mu and Viswanath (2018), https://doi.org/10.48550/arXiv.1702.01417, algorithm 1, with sentences instead of
    words. The result is scaled to length 1, since the paper compares embeddings by their cosine.

    Parameters
    ----------
    unlabeled
        Unlabeled texts; in the base arm None, and embeddings stay as in `embedding.linear`.
    train
        Labeled texts.
    task
        Not used.
    options
        Encoder, number of components and regularization.
    context
        Folders of the fit.

    Returns
    -------
    Predictor
        The classifier, with the metric `removed_variance` except in the base arm.

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
    moments = estimate_moments(embed(unlabeled))
    removed = moments.components[:, : options.num_components]

    def transform(inputs: Inputs) -> FloatArray:
        centered = embed(inputs) - moments.mean
        return unit_length(centered - centered @ removed @ removed.T)

    share = float(moments.variances[: options.num_components].sum() / moments.variances.sum())
    return linear_predictor(transform, train, options.regularization, {"removed_variance": share})


def context(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: CorpusContext, context: Context
) -> Predictor:
    """Subtract the mean of the unlabeled texts, or of their cluster nearest to a text, from embeddings.

    Contextual document embeddings (Morris and Rush 2024, https://doi.org/10.48550/arXiv.2410.02525) depend on the
    texts of a corpus and not only on the text itself, because what distinguishes a text differs between corpora. That
    paper trains an encoder that reads embeddings of other texts of the corpus. This method takes only the idea: the
    encoder is fixed, and the corpus enters through a mean. Differences are scaled to length 1; otherwise a single mean
    would change nothing, because the intercepts of the classifier compensate for it.

    Parameters
    ----------
    unlabeled
        Unlabeled texts, the corpus; in the base arm None, and embeddings stay as in `embedding.linear`.
    train
        Labeled texts.
    task
        Not used.
    options
        Encoder, number of clusters and regularization.
    context
        Seed of the clusters, and folders of the fit.

    Returns
    -------
    Predictor
        The classifier, with the metrics `mean_length` and `smallest_cluster` except in the base arm.

    Raises
    ------
    DataError
        If there are more clusters than unlabeled texts.
    SpecError, DataError
        As for `linear`.
    """
    embed = Embedder(options, context.folders)
    if unlabeled is None:
        return linear_predictor(embed, train, options.regularization)
    rows = embed(unlabeled)
    means, sizes = find_clusters(rows, options.num_clusters, context.seed)
    metrics = {
        "mean_length": float(sizes @ np.linalg.norm(means, axis=1) / sizes.sum()),
        "smallest_cluster": float(sizes.min()),
    }
    return linear_predictor(
        lambda inputs: unit_length(subtract_nearest(embed(inputs), means)), train, options.regularization, metrics
    )


def find_clusters(rows: FloatArray, num_clusters: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return the means of the clusters of embeddings, by k-means, and the numbers of texts in them.

    Parameters
    ----------
    rows
        Embeddings: (n, n_features).
    num_clusters
        Number of clusters.
    seed
        Seed of the initial means.

    Returns
    -------
    means
        (num_clusters, n_features).
    sizes
        (num_clusters,).

    Raises
    ------
    DataError
        If there are more clusters than embeddings.
    """
    if num_clusters > len(rows):
        raise DataError(
            f"num_clusters: {num_clusters} clusters of {len(rows)} unlabeled texts; choose fewer clusters, or more "
            "unlabeled texts"
        )
    if num_clusters == 1:
        return rows.mean(axis=0, keepdims=True), np.array([float(len(rows))])
    model = KMeans(num_clusters, n_init=3, random_state=seed % 2**32).fit(rows)
    return model.cluster_centers_, np.bincount(model.labels_, minlength=num_clusters).astype(np.float64)


def subtract_nearest(rows: FloatArray, means: FloatArray) -> FloatArray:
    """Subtract from each embedding (n, n_features) the nearest of some means (n_means, n_features)."""
    distances = (means**2).sum(axis=1) - 2 * rows @ means.T  # up to the length of the embedding
    centered: FloatArray = rows - means[distances.argmin(axis=1)]
    return centered
