"""Groups of exact and near duplicates."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest

from peekbench.data.duplicates import group_duplicates, keep_first

WORDS = [f"{a}{b}" for a in ("bor", "tel", "vin", "sa", "kup", "dre") for b in ("an", "ost", "ek", "ila", "uf")]


def sentence(rng: random.Random, length: int = 40) -> list[str]:
    return [rng.choice(WORDS) for _ in range(length)]


def similarities(texts: list[str]) -> dict[tuple[int, int], float]:
    """Return the Jaccard similarities of five-character substrings of all pairs, computed from the definition."""
    substrings = [{text[start : start + 5] for start in range(len(text) - 4)} for text in texts]
    pairs = combinations(range(len(texts)), 2)
    return {(a, b): len(substrings[a] & substrings[b]) / len(substrings[a] | substrings[b]) for a, b in pairs}


def test_equal_texts_form_one_group() -> None:
    assert group_duplicates(["a", "b", "a", "A", "b", "a"], "exact").tolist() == [0, 1, 0, 3, 1, 0]


def test_near_duplicates_ignore_case_and_white_space() -> None:
    assert group_duplicates(["Good  day", "bad day", "good day\n", "", " "], "near").tolist() == [0, 1, 0, 3, 3]


@pytest.mark.parametrize("seed", range(3))
def test_near_duplicates_equal_those_of_a_search_over_all_pairs(seed: int) -> None:
    rng = random.Random(seed)
    texts = []
    for _ in range(60):
        words = sentence(rng)
        texts.append(" ".join(words))
        for _ in range(2):  # some end up above the threshold, some below
            for position in rng.sample(range(len(words)), 2):
                words[position] = rng.choice(WORDS)
            texts.append(" ".join(words))
    rng.shuffle(texts)
    expected = np.arange(len(texts))
    similar = [pair for pair, similarity in similarities(texts).items() if similarity >= 0.8]
    for later, earlier in sorted((later, earlier) for earlier, later in similar):
        merged = sorted({expected[later], expected[earlier]})
        expected[expected == merged[-1]] = merged[0]
    groups = group_duplicates(texts, "near")
    assert len(set(expected.tolist())) < len(texts) - 30, "the texts contain near duplicates"
    np.testing.assert_array_equal(groups, expected)
    np.testing.assert_array_equal(groups, group_duplicates(texts, "near"), "the search is deterministic")


def test_many_copies_of_one_text_are_grouped_quickly() -> None:
    groups = group_duplicates(["The same text, again and again."] * 50_000, "near")
    assert not groups.any()


def test_the_first_row_of_a_group_is_kept_unless_its_labels_differ() -> None:
    groups = np.array([0, 1, 0, 3, 1, 0, 6])
    labels = np.array([5, 5, 5, 4, 6, 5, 4])
    assert keep_first(groups, labels).tolist() == [True, False, False, True, False, False, True]
