"""Groups of exact and near duplicates, and descriptions of the texts of tasks."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest

from peekbench.data.texts import Likeness, group_duplicates

WORDS = [f"{a}{b}" for a in ("bor", "tel", "vin", "sa", "kup", "dre") for b in ("an", "ost", "ek", "ila", "uf")]


def sentence(rng: random.Random, length: int = 40) -> list[str]:
    return [rng.choice(WORDS) for _ in range(length)]


def similarities(texts: list[str]) -> dict[tuple[int, int], float]:
    """Return the Jaccard similarities of five-character substrings of all pairs, computed from the definition."""
    substrings = [{text[start : start + 5] for start in range(len(text) - 4)} for text in texts]
    pairs = combinations(range(len(texts)), 2)
    return {(a, b): len(substrings[a] & substrings[b]) / len(substrings[a] | substrings[b]) for a, b in pairs}


@pytest.mark.parametrize("likeness", ["exact", "near"])
def test_texts_that_are_equal_after_normalization_form_one_group(likeness: Likeness) -> None:
    texts = ["Yes", "no", "yes.", "caf\u00e9", "", "cafe\u0301", " ", "Good  day", "good day\n"]
    assert group_duplicates(texts, likeness).tolist() == [0, 1, 0, 3, 4, 3, 4, 7, 7]


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


def test_near_prompts_have_equal_numbers_and_references() -> None:
    prompt = "Tom has some apples and buys more of them. How many of them are there if he has 3 and buys 4?"
    same = [prompt, prompt.upper(), prompt.replace("Tom", "Tim")]
    other = prompt.replace("3 and buys 4", "4 and buys 3")
    assert group_duplicates([*same, other], "near", [7, 7, 7, 7]).tolist() == [0, 0, 0, 3]
    assert group_duplicates([same[0], same[2]], "near", [7, 8]).tolist() == [0, 1]


def test_many_copies_of_one_text_are_grouped_quickly() -> None:
    groups = group_duplicates(["The same text, again and again."] * 50_000, "near")
    assert not groups.any()
