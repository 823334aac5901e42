"""The number of scored sets: its time for the same power, and the recommendation of `plan`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from peekbench.cli.plan import describe_set_choice
from peekbench.data.preflight import check_tasks
from peekbench.execution.pilot import (
    Pilot,
    TrialTimes,
    compare,
    count_trials,
    find_obstacle,
    information,
    run_pilot,
    with_crossover,
)
from peekbench.execution.work import SpecWork
from peekbench.records import Draw, Trial, TrialResult, WorkItem
from peekbench.spec.experiment import ExperimentSpec

MakeSpec = Callable[..., ExperimentSpec]
SPEEDS = '''
import time

import numpy as np


def _wait(seconds, num_classes):
    def predict(inputs):
        time.sleep(seconds)
        return np.full((len(inputs), num_classes), 1 / num_classes)
    return predict


def slow_fit(unlabeled, train, task):
    """Waits in each fit."""
    time.sleep(0.05)
    return _wait(0, len(task.class_names))


def slow_predict(unlabeled, train, task):
    """Waits in each prediction of a set."""
    return _wait(0.05, len(task.class_names))
'''


@pytest.fixture
def make(make_spec: MakeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeSpec:
    (tmp_path / "speeds.py").write_text(SPEEDS)
    monkeypatch.setattr("peekbench.execution.pilot.MAX_ROUNDS", 3)

    def make_one(*methods: str, **design: Any) -> ExperimentSpec:
        sizes = {"num_train": 12, "num_test": 30, "num_subsamples": 200, **design}
        return make_spec(methods=[f"speeds.py:{method}" for method in methods], design=sizes)

    return make_one


@pytest.mark.parametrize("num_sets", [2, 3, 5])
def test_the_information_is_the_inverse_of_the_variance(num_sets: int) -> None:
    rng = np.random.default_rng(0)
    shape = (20_000, num_sets, num_sets)  # trials, fits, sets
    scores = rng.normal(0, 5, (20_000, 1, num_sets)) + rng.normal(0, 5, (20_000, num_sets, 1)) + rng.normal(size=shape)
    own = np.eye(num_sets, dtype=bool)
    bias = scores[:, own].mean(axis=1) - scores[:, ~own].mean(axis=1)
    assert 1 / bias.var() == pytest.approx(information(num_sets), rel=0.05)
    one_set = scores[:, 0, 0] - scores[:, 1, 0]
    assert 1 / one_set.var() < information(False)


@pytest.mark.slow
def test_the_recommendation_depends_on_which_part_is_slow(make: MakeSpec) -> None:
    """Starting from five sets, slow predictions ask for fewer, and starting from two, slow fits ask for more."""
    fits, predictions = make("slow_fit"), make("slow_predict", crossover=5, num_subsamples=50)
    by_fits, by_predictions = (compare(spec, run_pilot(spec).times, count_trials(spec)) for spec in (fits, predictions))
    assert by_fits is not None
    assert by_predictions is not None
    assert by_fits.best in (5, 10)
    assert by_fits.relative[5] == pytest.approx(6 / 4 / 3, rel=0.2)  # a fit for each set, and the base arm
    assert by_predictions.best == 2
    assert by_predictions.relative[2] == pytest.approx(6 / 7.5, rel=0.1)
    for spec, choice, number in ((fits, 10, 23), (predictions, 2, 200)):
        obeyed = with_crossover(spec, choice)
        check_tasks(obeyed)
        assert (obeyed.design.crossover, obeyed.design.num_subsamples) == (choice, number)


@pytest.mark.slow
@pytest.mark.parametrize("crossover", [False, 2, 3])
def test_the_times_of_arms_are_divided_among_fits_and_predictions(make: MakeSpec, crossover: Any) -> None:
    spec = make("slow_fit", "slow_predict", crossover=crossover)
    work = SpecWork(spec)
    for method, is_slow in (("slow_fit", "fit"), ("slow_predict", "predict")):
        (outcome,) = work(WorkItem((Trial(Draw("a", 12, 30, 0), method),), has_base=False))
        assert isinstance(outcome, TrialResult)
        times = TrialTimes.of(outcome.arms, crossover)
        assert times.seconds(crossover) == pytest.approx(
            sum(arm.fit_seconds + arm.predict_seconds for arm in outcome.arms)
        )
        slow = {name: getattr(times, name) for name in (is_slow, f"base_{is_slow}")}
        assert all(0.05 <= seconds < 0.1 for seconds in slow.values()), slow


def describe(spec: ExperimentSpec, **times: TrialTimes) -> str:
    return "\n".join(describe_set_choice(spec, Pilot({}, {}, (), {(key, 12, 30): each for key, each in times.items()})))


FITS, PREDICTIONS = TrialTimes(1.0, 0.0, 1.0, 0.0), TrialTimes(0.0, 1.0, 0.0, 1.0)


def test_the_choices_in_words(make: MakeSpec) -> None:
    spec = make("slow_fit")
    text = describe(spec, slow_fit=FITS)
    assert "crossover false / 2 / 3 / 5 / 10: relative time for the same power 2.00 / 1.00 / 0.67 / 0.50 / 0.41" in text
    assert "recommended: `design.crossover: 10` with `design.num_subsamples: 23`, which takes about 59% less" in text
    assert "300 rows besides the train rows" in text
    assert "`name`" not in text
    assert "recommended: keep 2" in describe(make("slow_predict"), slow_predict=PREDICTIONS)
    both = describe(make("slow_fit", "slow_predict"), slow_fit=FITS, slow_predict=PREDICTIONS)
    assert "  slow_predict: 1.00 / 1.00 / 1.00 / 1.25 / 2.04" in both
    Path("runs").mkdir()
    Path("runs/small.sqlite").touch()
    assert "give the spec another `name`" in describe(spec, slow_fit=FITS)


def test_only_possible_choices_are_recommended(make_spec: MakeSpec, make: MakeSpec) -> None:
    assert find_obstacle(make("slow_fit", num_subsamples=20), 5) == "would leave 5 subsamples per task"
    assert find_obstacle(make("slow_fit", num_subsamples=2, crossover=5), 2) == "", "more subsamples than before"
    small = [{"use": "toy.words", "name": "a", "options": {"num_rows": 120}}]
    design = {"num_train": 12, "num_test": 30, "num_subsamples": 200}
    few_rows = make_spec(tasks=small, methods=["toy.vote"], design=design)
    text = describe(few_rows, **{"toy.vote": FITS})
    assert "not possible: 5 (too few rows in task a), 10 (too few rows in task a)" in text
    assert "`design.crossover: 3` with `design.num_subsamples: 100`" in text
    listed = make_spec(design={**design, "stop": {"looks": [50, 150]}})
    assert find_obstacle(listed, 3) == "not with these planned looks"
    doses = make_spec(arms=["extra", "test", {"mix": 0.5}], design={**design, "crossover": False})
    assert describe(doses, **{"toy.vote": FITS}).endswith("not compared, because of the arm mix-0.5")
