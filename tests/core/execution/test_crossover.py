"""Crossover scoring: each fit predicts the set that it adapted to and the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stored_scores import find_wrong_scores

import peekbench
from peekbench.errors import SpecError
from peekbench.execution.fit_plans import count_work
from peekbench.execution.runner import run
from peekbench.records.scores import average_scores
from peekbench.results import load_results
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.reader import Store

MakeSpec = Callable[..., ExperimentSpec]
DESIGN = {"num_train": 12, "num_test": 30, "num_subsamples": 3}
METHODS = ["toy.vote", {"use": "classic.lsa", "options": {"num_components": 5}}]


def stored_predictions(spec: ExperimentSpec) -> tuple[Path, dict[Any, dict[str, Any]]]:
    path = run(spec).store
    with Store.open(path) as store:
        return path, {
            trial: {arm: found.numbers for arm, found in store.predictions(trial).items()}
            for trial in sorted(store.done())
        }


def test_the_first_set_is_scored_as_without_crossover(make_spec: MakeSpec) -> None:
    """The same draws and fits: A by the fit of A, and A by the fit of B, and then the same for B."""
    _, single = stored_predictions(make_spec(name="single", methods=METHODS, design={**DESIGN, "crossover": False}))
    _, double = stored_predictions(make_spec(name="double", methods=METHODS, design={**DESIGN, "crossover": 2}))
    assert single.keys() == double.keys()
    for trial, arms in single.items():
        for arm, predictions in arms.items():
            assert double[trial][arm].shape == (60, 3)
            assert np.array_equal(double[trial][arm][:30], predictions)
            assert not np.array_equal(double[trial][arm][30:], predictions)


def test_own_and_other_scores_are_means_over_sets(make_spec: MakeSpec) -> None:
    num_sets = 3
    path, _ = stored_predictions(make_spec(methods=METHODS, design={**DESIGN, "crossover": num_sets}))
    results = load_results(path)
    expected = {"base": num_sets * 30, "extra": num_sets * (num_sets - 1) * 30, "test": num_sets * 30}
    assert (results["num_scored"] == results["arm"].map(expected)).all()
    assert np.allclose(results["score"], results["num_correct"] / results["num_scored"])
    assert find_wrong_scores(path) == []
    with Store.open(path) as store:
        _, rows = store.test_rows(next(iter(store.done())).draw)
        answers = store.answers("a", "classic.lsa", 12, 30, ["extra", "test"])
    assert len(set(rows.tolist())) == num_sets * 30
    assert answers.rows.shape == answers.scores["extra"].shape == (3, num_sets * 30)
    lsa = results[(results["task"] == "a") & (results["method"] == "classic.lsa")]
    for arm in ("extra", "test"):
        assert np.allclose(answers.scores[arm].mean(axis=1), lsa[lsa["arm"] == arm]["score"])


def test_a_planted_bias_is_recovered_and_no_bias_is_exactly_zero(make_spec: MakeSpec) -> None:
    leak = {"use": "controls.leak", "options": {"share": 0.5}}
    spec = make_spec(methods=[leak, "controls.null", "toy.constant"], design={**DESIGN, "crossover": 3})
    results = load_results(run(spec).store)
    wide = results.pivot_table(index=["method", "task", "subsample"], columns="arm", values="score")
    bias = wide["test"] - wide["extra"]
    assert bias["controls.leak"].mean() > 0.1
    assert (bias[["controls.null", "toy.constant"]] == 0.0).all()


def test_metrics_such_as_log_loss_are_averaged_over_sets() -> None:
    one = {
        "num_correct": 7,
        "score": 0.7,
        "log_loss": 0.1,
        "brier": 0.3,
        "macro_f1": None,
        "micro_f1": None,
        "grade": None,
        "bits_per_byte": None,
    }
    two = {**one, "num_correct": 9, "score": 0.9, "log_loss": 0.4}
    joined = average_scores([one, two], 2)
    assert joined == {**one, "num_correct": 16, "score": pytest.approx(0.8), "log_loss": pytest.approx(0.25)}
    assert average_scores([one] * 6, 3)["brier"] == 0.3


def test_predictions_name_the_text_of_each_answer(make_spec: MakeSpec) -> None:
    store, by_trial = stored_predictions(make_spec(methods=["toy.vote"], design={**DESIGN, "crossover": 3}))
    table = peekbench.load_run(store).predictions.to_pandas(task="a", subsample=0)
    counts = table.groupby("arm")["text"].agg(["size", "nunique"])
    assert counts.to_dict("index") == {
        "base": {"size": 90, "nunique": 90},
        "extra": {"size": 180, "nunique": 90},
        "test": {"size": 90, "nunique": 90},
    }
    assert table.groupby("text")["label"].nunique().eq(1).all()
    assert len(by_trial) == 6


def test_fits_and_rows_are_counted(make_spec: MakeSpec) -> None:
    specs = [make_spec(methods=["toy.vote"], design={**DESIGN, "crossover": number}) for number in (False, 2, 3)]
    assert [count_work(spec).fits for spec in specs] == [18, 18, 24]
    with pytest.raises(peekbench.PeekbenchError, match="3 x num_test 200 = 612 are needed"):
        run(make_spec(design={**DESIGN, "num_test": 200, "crossover": 3}))


@pytest.mark.parametrize(
    ("value", "message"), [(1, ".*greater than or equal to 2: 1"), (True, ".*a valid integer: True")]
)
def test_other_numbers_of_sets_are_refused(value: Any, message: str, make_spec: MakeSpec) -> None:
    with pytest.raises(SpecError, match=f"design.crossover: {message}"):
        make_spec(design={**DESIGN, "crossover": value})
