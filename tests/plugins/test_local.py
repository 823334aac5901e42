"""Tests of the executor `local`: every item is done once, and only items that kill their worker are lost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from importlib import import_module
from typing import Any

import psutil
import pytest
from limits import TIMEOUT

from peekbench import PeekbenchError
from peekbench.plugins import THREADS_VARIABLE
from peekbench.records import WorkItem
from peekbench.records.trials import Draw, Trial, TrialFailure
from peekbench_local.executor import execute
from peekbench_local.options import Local

toy_work = import_module("toy_work")  # in tests/fixtures, where worker processes find it too
ITEMS = [WorkItem((Trial(Draw("a", 1, 1, number), "m"),), has_base=False) for number in range(20)]


def outcomes_of(items: list[WorkItem], work: Any, **options: Any) -> list[Any]:
    return [outcome for batch in execute(items, toy_work.Toy(work), options=Local(**options)) for outcome in batch]


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "in_process"), [(1, True), (3, False)])
def test_every_item_is_done_once(workers: int, in_process: bool) -> None:
    batches: Any = execute(ITEMS, toy_work.Toy(toy_work.record), options=Local(workers=workers, in_process=in_process))
    outcomes = [outcome for batch in batches for outcome in batch]
    assert sorted(number for number, *_ in outcomes) == list(range(20))
    processes = {process for _, process, *_ in outcomes}
    assert (os.getpid() in processes) == in_process
    assert len(processes) <= workers
    assert {threads for _, _, threads in outcomes} == {str(max(1, (os.cpu_count() or 1) // workers))}


@pytest.mark.slow
def test_items_behind_a_slow_one_are_returned_to_the_queue() -> None:
    many = [WorkItem((Trial(Draw("a", 1, 1, number), "m"),), has_base=False) for number in range(200)]
    batches: Any = execute(many, toy_work.Toy(toy_work.sleep_at_9), options=Local(workers=2))
    numbers = [[number for number, *_ in batch] for batch in batches]
    assert sorted(number for batch in numbers for number in batch) == list(range(200))
    (slow_batch,) = [batch for batch in numbers if 9 in batch]
    assert slow_batch[-1] == 9


@pytest.mark.slow
def test_slow_items_at_the_end_do_not_wait_for_each_other() -> None:
    many = [WorkItem((Trial(Draw("a", 1, 1, number), "m"),), has_base=False) for number in range(104)]
    outcomes = outcomes_of(many, toy_work.meet_at_end, workers=2)
    assert sorted(number for number, *_ in outcomes) == list(range(104))


def test_items_done_before_an_error_are_returned() -> None:
    done: list[Any] = []
    with pytest.raises(KeyError):
        for batch in execute(ITEMS, toy_work.Toy(toy_work.fail_at_9), options=Local()):
            done += batch
    assert [number for number, *_ in done] == list(range(9))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2])
def test_only_the_item_that_kills_its_worker_is_lost(workers: int) -> None:
    many = [WorkItem((Trial(Draw("a", 1, 1, number), "m"),), has_base=False) for number in range(200)]
    outcomes = outcomes_of(many, toy_work.die_at_9, workers=workers, retries=1)
    (failure,) = [outcome for outcome in outcomes if isinstance(outcome, TrialFailure)]
    assert failure.trial.draw.subsample == 9
    assert "2 times at this trial" in failure.error
    others = sorted(outcome[0] for outcome in outcomes if not isinstance(outcome, TrialFailure))
    assert others == [number for number in range(200) if number != 9]


def test_the_environment_is_restored() -> None:
    before = dict(os.environ)
    batches = execute(ITEMS, toy_work.Toy(toy_work.record), options=Local(in_process=True))
    next(batches)
    assert os.environ[THREADS_VARIABLE] == str(os.cpu_count())
    batches.close()
    assert dict(os.environ) == before


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2])
def test_errors_outside_of_methods_end_the_run(workers: int) -> None:
    with pytest.raises(KeyError, match="not an error of a method"):
        list(execute(ITEMS, toy_work.Toy(toy_work.fail), options=Local(workers=workers)))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2])
def test_item_whose_worker_always_exits_is_retried_and_then_fails(workers: int) -> None:
    (failure,) = outcomes_of(ITEMS[:1], toy_work.die, workers=workers, retries=1)
    assert isinstance(failure, TrialFailure)
    assert "worker process died (exit status 7) 2 times" in failure.error


@pytest.mark.slow
def test_an_item_that_exceeds_the_time_limit_ends_with_what_it_started(capfd: pytest.CaptureFixture[str]) -> None:
    started = time.monotonic()
    batches = execute(ITEMS, toy_work.Toy(toy_work.sleep_long_at_9, timeout=5), options=Local(workers=2))
    outcomes: list[Any] = [outcome for batch in batches for outcome in batch]
    assert time.monotonic() - started < TIMEOUT, "the item sleeps as long"
    (failure,) = [outcome for outcome in outcomes if isinstance(outcome, TrialFailure)]
    assert failure.trial == ITEMS[9].trials[0]
    assert "longer than the time limit of 5 s" in failure.error
    assert len(outcomes) == 20
    for child in map(int, capfd.readouterr().err.split()):
        assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


@pytest.mark.slow
def test_the_other_trials_of_an_item_go_on_after_a_crash() -> None:
    draw = Draw("a", 1, 1, 0)
    item = WorkItem(tuple(Trial(draw, method) for method in ("first", "second", "third")), has_base=False)
    first, failure, third = outcomes_of([item], toy_work.die_at_second, retries=1)
    assert [outcome.trial.method for outcome in (first, failure, third)] == ["first", "second", "third"]
    assert "(exit status 7) 2 times at this trial" in failure.error
    assert (first.arms, third.arms) == (("base",), ())


@pytest.mark.slow
@pytest.mark.parametrize("work", [toy_work.close_descriptors_at_9, toy_work.write_to_pipes_at_9])
def test_item_that_breaks_the_pipe_fails_and_others_are_done(work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("peekbench_workers.process.SHUTDOWN_TIMEOUT", 0.2)
    outcomes = outcomes_of(ITEMS, work, retries=0)
    (failure,) = [outcome for outcome in outcomes if isinstance(outcome, TrialFailure)]
    assert failure.trial.draw.subsample == 9
    assert "worker process died" in failure.error
    assert "out of memory" not in failure.error
    assert len(outcomes) == 20


def test_exit_outside_of_methods_ends_the_run_with_an_error() -> None:
    with pytest.raises(RuntimeError, match="SystemExit"):
        outcomes_of(ITEMS, toy_work.exit_at_9)


def test_work_that_cannot_be_unpickled_ends_the_run() -> None:
    with pytest.raises(ModuleNotFoundError, match="missing_module"):
        list(execute(ITEMS, toy_work.MissingModule(), options=Local(workers=2)))


UNGUARDED = """
from importlib import import_module
from peekbench.records import WorkItem
from peekbench.records.trials import Draw, Trial
from peekbench_local.executor import execute
from peekbench_local.options import Local

print("main module")
toy_work = import_module("toy_work")
work = toy_work.Toy(toy_work.record)
items = [WorkItem((Trial(Draw("a", 1, 1, number), "m"),), has_base=False) for number in range(20)]
print(sorted(outcome[0] for batch in execute(items, work, options=Local(workers=2)) for outcome in batch))
"""


def test_no_trial_fails_if_workers_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/missing/python")
    with pytest.raises(PeekbenchError, match="cannot start a worker process.*use fewer workers"):
        outcomes_of(ITEMS, toy_work.record)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(PeekbenchError, match="cannot start.*exit status 1"):
        list(execute(ITEMS, toy_work.Toy(toy_work.record), options=Local(workers=2)))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs a signal of Linux")
def test_a_busy_worker_ends_with_the_main_process() -> None:
    script = UNGUARDED.replace("toy_work.record", "toy_work.sleep_long").replace("workers=2", "workers=1")
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True) as main:
        assert main.stderr is not None
        worker = psutil.Process(int(main.stderr.readline()))
        main.kill()
        psutil.wait_procs([worker], timeout=TIMEOUT)
    assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE
