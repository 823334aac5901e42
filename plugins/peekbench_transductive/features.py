"""Features of inputs: tf-idf of words or embeddings of texts, and standardized columns of arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from peekbench import DataError, Folders, Inputs
from peekbench.records import FloatArray
from peekbench_encoders.embeddings import Embedder, unit_length
from peekbench_encoders.options import Encoder

Matrix: TypeAlias = Any
"""Features (n, n_features): a sparse matrix of tf-idf, otherwise an array."""


@dataclass(frozen=True, slots=True)
class Features:
    """Features of inputs, and distances between them."""

    transform: Callable[[Inputs], Matrix]
    """Returns the features of inputs: (n, n_features), float64."""
    have_unit_length: bool
    """Whether rows have unit length, as those of texts have, unless a text has no known word and its row is 0."""
    scale: float
    """Mean squared distance between two train inputs; 1 if all are equal."""

    def distances(self, rows: Matrix, others: Matrix) -> FloatArray:
        """Return squared distances in units of `scale`.

        Texts have the distance 2 - 2 cos. A text without known words is therefore as far from all others, including
        itself, as texts that share no word; its Euclidean distance would make it the neighbor of every text.

        Parameters
        ----------
        rows
            Features: (n, n_features).
        others
            Features or centroids: (m, n_features).

        Returns
        -------
        ndarray
            (n, m), at least 0.
        """
        products = rows @ others.T
        products = products.toarray() if hasattr(products, "toarray") else products
        if self.have_unit_length:
            squared = 2 - 2 * products
        else:
            squared = (rows**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2 * products
        distances: FloatArray = np.maximum(squared, 0) / self.scale
        return distances


def fit_features(inputs: Inputs, encoder: Encoder | None, folders: Folders) -> tuple[Features, Matrix]:
    """Fit features on the train inputs. Embeddings need no fit.

    Parameters
    ----------
    inputs
        Train texts, or an array (n_train, n_columns). Columns are standardized, and divided by the square root of their
        number, so that rows have a mean squared length of 1, like texts.
    encoder
        Sentence encoder of the texts; None for tf-idf.
    folders
        Folders of the fit.

    Returns
    -------
    features
        The fitted features.
    rows
        Features of the train inputs: (n_train, n_features).

    Raises
    ------
    DataError
        If the inputs are texts without words and there is no encoder, if they are arrays and there is one, or if its
        model does not exist, is unavailable or cannot be loaded.
    SpecError
        If this machine has no such device.
    """
    if encoder is not None:
        transform, rows = _embed_texts(inputs, Embedder(encoder, folders))
    elif isinstance(inputs, np.ndarray):
        transform, rows = _fit_columns(np.asarray(inputs, dtype=np.float64))
    else:
        transform, rows = _fit_words(inputs)
    are_texts = not isinstance(inputs, np.ndarray)
    return Features(transform, are_texts, _mean_distance(rows, are_texts)), rows


def fit_counts(texts: Inputs) -> CountVectorizer:
    """Fit a vectorizer that counts the words of the train texts.

    Parameters
    ----------
    texts
        Train texts.

    Returns
    -------
    CountVectorizer
        The fitted vectorizer.

    Raises
    ------
    DataError
        If the texts have no words.
    """
    vectorizer = CountVectorizer(dtype=np.float64)
    _check_words(vectorizer, texts)
    return vectorizer.fit(texts)


def column_variances(rows: Matrix) -> FloatArray:
    """Return the variance of each column: (n_features,). A column with equal values has a variance of exactly 0."""
    if isinstance(rows, np.ndarray):
        variances: FloatArray = rows.var(axis=0)
        variances[rows.min(axis=0) == rows.max(axis=0)] = 0  # rounding may give it another variance
        return variances
    means = np.asarray(rows.mean(axis=0)).ravel()
    variances = np.asarray(rows.multiply(rows).mean(axis=0)).ravel() - means**2
    variances[variances < 1e-12 * means**2] = 0
    return variances


def _embed_texts(inputs: Inputs, embedder: Embedder) -> tuple[Callable[[Inputs], Matrix], Matrix]:
    def transform(inputs: Inputs) -> Matrix:
        return unit_length(embedder(inputs))

    return transform, transform(inputs)


def _fit_words(texts: Inputs) -> tuple[Callable[[Inputs], Matrix], Matrix]:
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    _check_words(vectorizer, texts)
    rows = vectorizer.fit_transform(texts)
    return lambda inputs: vectorizer.transform(inputs), rows


def _check_words(vectorizer: CountVectorizer, texts: Inputs) -> None:
    if not any(map(vectorizer.build_analyzer(), texts)):
        raise DataError(
            f"the {len(texts)} train texts have no word of two or more letters or digits, and the transductive methods "
            "need words as features; draw more train texts, or remove the task"
        )


def _fit_columns(array: FloatArray) -> tuple[Callable[[Inputs], Matrix], Matrix]:
    means, variances = array.mean(axis=0), column_variances(array)
    deviations = np.sqrt(np.where(variances > 0, variances, 1.0)) * np.sqrt(array.shape[1])

    def transform(inputs: Inputs) -> Matrix:
        return (np.asarray(inputs, dtype=np.float64) - means) / deviations

    return transform, transform(array)


def _mean_distance(rows: Matrix, have_unit_length: bool) -> float:
    """Return the mean squared distance between two rows, without a matrix of all pairs; 1 if all are equal."""
    num_rows = rows.shape[0]
    if num_rows == 1:
        return 1.0
    own = float((rows**2).sum() if isinstance(rows, np.ndarray) else rows.multiply(rows).sum())
    squares = float(num_rows) if have_unit_length else own  # texts without words count as unit vectors, too
    total = np.asarray(rows.sum(axis=0)).ravel()
    mean = 2 * ((num_rows - 1) * squares - float(total @ total) + own) / (num_rows * (num_rows - 1))
    return mean if mean > 1e-12 else 1.0  # rounding may make the distance of equal rows positive
