"""Context: embeddings relative to those of the corpus from which a text comes."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans

from peekbench import Context, DataError, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray
from peekbench_embedding.head import linear_predictor
from peekbench_embedding.options import CorpusContext
from peekbench_encoders.embeddings import Embedder, unit_length


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
