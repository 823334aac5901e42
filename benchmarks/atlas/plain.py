"""Repeats cells of the official test sets with scikit-learn alone, to check peekbench's numbers.

    python benchmarks/atlas/plain.py TRAIN.csv TEST.csv [--divisions 10]

The files have the columns text and label. Prints the usual score, the score to publish and the bias in points, with
the standard error of the bias over divisions, of three methods.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from threadpoolctl import threadpool_limits

Texts: TypeAlias = Any  # arrays or series of strings
Fit = Callable[[Texts, Texts, Texts, int], Callable[[Texts], Texts]]
"""Train texts, their labels, unlabeled texts and a seed to predicted labels."""
NUM_FOLDS = 5


def fit_lsa(num_components: int) -> Fit:
    """Return a fit of tf-idf and an SVD on all texts, and of a classifier on the train texts."""

    def fit(train: Texts, labels: Texts, unlabeled: Texts, seed: int) -> Callable[[Texts], Texts]:
        svd = TruncatedSVD(num_components, random_state=seed)
        embed = make_pipeline(TfidfVectorizer(sublinear_tf=True), svd, Normalizer()).fit([*train, *unlabeled])
        classifier = LogisticRegression(max_iter=1000).fit(embed.transform(train), labels)
        return lambda texts: classifier.predict(embed.transform(texts))

    return fit


def fit_tfidf(train: Texts, labels: Texts, unlabeled: Texts, seed: int) -> Callable[[Texts], Texts]:
    """Fit tf-idf on all texts, and a classifier on the train texts."""
    vectorizer = TfidfVectorizer(sublinear_tf=True).fit([*train, *unlabeled])
    classifier = LogisticRegression(C=10, max_iter=1000).fit(vectorizer.transform(train), labels)
    return lambda texts: classifier.predict(vectorizer.transform(texts))


METHODS: dict[str, Fit] = {"tfidf": fit_tfidf, "lsa-10": fit_lsa(10), "lsa-50": fit_lsa(50)}


def measure(fit: Fit, train: pd.DataFrame, test: pd.DataFrame, num_divisions: int) -> tuple[float, float, list[float]]:
    """Return the usual score, the score to publish, and the bias of each division."""
    texts, labels = test["text"].to_numpy(), test["label"].to_numpy()
    usual, publish, biases = [], [], []
    for division in range(num_divisions):
        everything = fit(train["text"], train["label"], texts, division)
        usual.append(np.mean(everything(texts) == labels))
        own, others = np.zeros(len(texts)), np.zeros(len(texts))
        for kept, fold in KFold(NUM_FOLDS, shuffle=True, random_state=division).split(texts):
            is_right = fit(train["text"], train["label"], texts[kept], division)(texts) == labels
            own[fold] = is_right[fold]
            others[kept] += is_right[kept] / (NUM_FOLDS - 1)
        publish.append(own.mean())
        biases.append(float(others.mean() - own.mean()))
    return float(np.mean(usual)), float(np.mean(publish)), biases


def main() -> None:
    """Print a row for each method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--divisions", type=int, default=10)
    arguments = parser.parse_args()
    threadpool_limits(1)  # several threads wait for each other on matrices of this size
    train, test = pd.read_csv(arguments.train), pd.read_csv(arguments.test)
    print("| method | usual | to publish | bias | standard error |\n|---|---|---|---|---|")
    for name, fit in METHODS.items():
        usual, publish, biases = measure(fit, train, test, arguments.divisions)
        error = np.std(biases, ddof=1) / np.sqrt(len(biases))
        print(
            f"| {name} | {usual:.2%} | {publish:.2%} | {100 * np.mean(biases):+.2f} | {100 * error:.2f} |", flush=True
        )


if __name__ == "__main__":
    main()
