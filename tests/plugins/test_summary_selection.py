"""Tests of `summary.selection`: the known inflation of the best of several scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from analysis_tables import table_rows
from scipy.stats import binom

from peekbench import Analysis
from peekbench.errors import SpecError
from peekbench.execution.runner import run
from peekbench.records import Answers, FloatArray
from peekbench.results import tidy
from peekbench.results.analyze import AnalysisOptions, analyze
from peekbench.spec.components import AnalysisSpec, make_component
from peekbench_summary import Selection
from peekbench_summary.selection import Choices, analyze_selection
from peekbench_testing import check_entry

if TYPE_CHECKING:
    from peekbench.spec.experiment import ExperimentSpec

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


@pytest.mark.simulation
@pytest.mark.parametrize("by_texts", [True, False], ids=["texts", "subsamples"])
def test_intervals_cover_the_expected_inflation(by_texts: bool) -> None:
    """At least 90% of 300 intervals of 8 subsamples contain it, at a level of 95%, and their centers are unbiased."""
    rng = np.random.default_rng(1)
    num_texts = 60
    truth = expected_inflation(5, num_texts // 2 if by_texts else num_texts)
    rows = [
        inflation(simulate_answers(rng, [ACCURACY] * 5, subsamples=8, num_texts=num_texts), by_texts=by_texts)[-1]
        for _ in range(300)
    ]
    assert np.mean([row["inflation, low"] <= truth <= row["inflation, high"] for row in rows]) >= 0.9
    means = np.array([row["inflation"] for row in rows])
    assert abs(means.mean() - truth) < 3 * means.std() / math.sqrt(len(means))


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


def test_a_run_is_analyzed_by_its_texts(make_spec: Callable[..., ExperimentSpec]) -> None:
    methods = ["toy.vote", {"use": "toy.vote", "name": "again"}, "toy.constant"]
    store = run(make_spec(methods=methods, design={"num_train": 12, "num_test": 30, "num_subsamples": 3})).store
    (analysis,) = analyze(store, AnalysisOptions([USE])).analyses
    assert [(row["K"], row["texts"], row["subsamples"]) for row in table_rows(analysis.tables[0])] == [
        (2, 30, 6),
        (3, 30, 6),
    ]


def analyze_table(rows: Sequence[tuple[Any, ...]], columns: str) -> Analysis:
    (analysis,) = analyze(pd.DataFrame(rows, columns=columns.split()), AnalysisOptions([USE])).analyses
    return analysis


def test_tables_without_arms_are_read() -> None:
    rng = np.random.default_rng(4)
    seeds = [(f"m{k}", "news", seed, rng.normal(0.3, 0.1)) for k in range(3) for seed in range(5)]
    analysis = analyze_table(seeds, "model task seed r2")
    assert [column.unit for column in analysis.tables[0].columns][1] == "change"
    texts = [(f"m{k}", task, text, rng.integers(2)) for k in range(3) for task in "ab" for text in range(80)]
    rows = table_rows(analyze_table(texts, "model task text score").tables[0])
    assert [(row["texts"], row["tasks"], row["inflation, low"]) for row in rows] == [(40, 2, None)] * 2
    assert all(row["inflation"] > 0 for row in rows)


def test_what_cannot_be_analyzed_is_explained() -> None:
    alone = analyze_table([("a", "news", seed, 0.5 + seed / 10) for seed in range(3)], "method task seed score")
    assert alone.tables == ()
    assert "at least two configurations" in alone.warnings[0]
    single = analyze_table([("a", "news", 0.5), ("b", "news", 0.6)], "method task score")
    assert "needs two or more subsamples" in single.warnings[0]
    partial = [("a", "news", 0, 0.5), ("a", "news", 1, 0.6), ("a", "news", 2, 0.6)]
    partial += [("b", "news", 0, 0.4), ("b", "news", 1, 0.7)]
    assert "left out 1 subsample" in analyze_table(partial, "method task seed score").warnings[0]
    answers = simulate_answers(np.random.default_rng(6), [0.5, 0.5], subsamples=2)
    with pytest.raises(SpecError, match=r"option arm: there are no scores of 'base'; choose one of extra, test"):
        analyze(as_table(answers), AnalysisOptions([make_component(AnalysisSpec, USE, {"arm": "base"})]))


@pytest.mark.slow
def test_contract() -> None:
    assert [outcome for outcome in check_entry(USE) if not outcome.passed] == []
