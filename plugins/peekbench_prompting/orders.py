"""Orders of a task's rows: which rows are shuffled among themselves, how, and whether the published order stands out.

Nothing here knows where an order's score comes from: a language model's log likelihood, or how alike neighbors are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Order: TypeAlias = NDArray[np.int64]
    Scores: TypeAlias = NDArray[np.float64]
    """One row a shard, one column an order, the published one first; (num_shards, 1 + num_permutations)."""
    Likeness: TypeAlias = NDArray[np.float64]
    """Of each two rows; (num_rows, num_rows)."""

DRAWS = 9_999  # of the exact test, whose p is a multiple of 1 / 10,000
SAME = 1e-9  # relative difference below which two sums are one


@dataclass(frozen=True, slots=True)
class Shard:
    """Neighboring rows, which are shuffled among themselves."""

    first: int
    orders: tuple[Order, ...]
    """Row numbers within the shard, each of shape (num_rows,); the published order first."""


def make_shards(num_rows: int, num_shards: int, num_permutations: int, seed: Sequence[int]) -> list[Shard]:
    """Cut rows into shards of the same size, but for one row, and draw orders of each, with replacement."""
    import numpy as np

    shards = []
    for number, rows in enumerate(np.array_split(np.arange(num_rows), num_shards)):
        generator = np.random.default_rng([*seed, number])
        drawn = (generator.permutation(len(rows)) for _ in range(num_permutations))
        shards.append(Shard(int(rows[0]), (np.arange(len(rows)), *drawn)))
    return shards


@dataclass(frozen=True, slots=True)
class Preference:
    """How the published order scores against random ones."""

    difference: float
    """Score of the published order minus the mean over random ones, averaged over shards."""
    p_t: float | None
    """One-sided t test over shards; None where all shards differ by the same."""
    p_exact: float
    """Probability of a total as high, were the published order of each shard one of those drawn, at random."""


def compare(scores: Scores, seed: Sequence[int]) -> Preference:
    """Test whether published orders score higher than random ones.

    The t test is that of Oren et al. (2023), https://arxiv.org/abs/2310.17623. The exact test takes the same scores: if
    a shard's rows are exchangeable, then, given the scores of its orders, each is as likely as the others to be that of
    the published order. So totals over shards, with one of its scores drawn from each, have the distribution of the
    published orders' total, whatever the scores look like and however much shards differ.
    """
    import numpy as np
    from scipy.stats import ttest_1samp

    differences = scores[:, 0] - scores[:, 1:].mean(axis=1)
    is_flat = bool(np.ptp(differences) <= SAME * np.abs(scores).max(initial=0))
    p_t = None if is_flat else float(ttest_1samp(differences, 0, alternative="greater").pvalue)
    generator = np.random.default_rng(seed)
    totals = np.zeros(DRAWS)
    for shard in scores:
        totals += shard[generator.integers(0, len(shard), DRAWS)]
    published = scores[:, 0].sum()
    as_high = int((totals >= published - SAME * max(1.0, abs(published))).sum())
    return Preference(float(differences.mean()), p_t, (1 + as_high) / (1 + DRAWS))


def neighbor_scores(shards: Sequence[Shard], alike: Sequence[Likeness]) -> Scores:
    """How alike the rows are that stand beside each other in each order.

    Parameters
    ----------
    alike
        The likeness of each shard's rows.
    """
    import numpy as np

    return np.array(
        [
            [math.fsum(likeness[order[:-1], order[1:]]) for order in shard.orders]
            for shard, likeness in zip(shards, alike, strict=True)
        ]
    )


def shared_words(texts: Sequence[str]) -> Likeness:
    """Jaccard similarity of the words of each two texts."""
    import numpy as np

    words = [frozenset(text.lower().split()) for text in texts]
    pairs = ((len(one & other), len(one | other)) for one in words for other in words)
    return np.array([both / either if either else 1.0 for both, either in pairs]).reshape(len(texts), len(texts))


def same_label(labels: Sequence[float]) -> Likeness:
    """1 where two rows have one label, else 0."""
    import numpy as np

    values = np.asarray(labels)
    alike: Likeness = np.equal.outer(values, values).astype(np.float64)
    return alike
