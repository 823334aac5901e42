"""Methods whose first trials fail are stopped."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from peekbench.execution.driver import FIRST_TRIALS, WorkQueue
from peekbench.execution.runner import run
from peekbench.plugins.work_protocols import Outcome
from peekbench.records.runs import PlannedLook
from peekbench.records.trials import Draw, Trial, TrialFailure, TrialResult, WorkItem
from peekbench.spec.experiment import ExperimentSpec

NUM_DRAWS = 25
ERRORS: dict[str, Callable[[int], str]] = {
    "works": lambda n: "",
    "broken": lambda n: f"ValueError: {n} rows at 0x{n:x}",
    "mixed": lambda n: f"{'ValueError' if n % 2 else 'KeyError'}: no",
    "one": lambda n: "" if n == 3 else "ValueError: no",
}
GROUPED = ("works", "broken")  # these share a base arm


def make_items(num_draws: int = NUM_DRAWS) -> list[WorkItem]:
    items = []
    for number in range(num_draws):
        draw = Draw("a", 5, 5, number)
        groups = (GROUPED, *((method,) for method in ERRORS if method not in GROUPED))
        items += [WorkItem(tuple(Trial(draw, method) for method in group), has_base=False) for group in groups]
    return items


def work(item: WorkItem) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for trial in item.trials:
        error = ERRORS[trial.method](trial.draw.subsample)
        failed = TrialFailure(trial, error, "")
        outcomes.append(failed if error else TrialResult(trial, np.zeros(5, dtype=np.int64), np.arange(5), ()))
    return outcomes


def execute(queue: WorkQueue, num_workers: int, seed: int) -> set[Trial]:
    """Keep some items in progress, and finish a random one of them at a time."""
    rng = random.Random(seed)
    tried: set[Trial] = set()
    in_progress: list[WorkItem] = []
    while True:
        while len(in_progress) < num_workers and (item := next(queue, None)) is not None:
            in_progress.append(item)
        if not in_progress:
            return tried
        for outcome in work(in_progress.pop(rng.randrange(len(in_progress)))):
            tried.add(outcome.trial)
            queue.record(outcome)


@pytest.mark.parametrize("num_workers", [1, 3, 16])
def test_a_method_whose_first_trials_fail_is_stopped(num_workers: int) -> None:
    queue = WorkQueue(make_items())
    tried = Counter(trial.method for trial in execute(queue, num_workers, seed=1))
    assert {method for method in ERRORS if tried[method] == NUM_DRAWS} >= {"works", "one"}
    for method in ("broken", "mixed"):
        assert FIRST_TRIALS <= tried[method] < FIRST_TRIALS + num_workers
        assert queue.stopped[method] == NUM_DRAWS - tried[method]


def test_all_trials_are_tried_on_request_and_if_there_are_few() -> None:
    for queue, num_draws in (
        (WorkQueue(make_items(), keep_going=True), NUM_DRAWS),
        (WorkQueue(make_items(FIRST_TRIALS)), FIRST_TRIALS),
    ):
        assert len(execute(queue, 3, 0)) == num_draws * len(ERRORS)
        assert not any(queue.stopped.values())


def test_a_method_that_is_stopped_before_a_look_stays_stopped(
    make_spec: Callable[..., ExperimentSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = make_spec(
        tasks=["toy.words"],
        methods=["toy.constant", "toy.faulty"],
        design={"num_train": 12, "num_test": 30, "num_subsamples": 24, "stop": {"looks": [12]}},
        report={"allow_incomplete": True},
    )

    look = PlannedLook(12, 24, 0.5, {}, stops=False)
    monkeypatch.setattr("peekbench.execution.runner.take_planned_look", lambda *_: look)
    summary = run(spec, store="small.sqlite")
    assert summary.finished == 24
    assert 10 <= summary.failed <= 12, "trials that workers have already taken still run"
    assert summary.stopped == {"toy.faulty": 24 - summary.failed}
