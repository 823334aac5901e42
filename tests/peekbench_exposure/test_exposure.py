"""Comparisons of audited with unseen texts, and tests whether they are comparable."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_ind

from peekbench import DataError, Dataset
from peekbench.errors import SpecError
from peekbench_exposure.comparison import Groups, compare_scores, permutation_p
from peekbench_exposure.findings import EXPOSED, NO_EXPOSURE, decide
from peekbench_exposure.text_shift import shift_p_values, text_similarity
from peekbench_exposure.texts import choose_texts

GROUPS = Groups(40, 60)
WORDS = [f"w{number}" for number in range(40)]


def make_texts(number: int, seed: int, words: list[str] = WORDS, length: int = 10) -> list[str]:
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(words, size=length)) for _ in range(number)]


def make_dataset(texts: list[str], splits: list[str] | None = None) -> Dataset:
    return Dataset(texts, [0] * len(texts), splits=splits or ())  # type: ignore[arg-type]


def test_the_comparison_agrees_with_a_t_test_for_normal_scores() -> None:
    for seed in range(20):
        scores = np.random.default_rng(seed).normal(size=100)
        expected = ttest_ind(scores[:40], scores[40:], alternative="greater").pvalue
        assert compare_scores(scores, [], GROUPS).p == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("with_covariate", [False, True])
def test_exchangeable_scores_are_rejected_at_the_nominal_rate(with_covariate: bool) -> None:
    """Scores have heavy tails, a part of them is equal, and they depend on a covariate."""
    generator = np.random.default_rng(1)
    p_values = []
    for _ in range(600):
        covariate = generator.gamma(1.0, size=100)
        scores = np.round(covariate + generator.standard_t(2, size=100))
        p_values.append(compare_scores(scores, [covariate] if with_covariate else [], GROUPS).p)
    for level in (0.05, 0.2):
        rate = np.mean(np.array(p_values) <= level)
        assert rate < level + 3.3 * np.sqrt(level * (1 - level) / 600)
    assert rate > 0.1, "a test that never rejects would pass, too"


def test_a_covariate_makes_a_small_difference_visible() -> None:
    generator = np.random.default_rng(2)
    difficulty = generator.normal(size=100)
    scores = difficulty + 0.1 * generator.normal(size=100)
    scores[:40] += 0.1
    alone, adjusted = compare_scores(scores, [], GROUPS), compare_scores(scores, [difficulty], GROUPS)
    assert adjusted.p < 0.001 < alone.p
    assert adjusted.adjusted == pytest.approx(0.1, abs=0.05)
    assert compare_scores(-scores, [difficulty], GROUPS).p > 0.99, "only higher scores are a sign of exposure"


def test_equal_scores_are_no_evidence() -> None:
    assert compare_scores(np.full(100, -3.7), [], GROUPS).p == 1
    assert permutation_p(np.zeros(5)) == 1


def test_weights_are_those_of_differences_of_means() -> None:
    values = np.arange(5.0)
    differences = Groups(2, 3).mean_differences(values)
    assert differences[0] == pytest.approx(0.5 - 3)
    possible = {
        round(values[list(pair)].mean() - np.delete(values, pair).mean(), 6)
        for pair in np.ndindex(5, 5)
        if pair[0] != pair[1]
    }
    assert {round(float(difference), 6) for difference in differences} == possible


@pytest.mark.parametrize("change", ["words", "style", "length"])
def test_shifted_texts_are_detected(change: str) -> None:
    audited, unseen = make_texts(60, 0), make_texts(60, 1)
    if change == "words":
        unseen = make_texts(60, 1, WORDS[10:])
    elif change == "style":
        unseen = [text.replace("w1", "W1") for text in unseen]
    else:
        unseen = make_texts(60, 1, length=9)

    def p_values(second: list[str]) -> dict[str, float]:
        texts = [*audited, *second]
        similarities = {"words": text_similarity(texts, "word"), "style": text_similarity(texts, "char")}
        return shift_p_values(similarities, {"length": np.array([len(text.split()) for text in texts])}, Groups(60, 60))

    shifted, same = p_values(unseen), p_values(make_texts(60, 1))
    assert shifted[change] <= 0.001
    assert decide(0.001, shifted, 0.05).startswith("inconclusive: the unseen texts differ in")
    assert decide(0.001, same, 0.05) == EXPOSED
    assert decide(0.06, shifted, 0.05).startswith("inconclusive: the unseen texts differ in"), "it may hide exposure"
    assert decide(0.06, same, 0.05) == NO_EXPOSURE


@pytest.mark.simulation
def test_the_test_for_shifts_keeps_its_level() -> None:
    """Random exchanges have an exact level, so the rates are binomial; the bounds are 3.3 standard errors."""
    p_values = []
    for seed in range(400):
        texts = make_texts(40, seed, length=6)
        p_values.append(shift_p_values({"words": text_similarity(texts, "word")}, {}, Groups(20, 20))["words"])
    for level in (0.05, 0.2):
        rate = np.mean(np.array(p_values) <= level)
        assert abs(rate - level) < 3.3 * np.sqrt(level * (1 - level) / 400)


def test_texts_without_words_are_not_similar() -> None:
    assert text_similarity(["?", "!"], "word").tolist() == [[0, 0], [0, 0]]


def test_texts_are_chosen_from_tasks_and_splits() -> None:
    tasks = {"old": make_dataset(["a", "b", "c"], ["train", "test", "train"]), "new": make_dataset(["c", "d", "e"])}
    chosen = choose_texts(tasks, "new", None, 2, 0)
    assert set(chosen) == {"old"}
    assert (chosen["old"].audited, chosen["old"].unseen, chosen["old"].num_common) == (("a", "b"), ("d", "e"), 1)
    (by_split,) = choose_texts({"old": tasks["old"]}, "", "test", 5, 0).values()
    assert (by_split.audited, by_split.unseen) == (("a", "c"), ("b",))
    sample = choose_texts({"t": make_dataset(make_texts(50, 0))}, "", None, 10, 0)["t"].audited
    assert len(sample) == 10
    assert sample != choose_texts({"t": make_dataset(make_texts(50, 0))}, "", None, 10, 1)["t"].audited
    with pytest.raises(DataError, match="task new: it has no official splits"):
        choose_texts(tasks, "", "test", 5, 0)
    with pytest.raises(SpecError, match="did you mean 'new'"):
        choose_texts(tasks, "news", None, 5, 0)
