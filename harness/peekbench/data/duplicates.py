"""Finds groups of equal and nearly equal texts.

Two texts are near duplicates if the sets of their five-character substrings have a Jaccard similarity of at least 0.8,
ignoring case and white space. MinHash with locality-sensitive hashing (Broder, 1997; Leskovec, Rajaraman and Ullman,
*Mining of Massive Datasets*, ch. 3) proposes pairs, and the exact similarity of each pair is then checked. So no pair
is reported wrongly, and a pair of similarity 0.8 is missed with probability (1 - 0.8**6)**21 = 0.002.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from peekbench.records.data import IntArray

Likeness: TypeAlias = Literal["exact", "near"]

SIMILARITY = 0.8
SHINGLE_LENGTH = 5  # characters
NUM_BANDS, ROWS_PER_BAND = 21, 6
SEED = 1


def group_duplicates(texts: Iterable[str], likeness: Likeness) -> IntArray:
    """Group duplicate texts.

    Parameters
    ----------
    texts
        Any number of texts.
    likeness
        'exact' for equal texts, 'near' for a Jaccard similarity of at least 0.8. Near duplicates of near duplicates
        belong to one group.

    Returns
    -------
    numpy.ndarray
        For each text the position of the first text of its group, shape (n,).

    Examples
    --------
    >>> group_duplicates(["Good day", "good  day", "Bye", "Good day"], "exact").tolist()
    [0, 1, 2, 0]
    >>> group_duplicates(["Good day", "good  day", "Bye", "Good day"], "near").tolist()
    [0, 0, 2, 0]
    """
    if likeness == "exact":
        return _group_equal(texts)
    normalized = [" ".join(text.casefold().split()) for text in texts]
    first = _group_equal(normalized)
    distinct = [position for position, earliest in enumerate(first.tolist()) if position == earliest]
    for later, earlier in _near_pairs([normalized[position] for position in distinct]):
        root, other_root = sorted((_find_root(first, distinct[later]), _find_root(first, distinct[earlier])))
        first[other_root] = root
    for position in range(len(first)):  # a root precedes all other members of its group
        first[position] = first[first[position]]
    return first


def _group_equal(texts: Iterable[Hashable]) -> IntArray:
    seen: dict[Hashable, int] = {}
    return np.fromiter((seen.setdefault(text, position) for position, text in enumerate(texts)), dtype=np.int64)


# A union-find of four lines, because that of SciPy (`DisjointSet`) would make the core require SciPy.
def _find_root(first: IntArray, position: int) -> int:
    while first[position] != position:
        position = int(first[position])
    return position


def _near_pairs(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield pairs (later, earlier) of positions."""
    multipliers, offsets, weights = np.random.default_rng(SEED).integers(
        2**64, size=(3, NUM_BANDS * ROWS_PER_BAND, 1), dtype=np.uint64
    )
    multipliers |= 1
    buckets: dict[tuple[int, bytes], list[int]] = {}
    for position, text in enumerate(texts):
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
        codes = np.pad(codes, (0, max(0, SHINGLE_LENGTH - len(codes))))
        hashes = np.unique(np.lib.stride_tricks.sliding_window_view(codes, SHINGLE_LENGTH) @ weights[:SHINGLE_LENGTH])
        signature = ((multipliers * hashes + offsets) >> 32).min(axis=1)
        bands = [buckets.setdefault((n, band.tobytes()), []) for n, band in enumerate(np.split(signature, NUM_BANDS))]
        if candidates := sorted({other for bucket in bands for other in bucket}):
            own = _shingles(text)
            for other in candidates:
                shingles = _shingles(texts[other])
                if len(own & shingles) / len(own | shingles) >= SIMILARITY:  # Jaccard similarity
                    yield position, other
        for bucket in bands:
            bucket.append(position)


def _shingles(normalized: str) -> set[str]:
    """Return all substrings of five characters."""
    return {normalized[start : start + SHINGLE_LENGTH] for start in range(max(1, len(normalized) - SHINGLE_LENGTH + 1))}


def keep_first(groups: IntArray, labels: IntArray) -> NDArray[np.bool_]:
    """Select rows such that no two are duplicates.

    Parameters
    ----------
    groups
        Result of `group_duplicates`, shape (n,).
    labels
        Labels of the rows, shape (n,).

    Returns
    -------
    numpy.ndarray
        Booleans of shape (n,): true for the first row of each group, unless the labels of the group differ.

    Examples
    --------
    >>> keep_first(np.array([0, 0, 2, 2, 4]), np.array([1, 1, 0, 1, 0])).tolist()
    [True, False, False, False, True]
    """
    agrees = np.ones(len(groups), dtype=bool)
    np.logical_and.at(agrees, groups, labels == labels[groups])
    is_kept: NDArray[np.bool_] = (groups == np.arange(len(groups))) & agrees
    return is_kept
