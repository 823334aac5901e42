"""Pipelines of scikit-learn for `all_rows.py`; each method of its specs lets one step see the unlabeled rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler


class HighestVariance(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Keep the half of the columns that has the largest variance."""

    def fit(self, rows: Any, labels: Any = None) -> Self:
        """Choose the columns; labels are not used."""
        number = max(1, rows.shape[1] // 2)
        self.columns_ = np.sort(np.argsort(-rows.var(axis=0), kind="stable")[:number])
        return self

    def transform(self, rows: Any) -> Any:
        """Return the chosen columns."""
        return rows[:, self.columns_]


def _fill() -> Any:
    return SimpleImputer(keep_empty_features=True)


def _logistic() -> Any:
    return LogisticRegression(max_iter=2000)


scaled_neighbors = make_pipeline(_fill(), StandardScaler(), KNeighborsClassifier())
ranged_neighbors = make_pipeline(_fill(), MinMaxScaler(), KNeighborsClassifier())
scaled_logistic = make_pipeline(_fill(), StandardScaler(), _logistic())
components = make_pipeline(_fill(), StandardScaler(), PCA(0.9), _logistic())
selected = make_pipeline(_fill(), MinMaxScaler(), HighestVariance(), _logistic())
filled_by_neighbors = make_pipeline(StandardScaler(), KNNImputer(keep_empty_features=True), _logistic())
