"""Tasks and methods of the official specs: rows with a fixed test set, and methods that users write themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import LabelSpreading

import peekbench as pb
from peekbench.records.data import Split

MAX_TEST = 1000


def load_texts(source: str) -> pb.Dataset:
    """Return the rows of a task without near copies; a third of them, at most 1,000, are always the test set."""
    rows = pb.load_dataset(source, {"drop_duplicates": "near"})
    order = np.random.default_rng(0).permutation(len(rows.labels))
    num_test = min(MAX_TEST, len(order) // 3)
    splits: list[Split] = ["test" if position < num_test else "train" for position in range(len(order))]
    texts, labels = [rows.inputs[row] for row in order], np.asarray(rows.labels)[order]
    return pb.Dataset(texts, labels, rows.class_names, splits=splits, instruction=rows.instruction)


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
