"""Methods of distances and matches: label spreading, class centroids, and BM25."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve
from scipy.sparse import vstack
from scipy.special import softmax

from peekbench import Context, DataError, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray
from peekbench_transductive import Bm25, Centroids, LabelSpreading
from peekbench_transductive.features import Features, fit_counts, fit_features
from peekbench_transductive.linear import mean_entropy


def label_spreading(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: LabelSpreading, context: Context
) -> Predictor:
    """Spread labels over the graph of train and unlabeled inputs; an input gets its label from the nodes near it.

    Source: Zhou et al. (2004), "Learning with local and global consistency", NeurIPS 16: the limit
    F = (1 - alpha) (I - alpha S)^-1 Y, where S is the kernel matrix W with a diagonal of 0, normalized by the roots of
    the degrees d. An input x need not be in the graph: as in Delalleau et al. (2005), AISTATS, it gets the label that
    minimizes the method's cost if the other labels are kept, the sum of W(x, j) F_j / sqrt(d_j) over the nodes j. For
    an unlabeled input of the graph, this is its label in the graph, so the rule adds no difference between inputs that
    are in the graph and others.

    Parameters
    ----------
    unlabeled
        Unlabeled inputs; in the base arm None, and the graph consists of the train inputs.
    train
        Labeled inputs.
    task
        The task; it gives the number of classes.
    options
        Encoder, share of neighbors' labels and sharpness of the kernel.
    context
        Folders of the fit.

    Returns
    -------
    Predictor
        The classifier, with the metric `label_entropy` except in the base arm.

    Raises
    ------
    DataError
        If the inputs are texts, and those of train have no words or the encoder is unavailable; or if they are arrays,
        and there is an encoder.
    SpecError
        If this machine has no such device.
    """
    features, train_rows = fit_features(train.inputs, options.encoder, context.folders)
    rows = train_rows
    if unlabeled is not None:
        stack = np.vstack if isinstance(train_rows, np.ndarray) else vstack
        rows = stack([train_rows, features.transform(unlabeled)])
    labels = np.zeros((rows.shape[0], task.num_classes))
    labels[np.arange(len(train.labels)), train.labels] = 1

    scores, degrees = spread(features.distances(rows, rows), labels, options)
    spread_labels = scores / np.sqrt(degrees)[:, None]

    def predict(inputs: Inputs) -> FloatArray:
        distances = features.distances(features.transform(inputs), rows)
        # The nearest node gets the weight 1, so that the weights of far inputs do not all underflow.
        weights = np.exp(-options.gamma * (distances - distances.min(axis=1, keepdims=True)))
        return _normalize(weights @ spread_labels, labels)

    if unlabeled is None:
        return Predictor(predict)
    return Predictor(predict, {"label_entropy": mean_entropy(_normalize(scores[len(train.labels) :], labels))})


def spread(distances: FloatArray, labels: FloatArray, options: LabelSpreading) -> tuple[FloatArray, FloatArray]:
    """Return the labels of all nodes of the graph, and the degrees of the nodes.

    Parameters
    ----------
    distances
        Scaled squared distances between nodes: (n, n).
    labels
        One-hot labels of the nodes, zeros for unlabeled ones: (n, n_classes).
    options
        Share of neighbors' labels and sharpness of the kernel.

    Returns
    -------
    scores
        Labels up to a common factor, at least 0: (n, n_classes).
    degrees
        Sums of the kernel over the other nodes, 1 for a node without neighbors: (n,).
    """
    kernel = np.exp(-options.gamma * distances)
    np.fill_diagonal(kernel, 0)
    degrees = kernel.sum(axis=1)
    degrees[degrees == 0] = 1
    roots = np.sqrt(degrees)
    system = np.eye(len(kernel)) - options.alpha * kernel / roots / roots[:, None]
    return np.maximum(solve(system, labels, assume_a="pos"), 0), degrees


def _normalize(scores: FloatArray, labels: FloatArray) -> FloatArray:
    """Return scores with rows that sum to 1; inputs that no label reaches get the class shares of train."""
    totals = scores.sum(axis=1, keepdims=True)
    probabilities: FloatArray = np.where(
        totals > 0, scores / np.where(totals > 0, totals, 1), labels.sum(axis=0) / labels.sum()
    )
    return probabilities


SINKHORN_ITERATIONS, SINKHORN_TOLERANCE = 1000, 1e-6


def centroids(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Centroids, context: Context
) -> Predictor:
    """Assign the unlabeled inputs to the class centroids of train, and compute the centroids again from both.

    Sources: soft k-means of Ren et al. (2018), https://doi.org/10.48550/arXiv.1803.00676; optimal transport to
    centroids as in PT-MAP, Hu et al. (2021), https://doi.org/10.48550/arXiv.2006.03806. Centroids of texts have unit
    length, as in spherical k-means: otherwise the centroid of many texts is shorter, and therefore nearer to all texts.

    Parameters
    ----------
    unlabeled
        Unlabeled inputs; None in the base arm.
    train
        Labeled inputs.
    task
        The task; it gives the number of classes.
    options
        Encoder, kind of assignment, rounds and sharpness.
    context
        Folders of the fit.

    Returns
    -------
    Predictor
        The classifier: the softmax of negative squared distances, plus the weights of the classes from optimal
        transport. It has the metrics `assignment_entropy` and `centroid_shift` except in the base arm.

    Raises
    ------
    DataError
        If the inputs are texts, and those of train have no words or the encoder is unavailable; or if they are arrays,
        and there is an encoder.
    SpecError
        If this machine has no such device.
    """
    features, train_rows = fit_features(train.inputs, options.encoder, context.folders)
    labels = np.eye(task.num_classes)[train.labels]  # (n_train, n_classes)
    sums, counts = labels.T @ train_rows, labels.sum(axis=0)
    first = centers = _center(features, sums, counts)
    offsets: FloatArray = np.zeros(task.num_classes)
    metrics = {}
    if unlabeled is not None:
        rows = features.transform(unlabeled)
        shares = counts / counts.sum()
        for _ in range(options.rounds):
            assigned = softmax(_scores(features, rows, centers, options, shares)[0], axis=1)
            centers = _center(features, sums + assigned.T @ rows, counts + assigned.sum(axis=0))
        scores, offsets = _scores(features, rows, centers, options, shares)
        shift = np.sqrt(((centers - first) ** 2).sum(axis=1) / features.scale).mean()
        metrics = {"assignment_entropy": mean_entropy(softmax(scores, axis=1)), "centroid_shift": float(shift)}

    def predict(inputs: Inputs) -> FloatArray:
        distances = features.distances(features.transform(inputs), centers)
        probabilities: FloatArray = softmax(offsets - options.gamma * distances, axis=1)
        return probabilities

    return Predictor(predict, metrics)


def balance(scores: FloatArray, shares: FloatArray) -> FloatArray:
    """Return class offsets with which the mean assignment of the inputs has the given class shares (Sinkhorn).

    Rows of `softmax(scores + offsets)` are the optimal transport plan with entropic regularization, times the number of
    rows (Cuturi 2013, https://doi.org/10.48550/arXiv.1306.0895).

    Parameters
    ----------
    scores
        Negative costs in units of the regularization: (n, n_classes).
    shares
        Class shares: (n_classes,), above 0.

    Returns
    -------
    ndarray
        Offsets: (n_classes,).
    """
    offsets = np.zeros(scores.shape[1])
    targets = shares * len(scores)
    for _ in range(SINKHORN_ITERATIONS):
        sums = softmax(scores + offsets, axis=1).sum(axis=0)
        changes = np.log(targets / np.maximum(sums, np.finfo(np.float64).tiny))
        offsets = offsets + changes
        if np.abs(changes).max() <= SINKHORN_TOLERANCE:
            break
    return offsets


def _center(features: Features, sums: FloatArray, counts: FloatArray) -> FloatArray:
    """Return centroids (n_classes, n_features) from weighted sums of rows and the sums of weights."""
    means: FloatArray = sums / counts[:, None]
    if not features.have_unit_length:
        return means
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    return means / np.where(lengths > 0, lengths, 1)


def _scores(
    features: Features, rows: FloatArray, centers: FloatArray, options: Centroids, shares: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the logits of the assignments (n, n_classes), and the offsets of the classes that they contain."""
    scores = -options.gamma * features.distances(rows, centers)
    offsets = balance(scores, shares) if options.assignment == "sinkhorn" else np.zeros(len(centers))
    return scores + offsets, offsets


def bm25(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Bm25, context: Context) -> Predictor:
    """Fit document frequencies and the mean length on train and unlabeled texts; the best matches in train vote.

    Source: Robertson and Zaragoza (2009), https://doi.org/10.1561/1500000019, equation 3.15, with the nonnegative
    inverse document frequency log(1 + (N - n + 0.5) / (n + 0.5)). A text is a query, in which a word counts as often as
    it occurs. Each neighbor votes with its share of the neighbors' scores; the class shares of train count as one more
    neighbor, so that a text without matches has a prediction.

    Parameters
    ----------
    unlabeled
        Unlabeled texts; None in the base arm.
    train
        Labeled texts.
    task
        The task; it gives the number of classes.
    options
        Number of neighbors, saturation and normalization by length.
    context
        Not used.

    Returns
    -------
    Predictor
        The classifier, with the metrics `mean_idf` and `mean_words`.

    Raises
    ------
    DataError
        If the inputs are arrays, or the train texts have no words.
    """
    if isinstance(train.inputs, np.ndarray):
        raise DataError(
            "transductive.bm25 takes texts, and this task's inputs are arrays; use another method of transductive"
        )
    vectorizer = fit_counts(train.inputs)  # words that are not in train never match
    counts = vectorizer.transform(train.inputs)
    texts = [*train.inputs, *(() if unlabeled is None else unlabeled)]
    frequencies = np.bincount(vectorizer.transform(texts).indices, minlength=counts.shape[1])
    idf = np.log1p((len(texts) - frequencies + 0.5) / (frequencies + 0.5))
    analyze = vectorizer.build_analyzer()
    lengths = np.array([len(analyze(text)) for text in texts], dtype=np.float64)

    weights = counts.tocoo()
    relative = lengths[: len(train.inputs)] / lengths.mean()
    saturation = options.k1 * (1 - options.b + options.b * relative)
    weights.data = idf[weights.col] * weights.data * (options.k1 + 1) / (weights.data + saturation[weights.row])
    weights = weights.T.tocsr()  # (n_words, n_train)
    labels = np.eye(task.num_classes)[train.labels]  # (n_train, n_classes)
    shares = labels.mean(axis=0)
    num_neighbors = min(options.num_neighbors, len(labels))

    def predict(inputs: Inputs) -> FloatArray:
        scores = (vectorizer.transform(inputs) @ weights).toarray()  # (n, n_train)
        neighbors = np.argsort(-scores, axis=1, kind="stable")[:, :num_neighbors]
        votes = np.take_along_axis(scores, neighbors, axis=1)
        totals = votes.sum(axis=1, keepdims=True)
        voted = np.einsum("ij,ijk->ik", votes, labels[neighbors]) / np.where(totals > 0, totals, 1)
        probabilities: FloatArray = np.where(totals > 0, (num_neighbors * voted + shares) / (num_neighbors + 1), shares)
        return probabilities

    return Predictor(predict, {"mean_idf": float(idf.mean()), "mean_words": float(lengths.mean())})
