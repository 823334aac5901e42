from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import pytest

from peekbench import THREADS_VARIABLE, WorkItem
from peekbench.records import Draw, Trial, TrialFailure
from peekbench_local import Local
from peekbench_local.processes import execute

toy_work = import_module("toy_work")  # from tests/installed, where worker processes find it too
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
