"""Tests of the contract checks for executors: correct executors pass, and each error fails its check alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from peekbench import PeekbenchError
from peekbench.plugins import ExecutorEntry, Options, Work
from peekbench.records import TrialFailure, TrialResult, WorkItem
from peekbench.records.answers import Predicted
from peekbench_testing import check_entry
from peekbench_testing.executors import EXECUTOR_CHECKS, ExecutorCase, ExecutorRun, make_items
from peekbench_testing.runner import CheckRun

FAULTY = "a worker that dies or hangs costs only its trial"
Batches = Generator[Sequence[Any], None, None]


def serial(items: Iterable[WorkItem], work: Work, *, options: Options) -> Batches:
    for item in items:
        yield list(work(item))


def drop(items: Iterable[WorkItem], work: Work, *, options: Options) -> Batches:
    for number, item in enumerate(items):
        outcomes = list(work(item))
        yield outcomes[number == 3 :]


def reorder(items: Iterable[WorkItem], work: Work, *, options: Options) -> Batches:
    for item in items:
        yield list(work(item))[::-1]


def split(items: Iterable[WorkItem], work: Work, *, options: Options) -> Batches:
    for item in items:
        for trial in item.trials:
            yield list(work(replace(item, trials=(trial,))))


def baseless(items: Iterable[WorkItem], work: Work, *, options: Options) -> Batches:
    for item in items:
        yield list(work(replace(item, has_base=True)))


def change(items: Iterable[WorkItem], work: Work, *, options: Options) -> Batches:
    for item in items:
        for outcome in work(item):
            assert isinstance(outcome, TrialResult)
            changed = [np.nextafter(arm.predicted.numbers, np.float32(1)) for arm in outcome.arms]
            arms = [replace(arm, predicted=Predicted(new)) for arm, new in zip(outcome.arms, changed, strict=True)]
            yield [replace(outcome, arms=tuple(arms))]


def swallow(items: Iterable[WorkItem], work: Work, *, options: Options) -> Batches:
    for item in items:
        try:
            yield list(work(item))
        except PeekbenchError:
            yield []


def leave(items: Iterable[WorkItem], work: Work, *, options: Options) -> Batches:
    os.posix_spawnp("sleep", ["sleep", "20"], os.environ)
    yield from serial(items, work, options=options)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("peekbench_testing.executors.END_TIMEOUT", 0.5)


@pytest.fixture
def in_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the executors of these tests seem to work in other processes."""
    monkeypatch.setattr(ExecutorCase, "is_in_process", False)


def make_case(execute: Callable[..., Any], folder: Path) -> ExecutorCase:
    return ExecutorCase(ExecutorEntry(name="own", execute=execute, summary=""), Options(), str(folder))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("execute", "expected"),
    [
        (serial, []),
        (drop, ["every trial has an outcome, in order"]),
        (reorder, ["every trial has an outcome, in order"]),
        (change, ["same numbers as in this process"]),
        (swallow, ["an error of the work ends the run"]),
        (leave, ["closing ends all processes"]),
    ],
)
def test_each_error_fails_its_check(execute: Callable[..., Any], expected: list[str], tmp_path: Path) -> None:
    outcomes = list(CheckRun(EXECUTOR_CHECKS, make_case(execute, tmp_path)))
    assert [outcome.name for outcome in outcomes if not outcome.passed] == expected
    assert sum("the calling process" in outcome.message for outcome in outcomes) == 1, "it needs worker processes"


@pytest.mark.parametrize(
    ("failing", "message"),
    [
        ({"dies once", "dies", "hangs"}, ""),
        ({"hangs"}, "always kills its worker"),
        ({"dies"}, "longer than `work.timeout` got no"),
        ({"quick", "dies", "hangs"}, "another trial was killed"),
    ],
)
def test_errors_of_worker_processes_fail_their_check(
    failing: set[str], message: str, tmp_path: Path, in_workers: None
) -> None:
    case = make_case(serial, tmp_path)
    items = make_items(["quick", "dies once", "dies", "hangs"])
    results = case.run(make_items(["quick"] * 4)).outcomes
    outcomes = [
        TrialFailure(item.trials[0], "it died", "")
        if item.trials[0].method in failing
        else replace(result, trial=item.trials[0])
        for result, item in zip(results, items, strict=True)
    ]
    case.memo.share("faulty", lambda: ExecutorRun(items, outcomes))
    (outcome,) = CheckRun({FAULTY: EXECUTOR_CHECKS[FAULTY]}, case)
    assert outcome.passed is not bool(message)
    assert message in outcome.message


@pytest.mark.parametrize(("execute", "num_bases"), [(serial, 1), (split, 3), (baseless, 0)])
def test_the_base_arm_of_an_item_must_come_once(
    execute: Callable[..., Any], num_bases: int, tmp_path: Path, in_workers: None
) -> None:
    case = make_case(execute, tmp_path)
    run = case.run(make_items(["quick"], per_item=3))
    failures = [TrialFailure(item.trials[0], "", "") for item in make_items(["dies", "hangs"])]
    case.memo.share("faulty", lambda: ExecutorRun(run.items, [*run.outcomes, *failures]))
    (outcome,) = CheckRun({FAULTY: EXECUTOR_CHECKS[FAULTY]}, case)
    assert outcome.passed is (num_bases == 1)
    assert outcome.passed or f"came {num_bases} times instead of once" in outcome.message


@pytest.mark.slow
def test_the_default_executor_passes() -> None:
    outcomes = check_entry("local", {"workers": 2, "retries": 1})
    assert [outcome for outcome in outcomes if not outcome.passed or outcome.message] == []
    assert [outcome.name for outcome in outcomes] == list(EXECUTOR_CHECKS)
