"""What an executor yields is checked: every planned trial once, and only from prepared machines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from limits import TIMEOUT

from peekbench.errors import ContractError
from peekbench.execution.runner import run
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.reader import Store

MakeSpec = Callable[..., ExperimentSpec]


def careless(make_spec: MakeSpec, error: str) -> ExperimentSpec:
    return make_spec(executor={"use": "toy.careless", "options": {"error": error}}, tasks=["toy.words"])


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("idle", "toy.careless yielded no outcome of 6 trials, such as task toy.words, method"),
        ("drop", "toy.careless yielded no outcome of 1 trial, such as task toy.words, method"),
        ("foreign", "toy.careless yielded the outcome of a trial that it was not given: .* subsample 99"),
        ("unprepared", "toy.careless yielded an outcome from elsewhere without its `Host`"),
        ("object", "toy.careless yielded 'an outcome' in a batch"),
        ("baseless", r"arms \['extra', 'test'\] instead of \['base', 'extra', 'test'\]"),
    ],
)
def test_wrong_events_of_an_executor_end_the_run(make_spec: MakeSpec, error: str, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        run(careless(make_spec, error))


def test_a_base_arm_that_comes_twice_ends_the_run(make_spec: MakeSpec) -> None:
    executor = {"use": "toy.careless", "options": {"error": "two bases"}}
    bold = {"use": "toy.vote", "name": "bold", "options": {"boldness": 3}}
    spec = make_spec(methods=["toy.vote", bold], tasks=["toy.words"], executor=executor)
    with pytest.raises(ContractError, match=r"toy.careless yielded .* instead of \['extra', 'test'\]: .*`has_base`"):
        run(spec)


def test_repeated_outcomes_are_ignored(make_spec: MakeSpec) -> None:
    summary = run(careless(make_spec, "twice"))
    assert (summary.finished, summary.failed) == (6, 0)
    with Store.open(summary.store) as store:
        (host,) = store.hosts()
        assert len(store.done()) == host["trials"] == 6
        assert host["machine"]["cores"]
        assert host["packages"] == {}


def test_a_timeout_needs_a_worker_process(make_spec: MakeSpec) -> None:
    with pytest.raises(Exception, match="`timeout` requires a worker process"):
        run(make_spec(timeout=5))


@pytest.mark.slow
def test_trials_that_exceed_the_time_limit_fail(make_spec: MakeSpec) -> None:
    methods: list[Any] = ["toy.constant", {"use": "toy.faulty", "options": {"error": "none", "seconds": TIMEOUT}}]
    design = {"num_train": 12, "num_test": 30, "num_subsamples": 1}
    summary = run(make_spec(methods=methods, design=design, timeout=5, tasks=["toy.words"], executor="local"))
    assert (summary.finished, summary.failed) == (1, 1)
    with Store.open(summary.store) as store:
        (failure,) = store.failures()
        assert "longer than the time limit of 5 s" in failure.error
        assert failure.trial.method == "toy.faulty"
