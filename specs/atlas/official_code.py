"""Tasks and methods of the official specs: rows with a fixed test set, and methods that users write themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

import peekbench as pb
from peekbench.records.data import Split

MAX_TEST = 1000


def load_texts(source: str) -> pb.Dataset:
    """Return the rows of a task without near copies; a third of them, at most 1,000, are always the test set."""
    rows = pb.load_dataset(source, {"drop_duplicates": "near"})
    order, splits = _split(len(rows.labels))
    texts, labels = [rows.inputs[row] for row in order], np.asarray(rows.labels)[order]
    return pb.Dataset(texts, labels, rows.class_names, splits=splits, instruction=rows.instruction)


def load_table(table: str) -> pb.Dataset:
    """Return a table of scikit-learn without copies of a row; a third of the rows is always the test set."""
    found = getattr(datasets, f"load_{table}")()
    _, rows = np.unique(found.data, axis=0, return_index=True)
    order, splits = _split(len(rows))
    rows = rows[order]
    return pb.Dataset(found.data[rows], found.target[rows], tuple(map(str, found.target_names)), splits=splits)


def _split(num_rows: int) -> tuple[list[int], list[Split]]:
    order = np.random.default_rng(0).permutation(num_rows)
    num_test = min(MAX_TEST, num_rows // 3)
    return order.tolist(), ["test" if position < num_test else "train" for position in range(num_rows)]


tfidf = make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(C=10, max_iter=1000))
"""Words and weights of all texts, as from a vectorizer that was fitted on the complete corpus."""

spreading = make_pipeline(TfidfVectorizer(sublinear_tf=True), LabelSpreading(kernel="knn", n_neighbors=10))
"""Label spreading over a graph of nearest neighbors."""


def naive_bayes(unlabeled: Any, train: Any, task: Any, rounds: int = 10) -> Callable[[Any], Any]:
    """Fit multinomial naive Bayes by expectation maximization (Nigam et al. 2000, 10.1023/A:1007692713085)."""
    texts = [] if unlabeled is None else list(unlabeled)
    vectorizer = CountVectorizer().fit([*train.inputs, *texts])
    known, counts = vectorizer.transform(train.inputs), vectorizer.transform([*train.inputs, *texts])
    labels = np.eye(task.num_classes)[train.labels]
    model = MultinomialNB().fit(known, train.labels)
    for _ in range(rounds if texts else 0):
        shares = np.vstack([labels, model.predict_proba(counts[known.shape[0] :])])
        # Each text counts once for each class, weighted by its share.
        classes = np.repeat(np.arange(task.num_classes), len(shares))
        rows = np.tile(np.arange(len(shares)), task.num_classes)
        model = MultinomialNB().fit(counts[rows], classes, sample_weight=shares.T.ravel())
    return lambda inputs: model.predict_proba(vectorizer.transform(inputs))


boosting = SelfTrainingClassifier(HistGradientBoostingClassifier(max_iter=50), threshold=0.9)
"""Boosted trees, fitted again with their own confident predictions as labels."""

graph = make_pipeline(StandardScaler(), LabelSpreading(kernel="knn", n_neighbors=7))
"""Label spreading over a graph of nearest rows."""

quantiles = make_pipeline(QuantileTransformer(n_quantiles=50), LogisticRegression(max_iter=1000))
"""Ranks of each feature among all rows, then a linear model."""

whitened_neighbors = make_pipeline(PCA(n_components=0.95, whiten=True), KNeighborsClassifier())
"""Nearest neighbors by distances that are whitened with all rows."""

clusters = make_pipeline(StandardScaler(), KMeans(20, n_init=1, random_state=0), LogisticRegression(max_iter=1000))
"""Distances to the centers of clusters of all rows, then a linear model."""
