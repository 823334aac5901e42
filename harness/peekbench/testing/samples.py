"""Synthetic rows to check methods and audits on."""

from __future__ import annotations

import random

import numpy as np

from peekbench.records.data import Dataset


def sample_texts(num_rows: int = 240, *, seed: int = 0) -> Dataset:
    """Make synthetic texts of three classes that some of their words distinguish.

    Parameters
    ----------
    num_rows
        Number of texts.
    seed
        Seed of the words.

    Returns
    -------
    Dataset
        Texts with labels 0, 1 and 2, which alternate.

    Examples
    --------
    >>> data = sample_texts(30)
    >>> data.class_names, len(data.inputs)
    (('first', 'second', 'third'), 30)
    """
    rng = random.Random(seed)  # noqa: S311 - no secret
    labels = [row % 3 for row in range(num_rows)]
    texts = [
        " ".join(
            f"common{rng.randrange(80)}" if rng.random() < 0.6 else f"{'abc'[label]}word{rng.randrange(25)}"
            for _ in range(rng.randrange(6, 16))
        )
        + f" number{row}"
        for row, label in enumerate(labels)
    ]
    instruction = "The text is made of synthetic words. Answer with its class."
    return Dataset(texts, labels, ("first", "second", "third"), instruction=instruction)


def sample_unlabeled_texts(num_rows: int = 240, *, seed: int = 0) -> Dataset:
    """Make synthetic texts for language modeling: those of `sample_texts`, without labels.

    Parameters
    ----------
    num_rows
        Number of texts.
    seed
        Seed of the words.

    Returns
    -------
    Dataset
        Texts, with their numbers of bytes as labels.

    Examples
    --------
    >>> sample_unlabeled_texts(30).kind
    'language_modeling'
    """
    return Dataset(sample_texts(num_rows, seed=seed).inputs, kind="language_modeling")


def sample_numbers(num_rows: int = 240, *, seed: int = 0) -> Dataset:
    """Make a synthetic linear regression task with four features.

    Parameters
    ----------
    num_rows
        Number of rows.
    seed
        Seed of the features and of the noise.

    Returns
    -------
    Dataset
        Inputs of shape (num_rows, 4) and targets of shape (num_rows,).

    Examples
    --------
    >>> sample_numbers(30).inputs.shape
    (30, 4)
    """
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(num_rows, 4))
    return Dataset(features, features @ np.arange(1.0, 5.0) + rng.normal(size=num_rows), kind="regression")


def sample_features(num_rows: int = 240, *, seed: int = 0) -> Dataset:
    """Make a synthetic classification task with four features: the targets of `sample_numbers` are low or high.

    Parameters
    ----------
    num_rows
        Number of rows.
    seed
        Seed of the features and of the noise.

    Returns
    -------
    Dataset
        Inputs of shape (num_rows, 4) and labels of shape (num_rows,), with two classes of the same size.

    Examples
    --------
    >>> sample_features(30).input_kind
    'features'
    """
    numbers = sample_numbers(num_rows, seed=seed)
    labels = (np.argsort(np.argsort(numbers.labels)) >= num_rows // 2).astype(np.int64)
    return Dataset(numbers.inputs, labels, ("low", "high"))
