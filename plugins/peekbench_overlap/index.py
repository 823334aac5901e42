"""An index of the n-grams of texts, and a fast search for them in other texts.

Words become random numbers of 64 bits, and an n-gram a polynomial of them modulo 2**64 (Karp and Rabin 1987). Two
different n-grams have the same number with probability of about 2**-64. Before an n-gram is computed, a table of all
pairs of neighboring words excludes most positions of a corpus.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from peekbench.records import BoolArray, IntArray

BOUNDARY = b"\x01"
"""Word between two texts in the words of `split_texts`. No text contains it."""
NOT_ASCII_PUNCTUATION = re.compile(r"[^\w\x00-\x7f]+")
WORD_BYTES = bytes(
    code if code >= 128 or chr(code).isalnum() or code == BOUNDARY[0] else ord(" ") for code in range(256)
)
"""For each byte of UTF-8: itself in words, otherwise a space."""


def split_texts(texts: list[str]) -> list[bytes]:
    r"""Return the words of texts, in UTF-8, with `BOUNDARY` between texts.

    A word is a run of letters and digits in case-insensitive form, as in the analysis of Brown et al. (2020,
    https://arxiv.org/abs/2005.14165, appendix C), which ignores punctuation.

    Examples
    --------
    >>> split_texts(["Don't panic!", "Fin."])
    [b'don', b't', b'panic', b'\x01', b'fin']
    """
    boundary = BOUNDARY.decode()
    cleaned = (text.replace(boundary, " ") if boundary in text else text for text in texts)
    parts = (text if text.isascii() else _normalize(text) for text in cleaned)
    joined = f" {boundary} ".join(parts).encode("utf-8", "surrogatepass")
    return joined.lower().translate(WORD_BYTES).split()


def _normalize(text: str) -> str:
    """Return a text in one of its equivalent spellings, without punctuation that is not ASCII."""
    return NOT_ASCII_PUNCTUATION.sub(" ", unicodedata.normalize("NFKC", text).casefold())


Hashes = NDArray[np.uint64]
BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that multiplication loses no bits
SEED = 20
UNKNOWN, BETWEEN = 0, 1  # codes of words that no indexed text contains, and of boundaries; the others start from 2
TABLE_BITS = 22  # of the table of pairs, at least


def _ranges(starts: IntArray, counts: IntArray) -> IntArray:
    """Return the concatenation of ranges of whole numbers."""
    ends = np.cumsum(counts)
    positions: IntArray = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + counts, counts)
    return positions


@dataclass(frozen=True, slots=True)
class Match:
    """N-grams of one length that were found."""

    keys: IntArray
    """Numbers of the n-grams in the index; shape `(num_matches,)`."""
    texts: IntArray
    """Positions of the texts that contain them among the searched texts; shape `(num_matches,)`."""


class NgramIndex:
    """The n-grams of texts.

    Parameters
    ----------
    texts
        Words of each text.
    lengths
        Numbers of words of n-grams, in ascending order.
    """

    def __init__(self, texts: Sequence[Sequence[bytes]], lengths: Sequence[int]) -> None:
        self.lengths = tuple(lengths)
        self._codes: dict[bytes, int] = {BOUNDARY: BETWEEN}
        for text in texts:
            for word in text:
                self._codes.setdefault(word, len(self._codes) + 1)
        numbers = np.random.default_rng(SEED).integers(0, 2**64, len(self._codes) + 1, dtype=np.uint64)
        self._numbers: Hashes = numbers
        joined = list(chain.from_iterable((*text, BOUNDARY) for text in texts))
        codes, lengths_of_texts = self._encode(joined), np.array([len(text) for text in texts], dtype=np.int64)
        starts = np.cumsum(lengths_of_texts + 1) - lengths_of_texts - 1
        self.keys: dict[int, list[IntArray]] = {}
        """For each length, the numbers of the n-grams of each text, in the order of the text."""
        self._hashes: dict[int, Hashes] = {}
        for n in self.lengths:
            counts = np.maximum(lengths_of_texts - n + 1, 0)
            hashes, inverse = np.unique(self._hash(codes, _ranges(starts, counts), n), return_inverse=True)
            self._hashes[n] = hashes
            self.keys[n] = np.split(inverse.astype(np.int64), np.cumsum(counts)[:-1])
        pairs = self._hash(codes, _ranges(starts, np.maximum(lengths_of_texts - 1, 0)), 2)
        self._shift = np.uint64(64 - max(TABLE_BITS, len(pairs).bit_length() + 3))
        self._has_pair: BoolArray = np.zeros(2 ** int(64 - self._shift), dtype=np.bool_)
        self._has_pair[pairs >> self._shift] = True

    def num_keys(self, n: int) -> int:
        """Return the number of different n-grams of a length."""
        return len(self._hashes[n])

    def search(self, words: Iterable[bytes]) -> dict[int, Match]:
        """Find indexed n-grams in texts.

        Parameters
        ----------
        words
            Words of the texts, with `BOUNDARY` between them.

        Returns
        -------
        dict
            The matches by length, in the order of the texts.
        """
        codes = self._encode(words)
        shortest = self.lengths[0]
        positions = self._find_known_runs(codes, shortest)
        boundaries = np.flatnonzero(codes == BETWEEN) if len(positions) else np.empty(0, np.int64)
        matches = {}
        for n in self.lengths:  # an n-gram starts with all shorter ones, so each length narrows the search down
            positions = positions[positions + n <= len(codes)]
            hashes = self._hash(codes, positions, n)
            keys = np.searchsorted(self._hashes[n], hashes)
            keys[keys == len(self._hashes[n])] = 0
            is_match = self._hashes[n][keys] == hashes if len(self._hashes[n]) else np.zeros(len(keys), np.bool_)
            # A boundary has a number of its own that no indexed n-gram contains, so no match extends over two texts.
            matches[n] = Match(keys[is_match], np.searchsorted(boundaries, positions[is_match]))
            positions = positions[is_match]
        return matches

    def _encode(self, words: Iterable[bytes]) -> IntArray:
        return np.fromiter(map(self._codes.get, words, repeat(UNKNOWN)), dtype=np.int64)

    def _hash(self, codes: IntArray, positions: IntArray, n: int) -> Hashes:
        """Return the numbers of the n-grams that start at some positions."""
        hashes: Hashes = self._numbers[codes[positions]]
        for offset in range(1, n):
            hashes = hashes * BASE + self._numbers[codes[positions + offset]]
        return hashes

    def _find_known_runs(self, codes: IntArray, n: int) -> IntArray:
        """Return the positions from which all n - 1 pairs of neighboring words may occur in indexed texts."""
        if len(codes) < n:
            return np.empty(0, np.int64)
        numbers = self._numbers[codes]
        is_known = self._has_pair[(numbers[:-1] * BASE + numbers[1:]) >> self._shift]
        is_known &= (codes[:-1] != UNKNOWN) & (codes[1:] != UNKNOWN)
        num_unknown = np.concatenate([[0], np.cumsum(~is_known)])
        return np.flatnonzero(num_unknown[n - 1 :] == num_unknown[: len(num_unknown) - n + 1])


def batches(texts: Iterable[tuple[int, str]], max_characters: int) -> Iterator[tuple[list[int], list[str]]]:
    """Group texts until they have a number of characters.

    Parameters
    ----------
    texts
        Positions and texts.
    max_characters
        A batch ends after the text that reaches this number.

    Yields
    ------
    tuple
        Positions and texts of a batch.
    """
    positions: list[int] = []
    batch: list[str] = []
    size = 0
    for position, text in texts:
        positions.append(position)
        batch.append(text)
        size += len(text) + 1
        if size >= max_characters:
            yield positions, batch
            positions, batch, size = [], [], 0
    if batch:
        yield positions, batch


BATCH_CHARACTERS = 2**20
NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Places:
    """Where the n-grams of an index first occur in a corpus."""

    first: dict[int, IntArray]
    """For each length, the number of the place of each n-gram in `names`, or -1; shape `(num_keys,)`."""
    names: list[str]
    """Places for readers."""

    def name_first(self, n: int, keys: IntArray) -> str:
        """Return the first place of some n-grams; '' if they occur nowhere."""
        found = self.first[n][keys]
        return self.names[found[found != NOWHERE].min()] if (found != NOWHERE).any() else ""


class Search:
    """A search of one corpus for the n-grams of an index.

    Parameters
    ----------
    index
        N-grams to search for.
    """

    def __init__(self, index: NgramIndex) -> None:
        self._index = index
        self._names: list[str] = []
        self._first = {n: np.full(index.num_keys(n), NOWHERE, dtype=np.int64) for n in index.lengths}

    def add(self, pieces: Iterable[tuple[int, str]], name_place: Callable[[int], str]) -> None:
        """Search texts.

        Parameters
        ----------
        pieces
            Positions and texts.
        name_place
            Function of a position to the name of the place for readers.
        """
        for positions, texts in batches(pieces, BATCH_CHARACTERS):
            matches = self._index.search(split_texts(texts))
            places: dict[int, int] = {}  # numbers of the places in which this batch has new n-grams, by text
            for n, match in matches.items():
                first = self._first[n]
                is_new = first[match.keys] == NOWHERE
                keys, texts_of_keys = match.keys[is_new], match.texts[is_new]
                for text in np.unique(texts_of_keys).tolist():
                    if text not in places:
                        places[text] = len(self._names)
                        self._names.append(name_place(positions[text]))
                # Assigned backwards, so that the first of several occurrences remains.
                first[keys[::-1]] = [places[text] for text in texts_of_keys[::-1].tolist()]

    def places(self) -> Places:
        """Return what has been found so far."""
        return Places(self._first, self._names)
