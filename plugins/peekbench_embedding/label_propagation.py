"""Label propagation: a method that labels its unlabeled texts, and needs a rule for all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve
from scipy.special import entr

from peekbench import Context, DataError, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray, IntArray
from peekbench_embedding.options import LabelPropagation
from peekbench_encoders.embeddings import Embedder

TOLERANCE = 1e-14  # relative norm of the residuals
MAX_ITERATIONS = 100


def solve_shifted(matrix: FloatArray, shifts: FloatArray) -> FloatArray:
    """Return the solution x of (matrix + diag(w)) x = w for each row w of the shifts: (n, size).

    Source: conjugate gradients of all systems at once, with the inverse of the matrix as preconditioner (Saad 2003,
    "Iterative methods for sparse linear systems", algorithm 9.1). They need few steps if each shift changes few
    entries of the diagonal much. Systems that need too many are solved directly.

    Parameters
    ----------
    matrix
        Symmetric positive definite matrix: (size, size).
    shifts
        Shifts of its diagonal, at least 0: (n, size).

    Raises
    ------
    LinAlgError
        If the matrix or a shifted matrix is singular.

    Examples
    --------
    >>> solve_shifted(np.array([[2.0, -1.0], [-1.0, 2.0]]), np.array([[0.0, 0.0], [1.0, 1.0]])).round(6).tolist()
    [[0.0, 0.0], [0.5, 0.5]]
    """
    inverse = np.linalg.inv(matrix)
    solutions, residuals = np.zeros_like(shifts), shifts.copy()
    directions = residuals @ inverse
    norms = _row_products(residuals, directions)
    bounds = TOLERANCE**2 * norms
    for _ in range(MAX_ITERATIONS):
        is_open = ~(np.abs(norms) <= bounds)  # also if it is not a number
        if not is_open.any():
            break
        products = directions @ matrix + shifts * directions
        lengths = _divide(norms, _row_products(directions, products), is_open)
        solutions += lengths * directions
        residuals -= lengths * products
        preconditioned = residuals @ inverse
        previous, norms = norms, _row_products(residuals, preconditioned)
        directions = preconditioned + _divide(norms, previous, is_open) * directions
    for row in np.flatnonzero(~(np.abs(norms) <= bounds)):
        solutions[row] = solve(matrix + np.diag(shifts[row]), shifts[row], assume_a="pos")
    return solutions


def _row_products(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the inner product of each pair of rows: (n,)."""
    products: FloatArray = np.einsum("ij,ij->i", first, second)
    return products


def _divide(numerators: FloatArray, denominators: FloatArray, is_open: NDArray[np.bool_]) -> FloatArray:
    """Return the quotients of the systems that are not solved yet, and 0 for the others: (n, 1)."""
    return np.divide(numerators, denominators, out=np.zeros_like(numerators), where=is_open)[:, None]


