"""The leaderboard and its ties."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from analysis_tables import find_rows, run_analysis, table_rows
from scipy.stats import ttest_ind

from peekbench.records import Answers
from peekbench.results import Configuration, tidy
from peekbench.results.analyze import AnalysisOptions, analyze
from peekbench_summary.estimates import estimate_change
from peekbench_summary.leaderboard import find_differences, tie_letters

rank, summarize = (partial(run_analysis, name) for name in ("summary.leaderboard", "summary"))


def simulate_methods(
    gains: Mapping[str, float], *, shared: float = 0.05, own: float = 0.005, subsamples: int = 20
) -> Any:
    """Simulate methods whose accuracy is 0.6 plus a gain.

    Parameters
    ----------
    gains
        Method to gain.
    shared
        Standard deviation between subsamples that all methods share.
    own
        Standard deviation between subsamples of each score.
    subsamples
        Number of subsamples per task.
    """
    rng = np.random.default_rng(1)
    rows = []
    for task in ("a", "b", "c"):
        deviations = rng.normal(0, shared, subsamples)
        for method, gain in gains.items():
            for subsample in range(subsamples):
                extra, test = 0.6 + gain + deviations[subsample] + rng.normal(0, own, 2)
                for arm, score in (("base", extra - 0.1), ("extra", extra), ("test", test)):
                    rows.append((task, method, subsample, arm, 1000, np.round(score * 1000) / 1000))
    table = pd.DataFrame(rows, columns=["task", "method", "subsample", "arm", "num_test", "score"])
    return tidy(table, "simulated", independent_tasks=True)


def test_methods_are_ranked_by_the_score_of_extra() -> None:
    (table,) = rank(simulate_methods({"low": 0.0, "high": 0.1, "middle": 0.05})).tables
    ranked = table_rows(table)
    assert [row["method"] for row in ranked] == ["high", "middle", "low"]
    assert [row["tie"] for row in ranked] == ["a", "b", "c"]
    assert [row["extra"] for row in ranked] == pytest.approx([0.7, 0.65, 0.6], abs=0.02)
    for row in ranked:
        assert row["boost, low"] <= row["boost"] <= row["boost, high"]
        assert row["boost"] == pytest.approx(0.1)
        assert row["bias, low"] < 0 < row["bias, high"]
    assert "3 tasks and 60 trials" in table.note


def test_ties_are_paired_by_subsample() -> None:
    """A gain of one point is detected although subsamples differ by 5 points, if methods share the subsamples."""
    results = simulate_methods({"one": 0.0, "two": 0.01, "also two": 0.01})
    ties = {row["method"]: row["tie"] for row in find_rows(rank(results), "Leaderboard")}
    assert ties["two"] == ties["also two"] == "a"
    assert ties["one"] == "b"
    disjoint = results.assign(subsample=results["subsample"] + 100 * results["method"].factorize()[0])
    unpaired = rank(disjoint)
    assert {row["tie"] for row in find_rows(unpaired, "Leaderboard")} == {"a"}
    notes = [next(table.note for table in ranking.tables) for ranking in (rank(results), unpaired)]
    assert ["(3 pairs here), were compared as independent samples" in note for note in notes] == [False, True]


@pytest.mark.parametrize("shift", [0, 100])
def test_few_subsamples_cannot_split_methods(shift: int) -> None:
    """With three subsamples, no permutation of scores is unlikely, however large and equal the difference is."""
    scores = {"task": "a", "subsample": range(3), "num_test": 100, "base": 0.5}
    better = pd.DataFrame({**scores, "method": "better", "extra": 0.8, "test": 0.8})
    worse = pd.DataFrame({**scores, "method": "worse", "extra": 0.6, "test": 0.6})
    worse["subsample"] += shift  # independent subsamples
    few = tidy(pd.concat([better, worse]), "three subsamples")
    assert {row["tie"] for row in find_rows(rank(few), "Leaderboard")} == {"a"}


@dataclass(frozen=True)
class AnswersOfSeeds:
    """Answers of two equally good methods to texts that all of their seeds test, in another order for each seed."""

    by_method: Mapping[str, Answers]

    @classmethod
    def draw(cls, rng: np.random.Generator, *, first: int, seeds: int = 8, texts: int = 150) -> AnswersOfSeeds:
        """Draw answers; the seeds of the second method are numbered from `first`."""
        found = {}
        for method, start in (("one", 0), ("two", first)):
            correct = rng.normal(size=texts) + 0.3 * rng.normal(size=(seeds, texts)) > -0.7
            rows = rng.permuted(np.tile(np.arange(texts), (seeds, 1)), axis=1)
            scores = np.take_along_axis(correct, rows, axis=1).astype(float)
            found[method] = Answers(np.arange(start, start + seeds), rows, dict.fromkeys(("base", "extra"), scores))
        return cls(found)

    def answers(self, task: str, method: str, *sizes: Any) -> Answers:
        return self.by_method[method]

    def configurations(self) -> list[Configuration]:
        return [
            Configuration(
                method,
                (method,),
                {"extra": {"news": answers.scores["extra"].mean(axis=1).tolist()}},
                {"news": answers.subsamples.tolist()},
                (method, "", None, None),
                fixed_texts=self,
            )
            for method, answers in self.by_method.items()
        ]


@pytest.mark.parametrize("first", [0, 100], ids=["paired", "unpaired"])
def test_ties_account_for_texts_that_all_trials_test(first: int) -> None:
    """Seeds on the same texts tell equally good methods apart in half of the test sets if texts are left out."""
    rng = np.random.default_rng(7)
    for_other_texts = for_these_texts = 0
    for _ in range(60):
        methods = AnswersOfSeeds.draw(rng, first=first).configurations()
        for_other_texts += len(find_differences(methods, 0.95).pairs)
        for_these_texts += len(find_differences([replace(method, fixed_texts=None) for method in methods], 0.95).pairs)
    assert for_these_texts >= 25
    assert for_other_texts <= 7


def test_a_table_of_texts_says_that_ties_are_for_other_texts() -> None:
    methods = AnswersOfSeeds.draw(np.random.default_rng(7), first=0, seeds=6).by_method
    rows = [
        {"task": "news", "method": method, "seed": seed, "text": text, "base": 0, "extra": correct, "test": correct}
        for method, answers in methods.items()
        for seed in range(6)
        for text, correct in zip(answers.rows[seed], answers.scores["extra"][seed], strict=True)
    ]
    (analysis,) = analyze(pd.DataFrame(rows), AnalysisOptions(["summary.leaderboard"])).analyses
    (table,) = analysis.tables
    assert "Ties and the interval of the boost account for other texts" in table.note
    (row, _) = table_rows(table)
    texts = methods[row["method"]].scores["extra"]
    least = 1.96 * (texts.mean(axis=0).std() / np.sqrt(texts.shape[1]))
    assert row["boost, high"] - row["boost"] > 0.9 * least


def test_methods_share_a_letter_if_and_only_if_they_do_not_differ() -> None:
    generator = random.Random(3)
    for _ in range(200):
        count = generator.randint(1, 7)
        different = {pair for pair in combinations(range(count), 2) if generator.random() < 0.5}
        letters = tie_letters(count, different)
        assert all(letters)
        for first, second in combinations(range(count), 2):
            assert bool(set(letters[first]) & set(letters[second])) == ((first, second) not in different)
        groups = [{item for item, own in enumerate(letters) if letter in own} for letter in set("".join(letters))]
        assert not any(group < other for group in groups for other in groups), "no letter is redundant"
        assert letters[0].startswith("a")


def test_changes_of_independent_sets_agree_with_the_welch_test() -> None:
    rng = np.random.default_rng(2)
    before, after = rng.normal(0, 1, 12), rng.normal(0.5, 3, 7)
    change = estimate_change([before.tolist()], [after.tolist()], 0.9)
    expected = ttest_ind(after, before, equal_var=False).confidence_interval(0.9)
    assert change.mean == pytest.approx(after.mean() - before.mean())
    assert (change.low, change.high) == pytest.approx((expected.low, expected.high))
