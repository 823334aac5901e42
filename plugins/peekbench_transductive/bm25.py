"""BM25: word weights from all texts, and the vote of the train texts that match a text best."""

from __future__ import annotations

import numpy as np

from peekbench import Context, DataError, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray
from peekbench_transductive import Bm25
from peekbench_transductive.features import fit_counts


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
