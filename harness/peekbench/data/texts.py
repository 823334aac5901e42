"""Finds equal and nearly equal texts.

Two texts are equal if `peekbench.identity` normalizes them to the same text, and near duplicates if the sets of the
five-character substrings of these have a Jaccard similarity of at least 0.8. MinHash with locality-sensitive hashing
(Broder, 1997; Leskovec, Rajaraman and Ullman, *Mining of Massive Datasets*, ch. 3) proposes pairs, and the exact
similarity of each pair is then checked. So no pair is reported wrongly, and a pair of similarity 0.8 is missed with
probability (1 - 0.8**6)**21 = 0.002. Prompts must also have the same reference and the same numbers, because prompts of
one template, such as 'Add 12 and 8' and 'Add 13 and 8', are different questions.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from peekbench.identity import normalize
from peekbench.records.data import IntArray

Likeness: TypeAlias = Literal["exact", "near"]

SIMILARITY = 0.8
SHINGLE_LENGTH = 5  # characters
NUMBER = re.compile(r"\d+")
NUM_BANDS, ROWS_PER_BAND = 21, 6
SEED = 1
BLOCK = 2**16  # characters whose substrings are hashed together, so that they stay in a processor's cache


def group_duplicates(
    texts: Iterable[str], likeness: Likeness, references: Sequence[Hashable] | None = None
) -> IntArray:
    """Group duplicate texts.

    Parameters
    ----------
    texts
        Any number of texts.
    likeness
        'exact' for texts that are equal after normalization, 'near' for a Jaccard similarity of at least 0.8. Near
        duplicates of near duplicates belong to one group.
    references
        In generation, the reference of each prompt, or its number; near duplicates have the same reference and numbers.

    Returns
    -------
    numpy.ndarray
        For each text the position of the first text of its group, shape (n,).

    Examples
    --------
    >>> group_duplicates(["Good day", "good  day", "Bye", "Good day"], "exact").tolist()
    [0, 0, 2, 0]
    >>> group_duplicates(["The whole text, word by word", "Bye", "the whole text, word by words"], "near").tolist()
    [0, 1, 0]
    >>> group_duplicates(["Add 12 and 8, please.", "Add 12 and 9, please."], "near", ["20", "21"]).tolist()
    [0, 1]
    """
    normalized = list(map(normalize, texts))
    first = _group_equal(normalized)
    if likeness == "exact":
        return first
    distinct = [position for position, earliest in enumerate(first.tolist()) if position == earliest]
    keys: Sequence[Hashable] = [()] * len(distinct)
    if references is not None:
        keys = [(references[position], *NUMBER.findall(normalized[position])) for position in distinct]
    for later, earlier in _near_pairs([normalized[position] for position in distinct], keys):
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


def _near_pairs(texts: Sequence[str], keys: Sequence[Hashable]) -> Iterator[tuple[int, int]]:
    """Yield pairs (later, earlier) of positions of texts with equal keys."""
    buckets: dict[tuple[int, bytes, Hashable], list[int]] = {}
    for position, (text, signature) in enumerate(zip(texts, _signatures(texts), strict=True)):
        content, size = signature.tobytes(), signature.nbytes // NUM_BANDS
        starts = range(0, len(content), size)
        bands = [buckets.setdefault((n, content[n : n + size], keys[position]), []) for n in starts]
        if candidates := sorted({other for bucket in bands for other in bucket}):
            own = _shingles(text)
            for other in candidates:
                shingles = _shingles(texts[other])
                if len(own & shingles) / len(own | shingles) >= SIMILARITY:  # Jaccard similarity
                    yield position, other
        for bucket in bands:
            bucket.append(position)


def _signatures(texts: Sequence[str]) -> Iterator[NDArray[np.uint64]]:
    """Yield the smallest hash of the substrings of each text under each of many hash functions, block by block."""
    multipliers, offsets, weights = np.random.default_rng(SEED).integers(
        2**64, size=(3, NUM_BANDS * ROWS_PER_BAND), dtype=np.uint64
    )
    multipliers |= 1
    start = 0
    while start < len(texts):
        stop, num_codes = start, 0
        while stop < len(texts) and (stop == start or num_codes < BLOCK):
            num_codes += max(SHINGLE_LENGTH, len(texts[stop]))
            stop += 1
        padded = "".join(text.ljust(SHINGLE_LENGTH, "\0") for text in texts[start:stop])
        codes = np.frombuffer(padded.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
        hashes = np.lib.stride_tricks.sliding_window_view(codes, SHINGLE_LENGTH) @ weights[:SHINGLE_LENGTH]
        sizes = np.array([max(SHINGLE_LENGTH, len(text)) for text in texts[start:stop]])
        ends = np.cumsum(sizes)
        is_inside = np.ones(len(codes), dtype=bool)
        for distance in range(1, SHINGLE_LENGTH):  # substrings that would reach into the next text
            is_inside[ends - distance] = False
        hashes = hashes[is_inside[: len(hashes)]]
        firsts = ends - sizes - (SHINGLE_LENGTH - 1) * np.arange(len(sizes))
        signatures = np.empty((len(multipliers), len(sizes)), dtype=np.uint64)
        for number, (multiplier, offset) in enumerate(zip(multipliers, offsets, strict=True)):
            signatures[number] = np.minimum.reduceat((multiplier * hashes + offset) >> 32, firsts)
        yield from np.ascontiguousarray(signatures.T)
        start = stop


def _shingles(normalized: str) -> set[str]:
    """Return all substrings of five characters."""
    return {normalized[start : start + SHINGLE_LENGTH] for start in range(max(1, len(normalized) - SHINGLE_LENGTH + 1))}