def label_propagation(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: LabelPropagation, context: Context
) -> Predictor:
    """Propagate labels over the graph of train and unlabeled texts, and label other texts by a rule.

    Source: Zhu, Ghahramani and Lafferty (2003), "Semi-supervised learning using Gaussian fields and harmonic
    functions", ICML, equation 5: the label of an unlabeled text is the weighted mean of the labels of all other texts,
    with the weight exp(-gamma d² / m). A text that was an unlabeled text of the fit keeps its label in the graph. For
    another text, the rule `insert` computes this graph again with the text as one more unlabeled text.

    Parameters
    ----------
    unlabeled
        Unlabeled texts; in the base arm None, and each text alone is inserted into the graph of the train texts.
    train
        Labeled texts.
    task
        The task; it gives the number of classes.
    options
        Encoder, sharpness of the weights and rule for other texts.
    context
        Folders of the fit.

    Returns
    -------
    Predictor
        The classifier, with the metric `label_entropy` except in the base arm.

    Raises
    ------
    DataError
        If the inputs are arrays, gamma is too large for the distances, or the model does not exist, is unavailable or
        cannot be loaded.
    SpecError
        If this machine has no such device.
    """
    embed = Embedder(options, context.folders)
    texts: Inputs = () if unlabeled is None else unlabeled
    rows = embed(train.inputs)
    graph = make_graph(rows, train.labels, embed(texts) if texts else rows[:0], task.num_classes, options.gamma)
    label = graph.copy_nearest if texts and options.rule == "nearest" else graph.insert
    numbers = {text: number for number, text in enumerate(texts)}

    def predict(inputs: Inputs) -> FloatArray:
        new = [row for row, text in enumerate(inputs) if text not in numbers]
        probabilities = np.empty((len(inputs), task.num_classes))
        if new:
            probabilities[new] = label(embed([inputs[row] for row in new]))
        known = np.setdiff1d(np.arange(len(inputs)), new)
        probabilities[known] = graph.labels[[numbers[inputs[row]] for row in known]]
        return probabilities

    return Predictor(predict, {"label_entropy": float(entr(graph.labels).sum(axis=1).mean())} if texts else {})


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph of train texts, whose labels are known, and unlabeled texts."""

    train_rows: FloatArray
    """Embeddings of the train texts: (n_train, n_features)."""
    train_labels: FloatArray
    """Their one-hot labels: (n_train, n_classes)."""
    rows: FloatArray
    """Embeddings of the unlabeled texts: (n_unlabeled, n_features)."""
    laplacian: FloatArray
    """Sums of weights on the diagonal, less the weights between unlabeled texts: (n_unlabeled, n_unlabeled)."""
    sources: FloatArray
    """Labels of the train texts times the weights between them and unlabeled texts: (n_unlabeled, n_classes)."""
    labels: FloatArray
    """Labels of the unlabeled texts, with rows that sum to 1: (n_unlabeled, n_classes)."""
    sharpness: float
    """Factor of squared distances."""

    def insert(self, rows: FloatArray) -> FloatArray:
        """Return the label that each text gets in a graph with this text as one more unlabeled text.

        Parameters
        ----------
        rows
            Embeddings of the texts: (n, n_features).

        Returns
        -------
        ndarray
            Labels with rows that sum to 1: (n, n_classes).
        """
        to_train, to_nodes = (_weights(rows, others, self.sharpness) for others in (self.train_rows, self.rows))
        try:
            # The equation of the text itself is eliminated, which leaves those of the nodes.
            passed = solve_shifted(self.laplacian, to_nodes) @ self.sources if len(self.rows) else 0.0
        except np.linalg.LinAlgError as error:
            raise _no_weights_error() from error
        return _normalize(to_train @ self.train_labels + passed)

    def copy_nearest(self, rows: FloatArray) -> FloatArray:
        """Return the label of the nearest unlabeled text; shapes as for `insert`."""
        copied: FloatArray = self.labels[_weights(rows, self.rows, self.sharpness).argmax(axis=1)]
        return copied


def make_graph(
    train_rows: FloatArray, labels: IntArray | FloatArray, rows: FloatArray, num_classes: int, gamma: float
) -> Graph:
    """Return the graph of train and unlabeled texts, and the labels of the latter.

    Parameters
    ----------
    train_rows
        Embeddings of the train texts: (n_train, n_features).
    labels
        Their classes: (n_train,).
    rows
        Embeddings of the unlabeled texts: (n_unlabeled, n_features); possibly none.
    num_classes
        Number of classes.
    gamma
        Sharpness of the weights, in units of the mean squared distance between train texts.

    Raises
    ------
    DataError
        If the weights between some texts and all train texts are too small for a float.
    """
    centered = train_rows - train_rows.mean(axis=0)
    mean_distance = 2 * float((centered**2).sum()) / max(len(train_rows) - 1, 1)
    sharpness = gamma / mean_distance if mean_distance > 1e-12 else 0.0  # equal texts have equal weights
    to_train, to_nodes = (_weights(rows, others, sharpness) for others in (train_rows, rows))
    np.fill_diagonal(to_nodes, 0)
    train_labels = np.eye(num_classes)[labels]
    sources = to_train @ train_labels
    laplacian = np.diag(to_train.sum(axis=1) + to_nodes.sum(axis=1)) - to_nodes
    try:
        solved = _normalize(solve(laplacian, sources, assume_a="pos")) if len(rows) else sources
    except np.linalg.LinAlgError as error:
        raise _no_weights_error() from error
    return Graph(train_rows, train_labels, rows, laplacian, sources, solved, sharpness)


def _weights(rows: FloatArray, others: FloatArray, sharpness: float) -> FloatArray:
    """Return the weights between two sets of texts: (n, n_features) and (m, n_features) to (n, m)."""
    squared = (rows**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2 * rows @ others.T
    weights: FloatArray = np.exp(-sharpness * np.maximum(squared, 0))
    return weights


def _normalize(labels: FloatArray) -> FloatArray:
    """Remove rounding errors from labels, whose rows sum to 1 up to them or up to a factor."""
    positive = np.maximum(labels, 0)
    sums = positive.sum(axis=1, keepdims=True)
    if not (sums > 0).all():
        raise _no_weights_error()
    normalized: FloatArray = positive / sums
    return normalized


def _no_weights_error() -> DataError:
    return DataError(
        "gamma: the weights between some texts and all train texts are 0, because the train texts are much more alike; "
        "choose a smaller gamma"
    )
