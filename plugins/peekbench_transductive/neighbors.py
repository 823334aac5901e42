"""Methods of distances and matches: label spreading, class centroids, and BM25."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve
from scipy.sparse import vstack
from scipy.special import softmax

from peekbench import Context, DataError, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray
from peekbench_transductive import Bm25, Centroids, LabelSpreading
from peekbench_transductive.features import Features, Matrix, fit_counts, fit_features
from peekbench_transductive.linear import mean_entropy


def label_spreading(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: LabelSpreading, context: Context
) -> Predictor:
    """Spread labels over the graph of train and unlabeled inputs, into which each other input is inserted.

    Source: Zhou et al. (2004), "Learning with local and global consistency", NeurIPS 16: the limit
    F = (1 - alpha) (I - alpha S)^-1 Y, where S is the kernel matrix W with a diagonal of 0, normalized by the roots of
    the degrees d. An input that was an unlabeled input of the fit has its label in the graph. Another input gets the
    label that it has in the graph with this input as one more unlabeled input, so both are predicted in the same way.

    Parameters
    ----------
    unlabeled
        Unlabeled inputs; in the base arm None, and each input alone is inserted into the graph of the train inputs.
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
    rows, numbers = train_rows, {}
    if unlabeled is not None:
        stack = np.vstack if isinstance(train_rows, np.ndarray) else vstack
        rows = stack([train_rows, features.transform(unlabeled)])
        numbers = {key: number for number, key in enumerate(_keys(unlabeled), start=len(train.labels))}
    labels = np.zeros((rows.shape[0], task.num_classes))
    labels[np.arange(len(train.labels)), train.labels] = 1
    graph = spread(np.exp(-options.gamma * features.distances(rows, rows)), labels, options.alpha)

    def predict(inputs: Inputs) -> FloatArray:
        known = np.array([numbers.get(key, -1) for key in _keys(inputs)])
        scores = graph.scores[known]
        if (known < 0).any():
            new = features.transform(inputs)[known < 0]
            scores[known < 0] = graph.insert(np.exp(-options.gamma * features.distances(new, rows)))
        # The last digits of a product of matrices depend on its threads and on memory, and iterations add to them.
        return np.round(_normalize(scores, labels), DIGITS)

    if unlabeled is None:
        return Predictor(predict)
    return Predictor(predict, {"label_entropy": mean_entropy(_normalize(graph.scores[len(train.labels) :], labels))})


def _keys(inputs: Inputs) -> Sequence[str | bytes]:
    """Return a key for each input: the text itself, or the bytes of a row."""
    return [row.tobytes() for row in inputs] if isinstance(inputs, np.ndarray) else inputs


