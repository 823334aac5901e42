"""The executor `local`: every item is done once, and only items that kill their worker are lost."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from peekbench import PeekbenchError
from peekbench.plugins import THREADS_VARIABLE
from peekbench.records import WorkItem
from peekbench.records.trials import Draw, Trial, TrialFailure
from peekbench_local.executor import execute
from peekbench_local.options import Local
from peekbench_local.worker import Worker

toy_work = import_module("toy_work")  # in tests/fixtures, where worker processes find it too
ITEMS = [WorkItem((Trial(Draw("a", 1, 1, number), "m"),), has_base=False) for number in range(20)]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_every_item_is_done_once(workers: int) -> None:
    batches: Any = execute(ITEMS, toy_work.look, options=Local(workers=workers))
    found = [outcome for batch in batches for outcome in batch]
    assert sorted(number for number, *_ in found) == list(range(20))
    processes = {process for _, process, *_ in found}
    assert (processes == {os.getpid()}) == (workers == 1)
    assert len(processes) <= workers
    assert {threads for _, _, threads in found} == {str(max(1, (os.cpu_count() or 1) // workers))}


@pytest.mark.parametrize("workers", [1, 2])
def test_quick_items_come_several_at_a_time(workers: int) -> None:
    many = [WorkItem((Trial(Draw("a", 1, 1, number), "m"),), has_base=False) for number in range(2000)]
    batches: Any = list(execute(many, toy_work.look, options=Local(workers=workers)))
    assert sorted(number for batch in batches for number, *_ in batch) == list(range(2000))
    assert len(batches) < 200


def test_items_behind_a_slow_one_are_given_back() -> None:
    many = [WorkItem((Trial(Draw("a", 1, 1, number), "m"),), has_base=False) for number in range(200)]
    batches: Any = execute(many, toy_work.dawdle, options=Local(workers=2))
    numbers = [[number for number, *_ in batch] for batch in batches]
    assert sorted(number for batch in numbers for number in batch) == list(range(200))
    (with_the_slow_one,) = [batch for batch in numbers if 9 in batch]
    assert with_the_slow_one[-1] == 9


def test_slow_items_at_the_end_do_not_wait_for_each_other() -> None:
    many = [WorkItem((Trial(Draw("a", 1, 1, number), "m"),), has_base=False) for number in range(104)]
    batches: Any = execute(many, toy_work.slow_end, options=Local(workers=2))
    found = sorted(outcome for batch in batches for outcome in batch)
    slow = sorted((begun, ended) for number, begun, ended in found if number >= 100)
    assert sum(later[0] < earlier[1] for earlier, later in pairwise(slow)) >= 2


def test_what_is_done_before_a_fault_is_handed_over() -> None:
    worker = Worker(pickle.dumps(toy_work.fail_at_9), threads=1)
    done: list[Any] = []
    error = None
    try:
        assert worker.receive() is None
        worker.items = ITEMS
        while error is None:  # once, unless the machine is busy
            worker.send(worker.items)
            message = worker.receive()
            assert message is not None
            outcomes, error = message
            done += outcomes
    finally:
        left = worker.items
        worker.kill()
    assert [number for number, *_ in done] == list(range(9))
    assert left[0] is ITEMS[9]
    assert isinstance(error, KeyError)


def test_of_items_given_together_only_the_one_that_kills_is_lost() -> None:
    many = [WorkItem((Trial(Draw("a", 1, 1, number), "m"),), has_base=False) for number in range(200)]
    batches: Any = execute(many, toy_work.die_at_9, options=Local(workers=2, retries=1))
    found = [outcome for batch in batches for outcome in batch]
    (failure,) = [outcome for outcome in found if isinstance(outcome, TrialFailure)]
    assert failure.trial.draw.subsample == 9
    assert "2 times at this trial" in failure.error
    others = sorted(outcome[0] for outcome in found if not isinstance(outcome, TrialFailure))
    assert others == [number for number in range(200) if number != 9]


def test_what_is_done_before_an_interruption_is_handed_over() -> None:
    found: list[int] = []
    batches: Any = execute(ITEMS, toy_work.interrupt_at_9, options=Local())
    with pytest.raises(KeyboardInterrupt):
        for batch in batches:
            found += [number for number, *_ in batch]
    assert found == list(range(9))


def test_the_environment_is_put_back() -> None:
    before = dict(os.environ)
    batches = execute(ITEMS, toy_work.look, options=Local())
    next(batches)
    assert os.environ[THREADS_VARIABLE] == str(os.cpu_count())
    batches.close()
    assert dict(os.environ) == before


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_no_methods_fault_ends_the_run(workers: int) -> None:
    with pytest.raises(KeyError, match="not a method's fault"):
        list(execute(ITEMS, toy_work.fail, options=Local(workers=workers)))


def test_a_worker_that_always_exits_is_tried_again_and_then_given_up() -> None:
    (batch,) = execute(ITEMS[:1], toy_work.die, options=Local(workers=2, retries=1))
    (failure,) = batch
    assert isinstance(failure, TrialFailure)
    assert "worker process died (exit status 7) 2 times" in failure.error


def test_work_that_a_worker_cannot_unpickle_ends_the_run() -> None:
    with pytest.raises(ModuleNotFoundError, match="No module named 'gone'"):
        list(execute(ITEMS, toy_work.Elsewhere(), options=Local(workers=2)))


UNGUARDED = """
from importlib import import_module
from peekbench.records import WorkItem
from peekbench.records.trials import Draw, Trial
from peekbench_local.executor import execute
from peekbench_local.options import Local

print("main module")
work = import_module("toy_work").look
items = [WorkItem((Trial(Draw("a", 1, 1, number), "m"),), has_base=False) for number in range(20)]
print(sorted(found[0] for batch in execute(items, work, options=Local(workers=2)) for found in batch))
"""


@pytest.mark.parametrize("source", ["script", "standard input"])
def test_the_main_module_needs_no_guard(source: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    arguments = [str(script)] if source == "script" else ["-"]
    done = subprocess.run([sys.executable, *arguments], input=UNGUARDED, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["main module", str(list(range(20)))]


def test_a_worker_that_cannot_start_is_not_blamed_on_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(PeekbenchError, match="cannot start.*exit status 1"):
        list(execute(ITEMS, toy_work.look, options=Local(workers=2)))
