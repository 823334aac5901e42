"""Tests of the contract checks for executors: correct executors pass, and each error fails its check alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from peekbench import PeekbenchError
from peekbench.plugins import ExecutorEntry, Options, Work
from peekbench.records import TrialFailure, TrialResult, WorkItem
from peekbench.testing import EXECUTOR_CHECKS, check_executor
from peekbench.testing.executors import (
    ExecutorCase,
    check_base_arms,
    check_dying_worker,
    check_empty_batches,
    check_entry,
)
from peekbench.testing.executors import check_time_limit as check_limit
from peekbench.testing.sample_work import make_items

Batches = Generator[Sequence[Any], None, None]


def serial(items: Iterable[WorkItem], work: Work, *, options: Options) -> Batches:
    for item in items:
        yield list(work(item))


def drop(items: Iterable[WorkItem], work: Work, *, options: Options) -> Batches:
    for number, item in enumerate(items):
        outcomes = list(work(item))
        yield outcomes[number == 3 :]


def duplicate(items: Iterable[WorkItem], work: Work, *, options: Options) -> Batches:
    for item in items:
        outcomes = list(work(item))
        yield [*outcomes, outcomes[-1]]


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
            arms = [replace(arm, predictions=np.nextafter(arm.predictions, np.float32(1))) for arm in outcome.arms]
            yield [replace(outcome, arms=tuple(arms))]


def other_machine(items: Iterable[WorkItem], work: Work, *, options: Options) -> Batches:
    for item in items:
        yield [replace(outcome, host="node-7") for outcome in work(item)]


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
    monkeypatch.setattr("peekbench.testing.sample_work.SLOW", 0)  # in this process
    monkeypatch.setattr("peekbench.testing.executors.END_TIMEOUT", 0.5)


def failed(execute: Callable[..., Any]) -> list[str]:
    entry = ExecutorEntry(name="own", execute=execute, summary="an executor")
    return [outcome.name for outcome in check_entry(entry, Options()) if not outcome.passed]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("execute", "expected"),
    [
        (serial, []),
        (drop, ["every trial has an outcome"]),
        (duplicate, ["no trial has two outcomes"]),
        (reorder, ["the trials of an item are in order"]),
        (change, ["same numbers as with the default executor"]),
        (other_machine, ["machines are prepared"]),
        (swallow, ["an error of the work ends the run"]),
        (leave, ["closing ends all processes"]),
    ],
)
def test_each_error_fails_its_check(execute: Callable[..., Any], expected: list[str]) -> None:
    assert failed(execute) == expected


def make_case(*, failing: Sequence[str], waits: Sequence[float], num_empty: int = 0) -> ExecutorCase:
    """Return a case whose run in worker processes has these failures, each outcome after a wait."""
    case = ExecutorCase(ExecutorEntry(name="own", execute=serial, summary="an executor"), Options(), ".")
    items = make_items(["quick", "dies once", "dies", "hangs"])
    run = case.run(make_items(["quick"] * 4))
    run.items = items
    run.num_empty = num_empty
    results = [replace(outcome, trial=item.trials[0]) for outcome, item in zip(run.outcomes, items, strict=True)]
    run.outcomes = [
        TrialFailure(outcome.trial, "it died", "") if outcome.trial.method in failing else outcome
        for outcome in results
    ]
    run.times = list(np.cumsum(waits))
    vars(case).update(plain=run, faulty=run)
    return case


@pytest.mark.parametrize(
    ("check", "failing", "waits", "message"),
    [
        (check_dying_worker, ("dies", "hangs"), (0, 0, 0, 1), None),
        (check_dying_worker, ("hangs",), (0, 0, 0, 1), "always kills its worker"),
        (check_dying_worker, ("dies once", "dies", "hangs"), (0, 0, 0, 1), None),
        (check_dying_worker, ("quick", "dies", "hangs"), (0, 0, 0, 1), "another trial was killed"),
        (check_limit, ("dies", "hangs"), (0, 0, 0, 1), None),
        (check_limit, ("dies",), (0, 0, 0, 1), "got no `TrialFailure`"),
        (check_limit, ("dies", "hangs"), (0, 0, 0, 9), "ended 9.0 s after"),
    ],
)
def test_errors_of_worker_processes_fail_their_check(
    check: Callable[[ExecutorCase], None], failing: Sequence[str], waits: Sequence[float], message: str | None
) -> None:
    case = make_case(failing=failing, waits=waits)
    if message is None:
        check(case)
    else:
        with pytest.raises(PeekbenchError, match=message):
            check(case)


@pytest.mark.parametrize(("execute", "num_bases"), [(serial, 1), (split, 3), (baseless, 0)])
def test_the_base_arm_of_an_item_must_come_once(execute: Callable[..., Any], num_bases: int) -> None:
    case = ExecutorCase(ExecutorEntry(name="own", execute=execute, summary="an executor"), Options(), ".")
    vars(case).update(faulty=case.run(make_items(["quick"], per_item=3)))
    if num_bases == 1:
        check_base_arms(case)
    else:
        with pytest.raises(PeekbenchError, match=f"came {num_bases} times instead of once"):
            check_base_arms(case)


def test_an_executor_that_never_tells_that_it_continues_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExecutorCase, "is_in_process", False)
    check_empty_batches(make_case(failing=(), waits=(0,) * 4, num_empty=1))
    with pytest.raises(PeekbenchError, match="no empty batch"):
        check_empty_batches(make_case(failing=(), waits=(0,) * 4))


@pytest.mark.slow
@pytest.mark.parametrize("retries", [0, 1])
def test_the_default_executor_passes(retries: int) -> None:
    outcomes = check_executor("local", {"workers": 2, "retries": retries})
    assert [outcome for outcome in outcomes if not outcome.passed or outcome.message] == []
    assert [outcome.name for outcome in outcomes] == list(EXECUTOR_CHECKS)
