"""Tests of pilots: they measure what trials use, from which the time and the memory of a run are forecast."""

from __future__ import annotations

from typing import Any

import pytest

from peekbench.execution import pilot as pilot_module
from peekbench.execution.pilot import Pilot, count_trials, run_pilot
from peekbench.records.trials import TrialFailure, Usage
from peekbench.spec.experiment import ExperimentSpec

USAGE = Usage(seconds=2.0, memory=4 * 10**8)


@pytest.fixture
def spec(make_raw: Any) -> ExperimentSpec:
    return ExperimentSpec.model_validate(make_raw())


def test_a_pilot_measures_each_method(spec: ExperimentSpec) -> None:
    pilot = run_pilot(spec)
    assert set(pilot.usages) == set(count_trials(spec))
    for usage in pilot.usages.values():
        assert usage.seconds > 0
        assert 10**7 < usage.memory < 10**11
    assert pilot.gpu_memory == 0


def test_time_and_memory_are_multiples_of_those_of_the_pilot(
    spec: ExperimentSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pilot_module, "available_cores", lambda: 2)
    keys = count_trials(spec)
    num_trials, methods = keys.total(), {key[0] for key in keys}
    first = Usage(seconds=4.0, memory=0)  # 2 s more than later trials
    pilot = Pilot(dict.fromkeys(keys, USAGE), dict.fromkeys(methods, first), ())
    assert pilot.start == 2 * len(methods)
    one, two, eight = (pilot.forecast(spec, workers) for workers in (1, 2, 8))
    assert one.seconds == pytest.approx(pilot.start + 2 * num_trials)
    assert two.seconds == pytest.approx(pilot.start + 2 * num_trials / 2)
    assert eight.seconds == pytest.approx(4 * pilot.start + 2 * num_trials / 2)  # on two cores
    assert (one.memory, two.memory) == (4 * 10**8, 8 * 10**8)


def test_a_method_that_fails_has_no_usage(make_raw: Any) -> None:
    pilot = run_pilot(ExperimentSpec.model_validate(make_raw(methods=["toy.faulty", "toy.constant"])))
    assert {key[0] for key in pilot.usages} == {"toy.constant"}
    assert all(isinstance(failure, TrialFailure) for failure in pilot.failures)
    assert pilot.failures
