"""Methods whose first trials fail in the same way are stopped, for any executor and any number of workers."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from peekbench.execution.driver import FIRST_TRIALS, WorkQueue
from peekbench.execution.runner import run
from peekbench.plugins.work_protocols import Outcome
from peekbench.records.runs import PlannedLook
from peekbench.records.trials import Draw, Trial, TrialFailure, TrialResult, WorkItem
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.reader import Store

NUM_DRAWS = 25
ERRORS: dict[str, Callable[[int], str]] = {
    "works": lambda n: "",
    "broken": lambda n: f"ValueError: {n} rows at 0x{n:x}",
    "late": lambda n: "ValueError: no" if n < FIRST_TRIALS else "",  # would succeed later
    "mixed": lambda n: f"{'ValueError' if n % 2 else 'KeyError'}: no",
    "one": lambda n: "" if n == FIRST_TRIALS - 1 else "ValueError: no",
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
    while queue:
        in_progress: list[WorkItem] = []
        while True:
            while len(in_progress) < num_workers and (item := next(queue, None)) is not None:
                in_progress.append(item)
            if not in_progress:
                break
            for outcome in work(in_progress.pop(rng.randrange(len(in_progress)))):
                tried.add(outcome.trial)
                queue.record(outcome)
    return tried


def test_the_same_trials_are_tried_for_any_number_of_workers() -> None:
    expected = {
        trial
        for item in make_items()
        for trial in item.trials
        if trial.method not in ("broken", "late") or trial.draw.subsample < FIRST_TRIALS
    }
    for seed, num_workers in enumerate((1, 2, 3, 16, 1000)):
        queue = WorkQueue(make_items())
        assert execute(queue, num_workers, seed) == expected
        assert queue.stopped == dict.fromkeys(("broken", "late"), NUM_DRAWS - FIRST_TRIALS)


def test_all_trials_are_tried_on_request_and_if_there_are_few() -> None:
    for queue, num_draws in (
        (WorkQueue(make_items(), keep_going=True), NUM_DRAWS),
        (WorkQueue(make_items(FIRST_TRIALS)), FIRST_TRIALS),
    ):
        assert len(execute(queue, 3, 0)) == num_draws * len(ERRORS)
        assert queue.stopped == {}


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
    assert (summary.finished, summary.failed, summary.stopped) == (24, 10, {"toy.faulty": 14})


@pytest.mark.slow
def test_worker_processes_try_the_same_trials(make_spec: Callable[..., ExperimentSpec]) -> None:
    spec = make_spec(
        methods=["toy.constant", {"use": "toy.faulty", "options": {"message": "row 5 is bad"}}],
        design={"num_train": 12, "num_test": 30, "num_subsamples": 8},
        executor={"use": "local", "options": {"workers": 3}},
    )
    summary = run(spec, store="small.sqlite")
    assert (summary.finished, summary.failed, summary.stopped) == (16, 10, {"toy.faulty": 6})
    with Store.open("small.sqlite") as store:
        failed = [failure.trial for failure in store.failures()]
    assert {trial.draw.subsample for trial in failed} == set(range(5)), "the first ten of two tasks"
