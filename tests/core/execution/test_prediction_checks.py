"""Scores of predictions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, f1_score, log_loss, r2_score

from peekbench.errors import ContractError
from peekbench.execution.prediction_checks import check_independence, check_predictions, compute_scores, score_texts
from peekbench.records.answers import Predicted
from peekbench.records.data import FloatArray, SourceRef, Task
from peekbench.records.trials import Predictor

TASK = Task("t", "classification", ("a", "b", "c"), "", SourceRef("toy.words"))
TEXTS = Task("d", "language_modeling", (), "", SourceRef("toy.words"))
NUMBERS = Task("n", "regression", (), "", SourceRef("toy.numbers"))


def test_scores_by_hand() -> None:
    predictions = np.array([[0.5, 0.5, 0.0], [0.2, 0.2, 0.6], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], dtype=np.float32)
    scores = compute_scores(Predicted(predictions), np.array([0, 2, 1, 1]), TASK)
    assert (scores["num_correct"], scores["score"]) == (3, 0.75)  # the first of equal probabilities is the answer
    assert scores["log_loss"] == pytest.approx(-np.log([0.5, 0.6, 1.0, 2.0**-23]).mean(), rel=1e-6)
    assert scores["brier"] == pytest.approx((0.5 + 0.24 + 0 + 2) / 4, rel=1e-6)
    assert scores["macro_f1"] == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)


@pytest.mark.parametrize("seed", range(5))
def test_scores_equal_those_of_scikit_learn(seed: int) -> None:
    """Use few texts, so that some classes are missing among labels, answers or both."""
    generator = np.random.default_rng(seed)
    predictions = generator.dirichlet(np.full(3, 0.7), size=5).astype(np.float32)
    labels = generator.integers(0, 3, size=5)
    scores = compute_scores(Predicted(predictions), labels, TASK)
    exact = predictions.astype(np.float64)
    exact /= exact.sum(axis=1, keepdims=True)
    assert scores["log_loss"] == pytest.approx(log_loss(labels, exact, labels=[0, 1, 2]), rel=1e-5)
    assert scores["brier"] == pytest.approx(
        brier_score_loss(labels, exact, labels=[0, 1, 2], scale_by_half=False), rel=1e-5
    )
    assert scores["macro_f1"] == pytest.approx(f1_score(labels, exact.argmax(axis=1), average="macro", zero_division=0))


def test_r_squared_by_hand() -> None:
    scores = compute_scores(Predicted(np.array([1.0, 2.0, 2.0], dtype=np.float32)), np.array([1.0, 2.0, 3.0]), NUMBERS)
    assert scores == {
        "num_correct": None,
        "score": 0.5,
        "log_loss": None,
        "brier": None,
        "macro_f1": None,
        "micro_f1": None,
        "grade": None,
        "bits_per_byte": None,
    }
    with pytest.raises(ContractError, match="larger num_test"):
        compute_scores(Predicted(np.full(20, 0.11)), np.full(20, 0.1), NUMBERS)  # whose mean is not exactly 0.1


def test_bits_per_byte_by_hand() -> None:
    scores = compute_scores(Predicted(np.array([-3.0, -7.0]) * math.log(2)), np.array([4.0, 16.0]), TEXTS)
    assert scores["bits_per_byte"] == pytest.approx(0.5)
    assert scores["score"] == pytest.approx(-0.5)
    assert scores["num_correct"] is None
    with pytest.raises(ContractError, match="all test texts are empty"):
        compute_scores(Predicted(np.zeros(2)), np.zeros(2), TEXTS)


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        (np.array([-1.0, 0.5]), "prediction 0.5 in row 1 is positive"),
        (np.array([-1.0, -np.inf]), "NaN or infinity in 1 of 2 rows"),
        (np.array([[0.5, 0.5], [0.5, 0.5]]), "one number for each input"),
    ],
)
def test_predictions_must_be_log_probabilities(predictions: FloatArray, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        check_predictions(predictions, 2, TEXTS)


@pytest.mark.parametrize("size", [1.0, 1e-170, 1e160])
def test_r_squared_does_not_depend_on_the_unit_of_the_targets(size: float) -> None:
    targets, predictions = np.array([1.0, 2.0, 3.0, 5.0]) * size, np.array([1.1, 2.0, 2.5, 5.5]) * size
    assert compute_scores(Predicted(predictions), targets, NUMBERS)["score"] == pytest.approx(
        r2_score([1, 2, 3, 5], [1.1, 2, 2.5, 5.5])
    )


def scorer(*values: float) -> Predictor:
    return Predictor(lambda texts: np.eye(3)[: len(texts)], log_likelihoods=lambda texts: np.array(values))


def test_classifiers_may_score_the_texts() -> None:
    """Three bytes and one: "\u00fc" has two bytes. A probability of 2^-4 for each text is two bits per byte."""
    texts = score_texts(scorer(*[-4 * math.log(2)] * 2), ["a\u00fc", "b"], TASK)
    scores = compute_scores(Predicted(np.eye(3, dtype=np.float32)[:2]), np.array([0, 2]), TASK, texts)
    assert scores["score"] == 0.5
    assert scores["bits_per_byte"] == pytest.approx(2.0)
    assert compute_scores(Predicted(np.eye(3, dtype=np.float32)[:2]), np.array([0, 2]), TASK)["bits_per_byte"] is None
    with pytest.raises(ContractError, match="all test texts are empty"):
        compute_scores(Predicted(np.eye(3)[:1]), np.array([0]), TASK, score_texts(scorer(0.0), [""], TASK))


@pytest.mark.parametrize(
    ("values", "message"),
    [([-1.0], "have shape \\(1,\\)"), ([-1.0, math.nan], "NaN"), ([-1.0, 0.5], "0.5 in row 1 is positive")],
)
def test_invalid_log_likelihoods_are_refused(values: list[float], message: str) -> None:
    with pytest.raises(ContractError, match=f"log.likelihoods?.*{message}"):
        score_texts(scorer(*values), ["a", "b"], TASK)


def test_log_likelihoods_are_for_the_classification_of_texts() -> None:
    with pytest.raises(ContractError, match="task d is none; leave it out"):
        score_texts(scorer(-1.0), ["a"], TEXTS)


def test_predictions_must_not_depend_on_the_inputs_that_are_predicted_together() -> None:
    inputs = np.arange(10.0)[:, None]

    def check(predict: Any) -> None:
        check_independence(Predictor(predict), inputs, Predicted(predict(inputs)), NUMBERS)

    check(lambda rows: rows[:, 0] - 3)
    check(lambda rows: rows[:, 0] + 0.01 * len(rows))  # half precision rounds other batches in other ways
    for predict, message in (
        (lambda rows: rows[:, 0] - rows.mean(), "5 of 10 inputs, predicted alone, change by up to 2.5"),
        (lambda rows: rows[:, 0] + rows[0], "change by up to 5"),  # depends on the inputs before it
        (lambda rows: inputs[:, 0], "predicted alone, raise ContractError: predictions"),
    ):
        with pytest.raises(ContractError, match=message):
            check(predict)
