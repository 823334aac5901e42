"""Shards of a task's rows, random orders of each shard, and tests of the published order against them.

The scores of orders come from other modules: log likelihoods of a language model, or similarities of neighboring rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ttest_1samp

Order: TypeAlias = NDArray[np.int64]
"""Row numbers within a shard; shape `(num_rows,)`."""
OrderScores: TypeAlias = NDArray[np.float64]
"""One row per shard, one column per order, the published order first; shape `(num_shards, 1 + num_permutations)`."""
Similarity: TypeAlias = NDArray[np.float64]
"""Similarity of every pair of rows; shape `(num_rows, num_rows)`."""

NUM_DRAWS = 9_999  # of the exact test, so its p-value is a multiple of 1 / 10,000
TOLERANCE = 1e-9  # relative difference below which two sums count as equal


@dataclass(frozen=True, slots=True)
class Shard:
    """A run of neighboring rows, which are shuffled among themselves."""

    first: int
    """Position of the shard's first row in the task."""
    orders: tuple[Order, ...]
    """Orders of the shard's rows; the published order first."""


def make_shards(num_rows: int, num_shards: int, num_permutations: int, seed: Sequence[int]) -> list[Shard]:
    """Cut rows into shards and draw random orders of each, with replacement.

    Parameters
    ----------
    num_rows
        Number of rows of the task.
    num_shards
        Number of shards; their sizes differ by at most one row.
    num_permutations
        Random orders per shard.
    seed
        Seed of the orders.
    """
    shards = []
    for number, rows in enumerate(np.array_split(np.arange(num_rows), num_shards)):
        generator = np.random.default_rng([*seed, number])
        drawn = (generator.permutation(len(rows)) for _ in range(num_permutations))
        shards.append(Shard(int(rows[0]), (np.arange(len(rows)), *drawn)))
    return shards


@dataclass(frozen=True, slots=True)
class Preference:
    """Comparison of the scores of published orders with those of random orders."""

    difference: float
    """Score of the published order minus the mean score of random orders, averaged over shards."""
    p_t: float | None
    """P-value of the one-sided t test over shards; None if the difference is the same in all shards."""
    p_exact: float
    """Probability of a total at least this high if each shard's published order were one of its orders at random."""


def compare_orders(scores: OrderScores, seed: Sequence[int]) -> Preference:
    """Test whether published orders score higher than random ones.

    The t test is that of Oren et al. (2023), https://arxiv.org/abs/2310.17623. The exact test uses the same scores. If
    the rows of a shard are exchangeable, then each of the scores of its orders is equally likely to be that of the
    published order. Totals over shards, with one score drawn at random from each shard, therefore have the distribution
    of the total of the published orders. This holds for any distribution of the scores, even if it differs between
    shards.

    Parameters
    ----------
    scores
        Scores of all orders of each shard.
    seed
        Seed of the draws of the exact test.
    """
    differences = scores[:, 0] - scores[:, 1:].mean(axis=1)
    is_constant = bool(np.ptp(differences) <= TOLERANCE * np.abs(scores).max(initial=0))
    p_t = None if is_constant else float(ttest_1samp(differences, 0, alternative="greater").pvalue)
    generator = np.random.default_rng(seed)
    totals = np.zeros(NUM_DRAWS)
    for shard in scores:
        totals += shard[generator.integers(0, len(shard), NUM_DRAWS)]
    published = scores[:, 0].sum()
    num_as_high = int((totals >= published - TOLERANCE * max(1.0, abs(published))).sum())
    return Preference(float(differences.mean()), p_t, (1 + num_as_high) / (1 + NUM_DRAWS))


def neighbor_scores(shards: Sequence[Shard], similarities: Sequence[Similarity]) -> OrderScores:
    """Return the summed similarity of neighboring rows in each order.

    Parameters
    ----------
    shards
        Shards with their orders.
    similarities
        The similarity matrix of each shard's rows.
    """
    return np.array(
        [
            [math.fsum(similarity[order[:-1], order[1:]]) for order in shard.orders]
            for shard, similarity in zip(shards, similarities, strict=True)
        ]
    )


def word_similarity(texts: Sequence[str]) -> Similarity:
    """Return the Jaccard similarity of the words of every pair of texts."""
    words = [frozenset(text.lower().split()) for text in texts]
    pairs = ((len(first & second), len(first | second)) for first in words for second in words)
    return np.array([shared / total if total else 1.0 for shared, total in pairs]).reshape(len(texts), len(texts))


def label_similarity(labels: Sequence[float]) -> Similarity:
    """Return 1 for every pair of rows with the same label, and 0 for all other pairs."""
    values = np.asarray(labels)
    similarity: Similarity = np.equal.outer(values, values).astype(np.float64)
    return similarity
