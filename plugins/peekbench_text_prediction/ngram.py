"""N-grams of bytes, counted in the train and unlabeled texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray, IntArray
from peekbench_text_prediction.options import Ngram

BOUNDARY = 256  # symbol before and after each text
NUM_SYMBOLS = 257


def ngram(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Ngram, context: Context) -> Predictor:
    """Count the n-grams of bytes of all given texts, and smooth them by interpolation with shorter ones.

    The probability of a byte after a context is interpolated with that after the shorter context; the weight of the
    latter is the share of new symbols among those that followed the context: Witten and Bell (1991), method C,
    https://doi.org/10.1109/18.87000, in the recursive form of Chen and Goodman (1999), section 2.4,
    https://doi.org/10.1006/csla.1999.0128. Each text ends with a symbol of its own, so the probabilities of all texts
    sum to 1.

    Parameters
    ----------
    unlabeled
        Unlabeled texts; None in the base arm.
    train
        Texts without labels.
    task
        Not used.
    options
        Length of the contexts.
    context
        Not used.

    Returns
    -------
    Predictor
        The model, with the metric `num_bytes`.
    """
    texts = [*train.inputs, *(() if unlabeled is None else unlabeled)]
    symbols, lengths = _encode(texts, options.order)
    tables = [_count(_ngrams(symbols, lengths, options.order, size)) for size in range(options.order + 1)]

    def predict(inputs: Inputs) -> FloatArray:
        symbols, lengths = _encode(inputs, options.order)
        probabilities = np.full(int(lengths.sum()), 1 / NUM_SYMBOLS)
        for size, table in enumerate(tables):
            probabilities = table.interpolate(_ngrams(symbols, lengths, options.order, size), probabilities)
        totals = np.zeros(len(lengths))
        np.add.at(totals, np.repeat(np.arange(len(lengths)), lengths), np.log(probabilities))
        return totals

    return Predictor(predict, {"num_bytes": float(lengths.sum() - len(lengths))})


@dataclass(frozen=True, slots=True)
class Table:
    """Counts of n-grams and of their contexts, which are numbers in ascending order."""

    ngrams: IntArray
    """Context times `NUM_SYMBOLS` plus symbol."""
    ngram_counts: IntArray
    contexts: IntArray
    context_counts: IntArray
    """Number of occurrences of each context."""
    num_followers: IntArray
    """Number of different symbols after each context."""

    def interpolate(self, ngrams: IntArray, shorter: FloatArray) -> FloatArray:
        """Return the probabilities of the last symbols of n-grams.

        Parameters
        ----------
        ngrams
            Numbers of the n-grams; shape (n,).
        shorter
            Probabilities of the same symbols after the context without its first symbol; shape (n,).
        """
        counts = _look_up(self.ngrams, self.ngram_counts, ngrams)
        contexts = ngrams // NUM_SYMBOLS
        totals = _look_up(self.contexts, self.context_counts, contexts)
        followers = _look_up(self.contexts, self.num_followers, contexts)
        is_known = totals > 0
        interpolated = (counts + followers * shorter) / np.where(is_known, totals + followers, 1)
        return np.where(is_known, interpolated, shorter)


def _encode(texts: Sequence[str] | FloatArray, order: int) -> tuple[IntArray, IntArray]:
    """Return the symbols of texts, each after `order` boundaries and before one, and the numbers of predictions."""
    encoded = [np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8).astype(np.int64) for text in texts]
    before, after = np.full(order, BOUNDARY), np.array([BOUNDARY])
    parts = [part for symbols in encoded for part in (before, symbols, after)]
    return np.concatenate(parts), np.array([len(symbols) + 1 for symbols in encoded])


def _ngrams(symbols: IntArray, lengths: IntArray, order: int, size: int) -> IntArray:
    """Return the numbers of the n-grams that end at each predicted symbol, with contexts of `size` symbols."""
    starts = np.cumsum(lengths + order) - lengths  # position of the first predicted symbol of each text
    ends = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
    numbers = np.zeros(len(ends), dtype=np.int64)
    for distance in range(size, -1, -1):
        numbers = numbers * NUM_SYMBOLS + symbols[ends - distance]
    return numbers


def _count(ngrams: IntArray) -> Table:
    different, counts = np.unique(ngrams, return_counts=True)
    contexts, positions, followers = np.unique(different // NUM_SYMBOLS, return_inverse=True, return_counts=True)
    totals = np.bincount(positions, counts, minlength=len(contexts)).astype(np.int64)
    return Table(different, counts, contexts, totals, followers)


def _look_up(keys: IntArray, values: IntArray, wanted: IntArray) -> IntArray:
    """Return the values of keys, 0 for unknown keys."""
    positions = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    found: IntArray = np.where(keys[positions] == wanted, values[positions], 0)
    return found
