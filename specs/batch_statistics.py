"""A joint predictor: it standardizes features with the mean and deviation of the texts that it predicts together."""

from __future__ import annotations

from typing import Any

from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline


def standardize(features: Any) -> Any:
    """Return features of shape (n, d) with mean 0 and deviation 1; those of a single text are 0."""
    return (features - features.mean(axis=0)) / (features.std(axis=0) + 1e-9)


def fit(unlabeled: Any, train: Any) -> Any:
    """Learn components from the train and the unlabeled texts, and a classifier from the train texts."""
    components = make_pipeline(TfidfVectorizer(), TruncatedSVD(10, random_state=0))
    components.fit([*train.inputs, *(unlabeled or ())])
    model = LogisticRegression().fit(standardize(components.transform(train.inputs)), train.labels)
    return lambda texts: model.predict_proba(standardize(components.transform(texts)))
