"""Nearest class centroid on tf-idf, which is also fitted on the unlabeled texts."""

from __future__ import annotations

from peekbench import Context, Inputs, Labeled, MethodEntry, Options, Predictor, Task, hookimpl


class Tfidf(Options):
    max_words: int = 1
    """Longest run of words that counts as a term."""


def tfidf(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Tfidf, context: Context) -> Predictor:
    import numpy as np
    from scipy.special import softmax
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import normalize

    vectorizer = TfidfVectorizer(ngram_range=(1, options.max_words)).fit([*train.inputs, *(unlabeled or ())])
    of_class = np.eye(task.num_classes)[train.labels]
    centroids = normalize(of_class.T @ vectorizer.transform(train.inputs))
    return Predictor(lambda texts: softmax(5 * vectorizer.transform(texts) @ centroids.T, axis=1))


@hookimpl
def peekbench_methods() -> list[MethodEntry]:
    return [MethodEntry(name="tfidf", options=Tfidf, method=tfidf, summary="nearest class centroid on tf-idf")]
