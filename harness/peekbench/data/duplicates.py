"""Groups texts that say the same, exactly or nearly.

Two texts are near duplicates where their sets of five-character runs have a Jaccard similarity of at least 0.8, upper
and lower case and white space aside. MinHash with locality-sensitive hashing (Broder, 1997; Leskovec, Rajaraman and
Ullman, *Mining of Massive Datasets*, ch. 3) proposes pairs, and each is then checked by its true similarity: none is
found wrongly, and one of similarity 0.8 is missed with probability (1 - 0.8**6)**21 = 0.002.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from peekbench.records.data import IntArray

Likeness: TypeAlias = Literal["exact", "near"]

SIMILARITY = 0.8
RUN = 5  # characters
BANDS, ROWS = 21, 6
SEED = 1


def group_duplicates(texts: Iterable[str], likeness: Likeness) -> IntArray:
    """For each text the position of its group's first, shape (n,); near duplicates of near duplicates are one group."""
    if likeness == "exact":
        return _group_equal(texts)
    plain = [" ".join(text.casefold().split()) for text in texts]
    first = _group_equal(plain)
    distinct = [position for position, earliest in enumerate(first.tolist()) if position == earliest]
    for later, earlier in _near_pairs([plain[position] for position in distinct]):
        one, other = sorted((_root(first, distinct[later]), _root(first, distinct[earlier])))
        first[other] = one
    for position in range(len(first)):  # a root stands before all of its group
        first[position] = first[first[position]]
    return first


def _group_equal(texts: Iterable[Hashable]) -> IntArray:
    import numpy as np

    seen: dict[Hashable, int] = {}
    return np.fromiter((seen.setdefault(text, position) for position, text in enumerate(texts)), dtype=np.int64)


def _root(first: IntArray, position: int) -> int:
    while first[position] != position:
        position = int(first[position])
    return position


def _near_pairs(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Pairs (later, earlier) of positions."""
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(num_perm=BANDS * ROWS, params=(BANDS, ROWS))
    runs = (_runs(text) for text in texts)
    for position, signature in enumerate(MinHash.generator(runs, num_perm=BANDS * ROWS, seed=SEED)):
        candidates = sorted(index.query(signature))
        index.insert(position, signature, check_duplication=False)
        if candidates:
            own = _runs(texts[position])
            yield from ((position, other) for other in candidates if _jaccard(own, _runs(texts[other])) >= SIMILARITY)


def _runs(plain: str) -> set[bytes]:
    return {
        plain[start : start + RUN].encode("utf-8", "surrogatepass") for start in range(max(1, len(plain) - RUN + 1))
    }


def _jaccard(one: set[bytes], other: set[bytes]) -> float:
    common = len(one & other)
    return common / (len(one) + len(other) - common)


def keep_first(groups: IntArray, labels: IntArray) -> NDArray[np.bool_]:
    """Which rows to keep so that no two are duplicates: each group's first, and none where its labels differ.

    Parameters
    ----------
    groups
        As `group_duplicates` gives them.
    labels
        Shape (n,).
    """
    import numpy as np

    agrees = np.ones(len(groups), dtype=bool)
    np.logical_and.at(agrees, groups, labels == labels[groups])
    kept: NDArray[np.bool_] = (groups == np.arange(len(groups))) & agrees
    return kept
