"""How much of a task's texts a corpus contains, and whether this is more than a corpus without them would contain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom, hypergeom

from peekbench.records import BoolArray, FloatArray, IntArray
from peekbench_exposure.comparison import Groups
from peekbench_exposure.text_shift import shift_p_values, text_similarity
from peekbench_exposure.texts import ComparedTexts
from peekbench_overlap import Ngram
from peekbench_overlap.index import NOWHERE, NgramIndex, Places

NUM_EXAMPLES = 5  # texts per task and corpus that a report quotes
MAX_COMPARED = 1000  # texts of each group that are tested for a shift; the test takes their square


@dataclass(frozen=True, slots=True)
class TaskNgrams:
    """The texts of a task and its unseen texts, with their n-grams."""

    texts: ComparedTexts
    words: Sequence[Sequence[bytes]]
    """Words of the pooled texts."""
    keys: Mapping[int, Sequence[IntArray]]
    """For each number of words, the numbers of the n-grams of each pooled text."""
    index: NgramIndex


@dataclass(frozen=True, slots=True)
class Example:
    """A text that a corpus contains in large part."""

    text: str
    share: float
    """Share of its n-grams that the corpus contains."""
    place: str
    """Where the first of them occurs."""


@dataclass(frozen=True, slots=True)
class Found:
    """What one corpus contains of a task's texts, by n-grams of one length."""

    corpus: str
    n: int
    num_examined: int
    """Number of audited texts that have n-grams of their own."""
    share_with_hit: float | None
    """Share of these texts with at least one n-gram in the corpus."""
    share_of_ngrams: float | None
    """Share of their n-grams in the corpus."""
    num_found: int
    """Number of texts with enough n-grams in the corpus."""
    num_unseen: int
    """Number of unseen texts that have n-grams of their own."""
    expected: float | None
    """Share of texts that a corpus without the task's texts would contain; None if no unseen text shows it."""
    p: float
    """P-value of the hypothesis that the share of texts found is at most that."""
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """How far the texts of a task repeat each other, by n-grams of one length."""

    n: int
    num_texts: int
    num_short: int
    """Number of texts with fewer words than an n-gram."""
    num_shared: int
    """Number of texts whose n-grams all occur in other texts of the task, too."""
    share_repeated: float
    """Share of texts with enough n-grams in other rows of the task."""


@dataclass(frozen=True, slots=True)
class Result:
    """Results of the audit for one task."""

    texts: ComparedTexts
    found: tuple[Found, ...]
    repetition: tuple[Repetition, ...]
    shift: Mapping[str, float]
    """P-values of tests whether the unseen texts differ, by respect; empty without unseen texts."""


def judge(task: TaskNgrams, places: Mapping[str, Places], options: Ngram, seed: int) -> Result:
    """Compare what corpora contain of a task's texts with what they would contain without them.

    N-grams that several different texts share do not count, because templates and set phrases occur everywhere.

    Parameters
    ----------
    task
        Texts and n-grams.
    places
        Where n-grams occur, by corpus.
    options
        Thresholds.
    seed
        Seed of the tests for a shift.
    """
    num_audited = len(task.texts.audited)
    is_first = _is_first_of_equals(task.words)
    repetitions, found = [], []
    for n in options.n:
        keys, num_keys = task.keys[n], task.index.num_keys(n)
        distinct = [key for key, first in zip(keys, is_first, strict=True) if first]
        is_own = count_texts(distinct, num_keys) == 1
        in_other_rows = count_texts(keys[:num_audited], num_keys) > 1
        repeated = share_found(keys[:num_audited], np.ones(num_keys, np.bool_), in_other_rows)
        repetition = Repetition(
            n,
            num_audited,
            sum(len(of_text) == 0 for of_text in keys[:num_audited]),
            sum(len(of_text) > 0 and not is_own[of_text].any() for of_text in keys[:num_audited]),
            float((repeated >= options.min_share).sum() / max(1, num_audited)),
        )
        repetitions.append(repetition)
        for corpus, corpus_places in places.items():
            shares = share_found(keys, is_own, corpus_places.first[n] != NOWHERE)
            found.append(_judge_corpus(task, corpus, corpus_places, shares, repetition, options))
    return Result(task.texts, tuple(found), tuple(repetitions), _find_shift(task, seed))


