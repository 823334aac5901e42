"""Tests of `summary.selection`: the known inflation of the best of several scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from analysis_tables import table_rows
from scipy.stats import binom

from peekbench import Analysis
from peekbench.records import Answers, FloatArray
from peekbench.results import tidy
from peekbench.results.analyze import AnalysisOptions, analyze
from peekbench_summary import Selection
from peekbench_summary.selection import Choices, analyze_selection
from peekbench_testing import check_entry

if TYPE_CHECKING:
    pass

ACCURACY = 0.7
NUM_TEXTS = 100
USE = "summary.selection"


@dataclass(frozen=True, slots=True)
class SimulatedAnswers:
    """Answers to texts by task, shape (n_configurations, n_subsamples, n_texts); subsamples share no texts."""

    scores: dict[str, FloatArray]
    group_size: int = 1
    are_same_texts: bool = False

    def answers(
        self, task: str, method: str, num_train: int | None, num_test: int | None, arms: Sequence[str], model: str = ""
    ) -> Answers:
        scores = self.scores[task][int(method)]
        texts = np.arange(scores.size).reshape(scores.shape)
        order = np.random.default_rng(int(method)).permutation(scores.shape[1])  # methods need not agree on an order
        numbers = texts[:, order]
        if self.are_same_texts:
            numbers = numbers % scores.shape[1]
        groups = numbers // self.group_size if self.group_size > 1 else None
        return Answers(np.arange(len(scores)), numbers, dict.fromkeys(arms, scores[:, order]), groups=groups)


def simulate_answers(
    rng: np.random.Generator,
    accuracies: Sequence[float],
    *,
    subsamples: int,
    tasks: int = 1,
    num_texts: int = NUM_TEXTS,
) -> SimulatedAnswers:
    shape = (len(accuracies), subsamples, num_texts)
    chance = np.array(accuracies)[:, None, None]
    return SimulatedAnswers({f"task {task}": (rng.random(shape) < chance).astype(float) for task in range(tasks)})


def as_table(answers: SimulatedAnswers) -> pd.DataFrame:
    rows = [
        (task, str(method), subsample, scores.shape[2], arm, score)
        for task, scores in answers.scores.items()
        for (method, subsample), score in np.ndenumerate(scores.mean(axis=2))
        for arm in ("extra", "test")
    ]
    return tidy(pd.DataFrame(rows, columns=["task", "method", "subsample", "num_test", "arm", "score"]), "simulated")


def inflation(answers: SimulatedAnswers, *, by_texts: bool) -> list[dict[str, Any]]:
    analysis = analyze_selection(as_table(answers), options=Selection(), predictions=answers if by_texts else None)
    assert analysis.warnings == ()
    return table_rows(analysis.tables[0])


def expected_inflation(num_compared: int, num_texts: int) -> float:
    """The mean of the largest of K independent binomial shares, minus the accuracy."""
    below = binom.cdf(np.arange(num_texts), num_texts, ACCURACY) ** num_compared
    return float((1 - below).sum()) / num_texts - ACCURACY


@pytest.mark.parametrize("by_texts", [True, False], ids=["texts", "subsamples"])
def test_inflation_of_equal_configurations_is_that_of_the_largest_binomial(by_texts: bool) -> None:
    answers = simulate_answers(np.random.default_rng(0), [ACCURACY] * 6, subsamples=150, tasks=2)
    rows = inflation(answers, by_texts=by_texts)
    assert [row["K"] for row in rows] == [2, 3, 5, 6]
    assert {(row["texts"], row["tasks"], row["subsamples"]) for row in rows} == {(50 if by_texts else 100, 2, 300)}
    for row in rows:
        assert row["inflation"] == pytest.approx(expected_inflation(row["K"], row["texts"]), rel=0.08)
        assert row["inflation, low"] < row["inflation"] < row["inflation, high"]


def test_inflation_of_seeds_on_the_same_texts_has_the_luck_of_texts_and_seeds() -> None:
    """Methods are equally good on other texts. The subsamples alone miss most of the inflation, and halves of the
    texts in the same subsample miss the luck of the seed."""
    rng = np.random.default_rng(8)
    found, alone, true = [], [], []
    for _ in range(24):
        latent = rng.normal(size=(5, 1, NUM_TEXTS)) + 0.2 * rng.normal(size=(5, 4, 1))
        scores = (latent + 0.3 * rng.normal(size=(5, 4, NUM_TEXTS)) > 0).astype(float)
        answers = SimulatedAnswers({"task": scores}, are_same_texts=True)
        found.append(inflation(answers, by_texts=True)[-1])
        alone.append(inflation(answers, by_texts=False)[-1]["inflation"])
        true.append(scores[:, :, : NUM_TEXTS // 2].mean(axis=2).max(axis=0).mean() - 0.5)
    truth = np.mean(true)
    assert np.mean([row["inflation"] for row in found]) == pytest.approx(truth, rel=0.15)
    assert np.mean(alone) < 0.8 * truth
    assert np.mean([row["inflation, low"] <= truth <= row["inflation, high"] for row in found]) >= 0.9


def test_subsets_are_averaged_exactly() -> None:
    """All subsets are counted, and equal scores are chosen with equal probabilities."""
    rng = np.random.default_rng(3)
    chosen, loss = rng.integers(0, 4, size=(5, 7)) / 4, rng.normal(size=(5, 7))
    for size in (1, 2, 4, 7):
        expected = [
            np.mean([loss[row, method] for method in subset if chosen[row, method] == chosen[row, list(subset)].max()])
            for row in range(5)
            for subset in combinations(range(7), size)
        ]
        assert Choices(chosen, loss).inflation_of_best(size) == pytest.approx(np.mean(expected))


def analyze_table(rows: Sequence[tuple[Any, ...]], columns: str) -> Analysis:
    (analysis,) = analyze(pd.DataFrame(rows, columns=columns.split()), AnalysisOptions([USE])).analyses
    return analysis


@pytest.mark.slow
def test_contract() -> None:
    assert [outcome for outcome in check_entry(USE) if not outcome.passed] == []
