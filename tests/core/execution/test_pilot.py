"""Tests of pilots: they measure what trials use, from which the time of a run is forecast."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from peekbench.data.loading import with_sizes
from peekbench.execution import pilot as pilot_module
from peekbench.execution.fit_plans import planned_design
from peekbench.execution.pilot import Pilot, count_trials, run_pilot, variance_of_bias
from peekbench.records.answers import Predicted
from peekbench.records.trials import ArmResult, Draw, Trial, TrialFailure, TrialResult
from peekbench.spec.experiment import ExperimentSpec


@pytest.fixture
def spec(make_raw: Any) -> ExperimentSpec:
    return ExperimentSpec.model_validate(make_raw())


def test_a_pilot_measures_each_method(spec: ExperimentSpec) -> None:
    pilot = run_pilot(spec)
    assert set(pilot.seconds) == set(count_trials(spec))
    assert min(pilot.seconds.values()) > 0


def test_time_is_a_multiple_of_that_of_the_pilot(spec: ExperimentSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pilot_module, "available_cores", lambda: 2)
    keys = count_trials(spec)
    num_trials, methods = keys.total(), {key[0] for key in keys}
    pilot = Pilot(dict.fromkeys(keys, 2.0), dict.fromkeys(methods, 4.0), ())
    assert pilot.start == 2 * len(methods)
    one, two, eight = (pilot.forecast(spec, workers) for workers in (1, 2, 8))
    assert one.seconds == pytest.approx(pilot.start + 2 * num_trials)
    assert two.seconds == pytest.approx(pilot.start + 2 * num_trials / 2)
    assert eight.seconds == pytest.approx(4 * pilot.start + 2 * num_trials / 2)  # on two cores


def test_a_method_that_fails_has_no_time(make_raw: Any) -> None:
    pilot = run_pilot(ExperimentSpec.model_validate(make_raw(methods=["toy.faulty", "toy.constant"])))
    assert {key[0] for key in pilot.seconds} == {"toy.constant"}
    assert all(isinstance(failure, TrialFailure) for failure in pilot.failures)
    assert pilot.failures


@pytest.mark.parametrize("size", [1, 4])
def test_the_variance_between_divisions_is_that_of_the_answers_in_one(size: int) -> None:
    """Fits differ in quality, which cancels, and answers to texts of a group are equal."""
    rng = np.random.default_rng(0)
    num_texts, num_folds = 240, 5
    group = np.arange(num_texts) // size
    labels, chances = rng.integers(2, size=num_texts), rng.uniform(0.2, 0.9, num_texts)[group]
    biases, variances = [], []
    for _ in range(400):
        quality = rng.normal(0, 0.05, (num_folds, 1))  # in the order of folds, as fits predict blocks of the test set
        correct = rng.random((num_folds, num_texts))[:, group] < np.clip(chances + quality, 0, 1)
        fold = np.arange(num_texts) * num_folds // num_texts
        fits = [(fold + shift) % num_folds for shift in range(num_folds)]
        extra, *test = (correct[fit, np.arange(num_texts)] for fit in fits)
        arms = tuple(
            ArmResult(name, {}, 0.0, 0.0, {}, Predicted(np.eye(2)[np.where(answers, labels, 1 - labels).ravel()]))
            for name, answers in (("extra", extra), ("test", np.array(test)))
        )
        trial = Trial(Draw("task", 10, 192, 0), "method")
        result = TrialResult(trial, labels, np.arange(num_texts), arms, test_groups=group)
        variances.append(variance_of_bias(result))
        biases.append(np.mean(test) - extra.mean())
    assert np.mean(variances) == pytest.approx(np.var(biases), rel=0.2)
    assert np.std(variances) < 0.2 * np.mean(variances)  # so one division tells it


def test_a_pilot_measures_the_noise_of_folds_and_power_needs_it(make_raw: Any, tmp_path: Path) -> None:
    for name, number in (("train", 40), ("test", 60)):
        rows = [f"w{row % 7} w{row % 5} w{row % 3},{row % 2}" for row in range(number)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["text,label", *rows]))
    files = {"path": str(tmp_path / "train.csv"), "test_path": str(tmp_path / "test.csv")}
    tasks = [{"use": "files", "name": "words", "options": files}]
    spec = with_sizes(ExperimentSpec.model_validate(make_raw(tasks=tasks, methods=["toy.vote"], design="official")))
    pilot = run_pilot(spec)
    assert pilot.variances.keys() == {("toy.vote", 40, 48)}
    design = planned_design(spec, {"words": 2}, pilot.variances)
    assert design.variances == pilot.variances
