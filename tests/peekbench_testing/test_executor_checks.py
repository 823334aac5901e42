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
from peekbench_testing.executors import EXECUTOR_CHECKS, ExecutorCase, make_items
from peekbench_testing.runner import CheckRun

DYING, LIMIT = "a worker that dies costs only its trial", "time limit"
BASES = "the base arm of an item comes once"
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
        (drop, ["every trial has an outcome"]),
        (reorder, ["the trials of an item are in order"]),
        (change, ["same numbers as in this process"]),
        (swallow, ["an error of the work ends the run"]),
        (leave, ["closing ends all processes"]),
    ],
)
def test_each_error_fails_its_check(execute: Callable[..., Any], expected: list[str], tmp_path: Path) -> None:
    outcomes = list(CheckRun(EXECUTOR_CHECKS, make_case(execute, tmp_path)))
    assert [outcome.name for outcome in outcomes if not outcome.passed] == expected
    assert sum("the calling process" in outcome.message for outcome in outcomes) == 3, "they need worker processes"


def make_run(case: ExecutorCase, failing: Sequence[str], waits: Sequence[float]) -> None:
    """Let a case have a run in worker processes with these failures, each outcome after a wait."""
    run = case.run(make_items(["quick"] * 4))
    run.items = make_items(["quick", "dies once", "dies", "hangs"])
    results = [replace(outcome, trial=item.trials[0]) for outcome, item in zip(run.outcomes, run.items, strict=True)]
    run.outcomes = [
        TrialFailure(outcome.trial, "it died", "") if outcome.trial.method in failing else outcome
        for outcome in results
    ]
    run.times = list(np.cumsum(waits))
    case.memo.share("faulty", lambda: run)


@pytest.mark.parametrize(
    ("check", "failing", "waits", "message"),
    [
        (DYING, ("dies", "hangs"), (0, 0, 0, 1), ""),
        (DYING, ("hangs",), (0, 0, 0, 1), "always kills its worker"),
        (DYING, ("dies once", "dies", "hangs"), (0, 0, 0, 1), ""),
        (DYING, ("quick", "dies", "hangs"), (0, 0, 0, 1), "another trial was killed"),
        (LIMIT, ("dies", "hangs"), (0, 0, 0, 1), ""),
        (LIMIT, ("dies",), (0, 0, 0, 1), "got no `TrialFailure`"),
        (LIMIT, ("dies", "hangs"), (0, 0, 0, 9), "ended 9.0 s after"),
    ],
)
def test_errors_of_worker_processes_fail_their_check(
    check: str, failing: Sequence[str], waits: Sequence[float], message: str, tmp_path: Path, in_workers: None
) -> None:
    case = make_case(serial, tmp_path)
    make_run(case, failing, waits)
    (outcome,) = CheckRun({check: EXECUTOR_CHECKS[check]}, case)
    assert outcome.passed is not bool(message)
    assert message in outcome.message


@pytest.mark.parametrize(("execute", "num_bases"), [(serial, 1), (split, 3), (baseless, 0)])
def test_the_base_arm_of_an_item_must_come_once(
    execute: Callable[..., Any], num_bases: int, tmp_path: Path, in_workers: None
) -> None:
    case = make_case(execute, tmp_path)
    case.memo.share("faulty", lambda: case.run(make_items(["quick"], per_item=3)))
    (outcome,) = CheckRun({BASES: EXECUTOR_CHECKS[BASES]}, case)
    assert outcome.passed is (num_bases == 1)
    assert outcome.passed or f"came {num_bases} times instead of once" in outcome.message


@pytest.mark.slow
def test_the_default_executor_passes() -> None:
    outcomes = check_entry("local", {"workers": 2, "retries": 1})
    assert [outcome for outcome in outcomes if not outcome.passed or outcome.message] == []
    assert [outcome.name for outcome in outcomes] == list(EXECUTOR_CHECKS)