@dataclass(frozen=True, slots=True)
class SpreadGraph:
    """A graph over which labels have spread."""

    kernel: FloatArray
    """Kernel of the nodes with a diagonal of 0: (n, n)."""
    alpha: float
    """Share of neighbors' labels."""
    labels: FloatArray
    """One-hot labels of the nodes, zeros for unlabeled ones: (n, n_classes)."""
    scores: FloatArray
    """Labels of the nodes up to a common factor, at least 0: (n, n_classes)."""

    def insert(self, kernel: FloatArray) -> FloatArray:
        """Return the label that each input gets in a graph with this input as one more unlabeled node.

        An input adds its kernel w to the degrees d of the nodes, so each input has a matrix S of its own. If its own
        equation is eliminated, its label is w / sqrt(d + w) times (I - alpha S)^-1 Y, up to a factor. The systems of
        all inputs are solved at once by conjugate gradients.

        Parameters
        ----------
        kernel
            Kernel of the inputs and the nodes: (n_inputs, n).

        Returns
        -------
        ndarray
            Labels up to a factor of each row, at least 0: (n_inputs, n_classes).
        """
        degrees = self.kernel.sum(axis=1) + kernel
        roots = np.sqrt(np.where(degrees > 0, degrees, 1))
        residuals = kernel / roots
        residuals /= np.maximum(residuals.max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        solutions, directions = np.zeros_like(residuals), residuals.copy()
        norms = (residuals**2).sum(axis=1)
        bounds = SQUARED_TOLERANCE * norms
        for _ in range(MAX_ITERATIONS):
            is_open = norms > bounds
            if not is_open.any():
                break
            products = directions - self.alpha * (directions / roots @ self.kernel) / roots
            curvatures = (directions * products).sum(axis=1)
            lengths = np.where(is_open, norms, 0) / np.where(is_open, curvatures, 1)
            solutions += lengths[:, None] * directions
            residuals -= lengths[:, None] * products
            previous, norms = norms, (residuals**2).sum(axis=1)
            directions = residuals + (norms / np.where(is_open, previous, 1))[:, None] * directions
        labels: FloatArray = np.maximum(solutions @ self.labels, 0)
        return labels


SQUARED_TOLERANCE, MAX_ITERATIONS = 1e-24, 2000  # of conjugate gradients
DIGITS = 8  # of probabilities


def spread(kernel: FloatArray, labels: FloatArray, alpha: float) -> SpreadGraph:
    """Spread labels over a graph.

    Parameters
    ----------
    kernel
        Kernel of the nodes: (n, n).
    labels
        One-hot labels of the nodes, zeros for unlabeled ones: (n, n_classes).
    alpha
        Share of neighbors' labels.
    """
    kernel = kernel - np.diag(np.diag(kernel))
    degrees = kernel.sum(axis=1)
    roots = np.sqrt(np.where(degrees > 0, degrees, 1))
    scores = solve(np.eye(len(kernel)) - alpha * kernel / roots / roots[:, None], labels, assume_a="pos")
    return SpreadGraph(kernel, alpha, labels, np.maximum(scores, 0))


def _normalize(scores: FloatArray, labels: FloatArray) -> FloatArray:
    """Return scores with rows that sum to 1; inputs that no label reaches get the class shares of train."""
    totals = scores.sum(axis=1, keepdims=True)
    probabilities: FloatArray = np.where(
        totals > 0, scores / np.where(totals > 0, totals, 1), labels.sum(axis=0) / labels.sum()
    )
    return probabilities


def centroids(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Centroids, context: Context
) -> Predictor:
    """Assign the unlabeled inputs to the class centroids of train, and compute the centroids again from both.

    Source: soft k-means of Ren et al. (2018), https://doi.org/10.48550/arXiv.1803.00676, equation 3, with a weight of
    the unlabeled inputs. Centroids of texts have unit length, as in spherical k-means: otherwise the centroid of many
    texts is shorter, and therefore nearer to all texts.

    Parameters
    ----------
    unlabeled
        Unlabeled inputs; None in the base arm.
    train
        Labeled inputs.
    task
        The task; it gives the number of classes.
    options
        Encoder, weight of the unlabeled inputs and sharpness.
    context
        Folders of the fit.

    Returns
    -------
    Predictor
        The classifier: the softmax of negative squared distances. It has the metrics `assignment_entropy` and
        `centroid_shift` except in the base arm.

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
    centers = _center(features, sums, counts)
    metrics = {}

    def assign(rows: Matrix) -> FloatArray:
        probabilities: FloatArray = softmax(-options.gamma * features.distances(rows, centers), axis=1)
        return probabilities

    if unlabeled is not None:
        rows, first = features.transform(unlabeled), centers
        assigned = assign(rows)
        weights = options.unlabeled_weight * assigned
        centers = _center(features, sums + weights.T @ rows, counts + weights.sum(axis=0))
        shift = np.sqrt(((centers - first) ** 2).sum(axis=1) / features.scale).mean()
        metrics = {"assignment_entropy": mean_entropy(assigned), "centroid_shift": float(shift)}
    return Predictor(lambda inputs: assign(features.transform(inputs)), metrics)


def _center(features: Features, sums: FloatArray, counts: FloatArray) -> FloatArray:
    """Return centroids (n_classes, n_features) from weighted sums of rows and the sums of weights."""
    means: FloatArray = sums / counts[:, None]
    if not features.have_unit_length:
        return means
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    return means / np.where(lengths > 0, lengths, 1)


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
