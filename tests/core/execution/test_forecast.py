"""Tests of forecasts: pilots measure what trials use, and forecasts scale it to named hardware."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from peekbench.cli.plan import describe_forecast
from peekbench.errors import SpecError
from peekbench.execution.forecast import REPORT_SECONDS, STORE_SECONDS, MainProcess, default_workers, forecast_run
from peekbench.execution.hardware import GPUS, SHARES, available_cores, find_hardware
from peekbench.execution.pilot import Pilot, count_trials, run_pilot
from peekbench.execution.usage import Stopwatch
from peekbench.records.trials import TrialFailure
from peekbench.records.usage import Usage
from peekbench.spec.experiment import ExperimentSpec

MAIN = MainProcess(seconds=3.0, memory=10**8)
USAGE = Usage(seconds=5.0, waited=3.0, processor=1.5, process_total=5.0, memory=4 * 10**8)


@pytest.fixture
def spec(make_raw: Any) -> ExperimentSpec:
    return ExperimentSpec.model_validate(make_raw())


def make_pilot(spec: ExperimentSpec, usage: Usage = USAGE) -> Pilot:
    keys = count_trials(spec)
    return Pilot(dict.fromkeys(keys, (usage,)), {key[0]: usage for key in keys}, ())


def test_a_pilot_measures_each_method(spec: ExperimentSpec) -> None:
    pilot = run_pilot(spec)
    assert set(pilot.usages) == set(count_trials(spec))
    for usages in pilot.usages.values():
        for usage in usages:
            assert 0 < usage.processor < usage.process_total
            assert 0 <= usage.idle_seconds <= usage.seconds
            assert 10**7 < usage.memory < 10**11
    assert pilot.start < 5, "the processor time of this process before the pilot does not count"
    assert pilot.gpu_memory == 0


def test_processor_time_does_not_count_waiting() -> None:
    stopwatch = Stopwatch()
    stopwatch.start()
    time.sleep(0.1)
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    usage = stopwatch.stop()
    assert 0.05 <= usage.processor < 0.1 < usage.seconds
    assert usage.idle_seconds >= 0.1  # sleep is no wait for a core


def test_time_and_memory_on_cores(spec: ExperimentSpec) -> None:
    num_trials = count_trials(spec).total()
    overhead = MAIN.seconds + REPORT_SECONDS + STORE_SECONDS * num_trials
    pilot = make_pilot(spec)
    here = replace(find_hardware("this-machine"), cores=2)
    one, two, eight = (forecast_run(spec, pilot, here, workers, MAIN) for workers in (1, 2, 8))
    assert one.seconds[1] == pytest.approx(overhead + pilot.start + 2 * num_trials)  # 5 s, of which 3 without a core
    assert two.seconds[1] == pytest.approx(overhead + pilot.start + 2 * num_trials / 2)
    assert eight.seconds[1] == pytest.approx(overhead + 4 * pilot.start + 2 * num_trials / 2)  # on two cores
    assert two.processor == pytest.approx(overhead + 2 * pilot.start + 1.5 * num_trials)
    assert two.memory == 10**8 + 2 * 4 * 10**8
    many = find_hardware(f"{8 * available_cores()}-cores")
    low, middle, high = forecast_run(spec, pilot, many, default_workers(spec, many, None), MAIN).seconds
    assert overhead < low < middle < high
    assert default_workers(spec, many, 3) == 3


def test_time_and_price_on_a_gpu_follow_from_the_operations(spec: ExperimentSpec) -> None:
    h200 = find_hardware("H200")
    counted = make_pilot(spec, replace(USAGE, operations=1e15))
    num_trials = count_trials(spec).total()
    forecast = forecast_run(spec, counted, h200, 1, MAIN)
    assert forecast.operations == pytest.approx(1e15 * num_trials)
    overhead = MAIN.seconds + REPORT_SECONDS + STORE_SECONDS * num_trials
    expected = [overhead + 1e15 * num_trials / (989e12 * share) for share in sorted(SHARES, reverse=True)]
    assert forecast.seconds == pytest.approx(expected)
    assert forecast.price(3600.0) == pytest.approx(expected)
    text = "\n".join(describe_forecast(forecast, counted, None))
    assert "published: 989 Tflop/s in bf16 without sparsity (data sheet of the NVIDIA H200 SXM, https://" in text
    assert "assumed, not measured: 20% of the peak (5% to 40%)" in text
    assert all(gpu.card in gpu.source and "https://" in gpu.source for gpu in GPUS)
    not_counted = forecast_run(spec, make_pilot(spec), h200, 1, MAIN)
    assert not_counted.uncounted == tuple(sorted({method.name for method in spec.methods}))
    assert not_counted.seconds[1] == pytest.approx(overhead + 2 * num_trials)


def test_a_method_that_fails_has_no_usage(make_raw: Any) -> None:
    pilot = run_pilot(ExperimentSpec.model_validate(make_raw(methods=["toy.faulty", "toy.constant"])))
    assert {key[0] for key in pilot.usages} == {"toy.constant"}
    assert all(isinstance(failure, TrialFailure) for failure in pilot.failures)
    assert pilot.failures


@pytest.mark.parametrize(
    ("name", "meant"), [("h20", "h200"), ("64-core-s", "64-cores"), ("nvidia-a100x", "a100"), ("0-cores", "64-cores")]
)
def test_unknown_hardware_is_refused_with_the_nearest_name(name: str, meant: str) -> None:
    with pytest.raises(SpecError, match=f"--on {name}: no such hardware; did you mean {meant}"):
        find_hardware(name)