def _judge_corpus(
    task: TaskNgrams, corpus: str, places: Places, shares: FloatArray, repetition: Repetition, options: Ngram
) -> Found:
    """Compare the audited texts with the unseen ones, or with the share that a clean corpus may contain."""
    n, num_audited = repetition.n, len(task.texts.audited)
    audited, unseen = (group[~np.isnan(group)] for group in (shares[:num_audited], shares[num_audited:]))
    num_found, num_unseen_found = (int((group >= options.min_share).sum()) for group in (audited, unseen))
    expected: float | None
    if options.unseen:
        expected = num_unseen_found / len(unseen) if len(unseen) else None
        p = p_compared(num_found, len(audited), num_unseen_found, len(unseen))
    else:
        expected = max(options.clean_share, repetition.share_repeated)
        p = p_expected(num_found, len(audited), expected)
    worst = np.argsort(np.nan_to_num(-shares[:num_audited]), kind="stable")[:NUM_EXAMPLES]
    examples = tuple(
        Example(task.texts.audited[row], float(shares[row]), places.name_first(n, task.keys[n][row]))
        for row in worst.tolist()
        if shares[row] > 0
    )
    weights = np.array([len(of_text) for of_text in task.keys[n][:num_audited]])[~np.isnan(shares[:num_audited])]
    return Found(
        corpus,
        n,
        len(audited),
        float((audited > 0).mean()) if len(audited) else None,
        float(np.average(audited, weights=weights)) if len(audited) else None,
        num_found,
        len(unseen),
        expected,
        p,
        examples,
    )


def p_compared(num_found: int, num_audited: int, num_unseen_found: int, num_unseen: int) -> float:
    """Return the p-value of Fisher's exact test that no more of the audited texts are found than of the unseen ones.

    Parameters
    ----------
    num_found, num_audited
        Number of audited texts that are found, and of all audited texts.
    num_unseen_found, num_unseen
        The same for unseen texts.

    Examples
    --------
    >>> round(p_compared(3, 3, 0, 3), 3)
    0.05
    """
    if not num_audited or not num_unseen:
        return 1.0
    total = num_found + num_unseen_found
    return float(hypergeom.sf(num_found - 1, num_audited + num_unseen, total, num_audited))


def p_expected(num_found: int, num_audited: int, expected: float) -> float:
    """Return the p-value of the binomial test that the share of texts found is at most the expected one.

    Parameters
    ----------
    num_found, num_audited
        Number of audited texts that are found, and of all audited texts.
    expected
        Share that a corpus without the texts may contain.

    Examples
    --------
    >>> p_expected(2, 2, 0.1)
    0.010000000000000002
    """
    return float(binom.sf(num_found - 1, num_audited, expected))


def _find_shift(task: TaskNgrams, seed: int) -> dict[str, float]:
    """Test whether the unseen texts differ in their words, style or length."""
    texts = task.texts
    if not texts.audited or not texts.unseen:
        return {}
    rows = [
        *np.linspace(0, len(texts.audited) - 1, min(MAX_COMPARED, len(texts.audited)), dtype=int).tolist(),
        *np.linspace(
            len(texts.audited), len(texts.pooled) - 1, min(MAX_COMPARED, len(texts.unseen)), dtype=int
        ).tolist(),
    ]
    pooled = [texts.pooled[row] for row in rows]
    groups = Groups(min(MAX_COMPARED, len(texts.audited)), min(MAX_COMPARED, len(texts.unseen)), seed)
    similarities = {"words": text_similarity(pooled, "word"), "style": text_similarity(pooled, "char")}
    return shift_p_values(similarities, {"length": np.log1p([len(task.words[row]) for row in rows])}, groups)


def _is_first_of_equals(words: Sequence[Sequence[bytes]]) -> list[bool]:
    """Return False for texts that repeat the words of an earlier one, and so share all n-grams with it."""
    seen: dict[tuple[bytes, ...], int] = {}
    return [seen.setdefault(tuple(text), row) == row for row, text in enumerate(words)]


def count_texts(keys: Sequence[IntArray], num_keys: int) -> IntArray:
    """Return the number of texts that contain each n-gram; shape `(num_keys,)`.

    Parameters
    ----------
    keys
        Numbers of the n-grams of each text.
    num_keys
        Number of different n-grams.
    """
    counts = np.zeros(num_keys, dtype=np.int64)
    for of_text in keys:
        counts[np.unique(of_text)] += 1
    return counts


def share_found(keys: Sequence[IntArray], is_counted: BoolArray, is_found: BoolArray) -> FloatArray:
    """Return the share of the counted n-grams of each text that were found; NaN for a text that has none.

    Parameters
    ----------
    keys
        Numbers of the n-grams of each text.
    is_counted
        Whether each n-gram counts; shape `(num_keys,)`.
    is_found
        Whether each n-gram was found; shape `(num_keys,)`.

    Returns
    -------
    array of shape `(len(keys),)`
    """
    shares = np.full(len(keys), np.nan)
    for row, of_text in enumerate(keys):
        counted = of_text[is_counted[of_text]]
        if len(counted):
            shares[row] = is_found[counted].mean()
    return shares
