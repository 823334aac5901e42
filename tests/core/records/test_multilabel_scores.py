"""Tests of the scores of multi-label tasks: they are those of scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, brier_score_loss, f1_score, get_scorer_names, log_loss

from peekbench.records.answers import Predicted
from peekbench.records.scores import ScoringInput, find_score, score_all

AVERAGES = ("macro", "micro", "samples", "weighted")


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_scikit_learn(seed: int) -> None:
    """Some labels occur neither among the true labels nor among the answers; some texts have no label."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=(60, 7)) * rng.integers(2, size=(60, 1))
    predictions = np.clip(rng.normal(0.3 + 0.4 * labels, 0.3), 0.001, 0.999)
    labels[:, 2], predictions[:, 2] = 0, 0.1
    predictions[0, 0] = 0.5
    answers = (predictions > 0.5).astype(int)
    scores = score_all("multilabel", ScoringInput(Predicted(predictions), labels, 7))
    columns = [(labels[:, label], predictions[:, label]) for label in range(7)]
    expected = {
        "num_correct": accuracy_score(labels, answers, normalize=False),
        "score": accuracy_score(labels, answers),
        "micro_f1": f1_score(labels, answers, average="micro", zero_division=0),
        "macro_f1": f1_score(labels, answers, average="macro", zero_division=0),
        "log_loss": np.mean([log_loss(*column, labels=[0, 1]) for column in columns]),
        "brier": 2 * np.mean([brier_score_loss(*column) for column in columns]),
        "bits_per_byte": None,
        "grade": None,
    }
    assert scores == pytest.approx(expected, abs=1e-12)


def test_f1_without_a_label_is_zero() -> None:
    scores = score_all("multilabel", ScoringInput(Predicted(np.full((3, 2), 0.1)), np.zeros((3, 2), dtype=int), 2))
    assert (scores["score"], scores["micro_f1"], scores["macro_f1"]) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("name", "is_mean"),
    [("micro_f1", False), ("macro_f1", False), ("f1_micro", False), ("f1_samples", True), ("log_loss", True)],
)
def test_theorem_of_membership_holds_for_means_over_texts(name: str, is_mean: bool) -> None:
    assert find_score(name).is_mean is is_mean


def test_scores_of_scikit_learn_from_0_to_1_are_fractions() -> None:
    fractions = {name for name in get_scorer_names() if find_score(name).unit == "fraction"}
    ways = {f"{name}_{way}" for name in ("f1", "jaccard", "precision", "recall") for way in AVERAGES}
    areas = {f"roc_auc_{way}" for way in ("ovo", "ovo_weighted", "ovr", "ovr_weighted")}
    others = {"accuracy", "average_precision", "balanced_accuracy", "f1", "jaccard", "precision", "recall", "roc_auc"}
    assert fractions == ways | areas | others | {"top_k_accuracy"}
