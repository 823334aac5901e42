"""Planning and running of trials: work items, arms, workers, and the checks of predictions."""

from __future__ import annotations

import os
import pickle
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from peekbench.data.loading import forget
from peekbench.data.preflight import check_tasks
from peekbench.errors import ContractError, DataError, StoreError
from peekbench.execution.determinism import POOL_VARIABLES
from peekbench.execution.fit_plans import count_work, group_trials
from peekbench.execution.pilot import run_pilot
from peekbench.execution.prediction_checks import check_predictions
from peekbench.execution.runner import run
from peekbench.execution.work import SpecWork
from peekbench.plugins.protocols import Options
from peekbench.records.data import SourceRef, Task
from peekbench.records.trials import Predictor, Trial, TrialFailure, TrialResult, WorkItem
from peekbench.results.analyze import analyze
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.differences import Identity
from peekbench.store.reader import Store

MakeSpec = Callable[..., ExperimentSpec]
TASK = Task("t", "classification", ("a", "b", "c"), "", SourceRef("toy.words"))
NUMBERS = Task("n", "regression", (), "", SourceRef("toy.numbers"))


def items(spec: ExperimentSpec, stored: Any = ()) -> list[WorkItem]:
    return list(group_trials(spec.trials(), spec.base_keys(), stored))


def results(spec: ExperimentSpec) -> dict[Trial, TrialResult]:
    worker = SpecWork(spec)
    outcomes = {}
    for item in items(spec):
        for outcome in worker(item):
            assert isinstance(outcome, TrialResult), outcome
            outcomes[outcome.trial] = outcome
    return outcomes


def test_trials_are_ordered_by_subsample(make_spec: MakeSpec) -> None:
    spec = make_spec(design={"num_train": [6, 12], "num_test": [10, 20], "num_subsamples": {10: 3, 20: 1}})
    trials = list(spec.trials())
    assert len(trials) == len(set(trials)) == 2 * 2 * 2 * (3 + 1)
    assert [trial.draw.subsample for trial in trials] == sorted(trial.draw.subsample for trial in trials)
    assert {trial.draw.num_test for trial in trials if trial.draw.subsample > 0} == {10}


def test_methods_that_share_a_base_arm_share_a_work_item(make_spec: MakeSpec) -> None:
    spec = make_spec(
        methods=["toy.vote", "toy.constant", {"use": "toy.vote", "name": "bold", "options": {"boldness": 3}}]
    )
    first, second, *_ = items(spec)
    assert [trial.method for trial in first.trials] == ["toy.vote", "bold"]
    assert [trial.method for trial in second.trials] == ["toy.constant"]
    key = spec.methods[0].base_key()
    known = items(spec, {(first.trials[0].draw, key)})
    assert (known[0].has_base, known[1].has_base, known[2].has_base) == (True, False, False)


def test_a_task_may_be_restricted_to_some_test_sizes(make_spec: MakeSpec) -> None:
    """A small dataset does not limit the sizes of a large one."""
    spec = make_spec(
        tasks=[
            {"use": "toy.words", "name": "small", "options": {"num_rows": 60}, "num_test": 20},
            {"use": "toy.words", "name": "large"},
        ],
        methods=["toy.constant"],
        design={"num_train": 6, "num_test": [20, 150], "num_subsamples": {20: 3, 150: 2}},
    )
    summary = run(spec)
    assert (summary.planned, summary.finished) == (8, 8)
    drawn = {(trial.draw.task, trial.draw.num_test) for trial in spec.trials()}
    assert drawn == {("small", 20), ("large", 20), ("large", 150)}
    assert count_work(spec).trials == 8
    assert len(analyze(summary.store).analyses) == 2  # no trial is missing
    assert set(run_pilot(spec).seconds) == {("toy.constant", 6, 20), ("toy.constant", 6, 150)}
    with pytest.raises(DataError, match=r"task small: 60 rows, but num_train 6 \+ 2 x num_test 150"):
        check_tasks(make_spec(tasks=[{"use": "toy.words", "name": "small", "options": {"num_rows": 60}}],
                              design=spec.design.model_dump()))  # fmt: skip


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any, set[str]]]:
    """Unlabeled, train and predicted texts of each fit."""
    from peekbench.plugins import registry
    from peekbench.plugins.entries import Entry, MethodEntry

    real = registry.find("toy.constant", MethodEntry)
    find = registry.find
    fits: list[tuple[Any, Any, set[str]]] = []

    def spy(unlabeled: Any, train: Any, task: Any, *, options: Any, context: Any) -> Any:
        predictor = real.method(unlabeled, train, task, options=options, context=context)
        predicted: set[str] = set()
        fits.append((unlabeled, train.inputs, predicted))

        def predict(texts: Any) -> Any:
            predicted.update(texts)
            return predictor.predict(texts)

        return replace(predictor, predict=predict)

    def find_spy(use: str, entry_type: Any) -> Entry:
        entry: Entry = find(use, entry_type)
        return replace(entry, method=spy) if isinstance(entry, MethodEntry) else entry

    monkeypatch.setattr(registry, "find", find_spy)
    return fits


def test_methods_see_the_unlabeled_texts_of_each_arm(make_spec: MakeSpec, seen: Any) -> None:
    """The arm base has no unlabeled texts, extra has none of the test texts, test has all; train rows never differ."""
    design = {"num_train": 12, "num_test": 30, "num_subsamples": 3, "crossover": False}
    spec = make_spec(methods=["toy.constant"], arms=["base", "extra", "test", {"mix": 0.5}], design=design)
    list(SpecWork(spec)(items(spec)[0]))
    base, extra, again, test, mix = (unlabeled for unlabeled, *_ in seen)
    assert again == extra, "the first fit with unlabeled texts is repeated"
    assert base is None
    assert len(extra) == len(test) == len(mix) == 30
    assert not set(extra) & set(test)
    assert len(set(mix) & set(test)) == len(set(mix) & set(extra)) == 15
    assert len({train for _, train, _ in seen}) == 1
    assert not set(seen[0][1]) & (set(extra) | set(test))


@pytest.mark.parametrize("crossover", [False, 3])
def test_all_fits_but_base_share_further_unlabeled_texts(crossover: Any, make_spec: MakeSpec, seen: Any) -> None:
    """In all arms, the same texts follow those that a fit has without them; they are never trained on or predicted."""
    arms = ["base", "extra", "test", {"mix": 0.5}, {"cross": 3}, {"stream": 3}, "single", {"swap-in": 3}]
    for further in ({}, {"num_unlabeled": 50}):
        design = {"num_train": 12, "num_test": 30, "num_subsamples": 1, "crossover": crossover, **further}
        spec = make_spec(methods=["toy.constant"], arms=arms, design=design)
        list(SpecWork(spec)(items(spec)[0]))
    without, including = seen[: len(seen) // 2], seen[len(seen) // 2 :]
    assert (including[0][0], including[0][1:]) == (None, without[0][1:])
    shared = including[1][0][30:]
    assert len(shared) == 20
    for (unlabeled, *rest), (more, *others) in zip(without[1:], including[1:], strict=True):
        assert (more, others) == (unlabeled + shared, rest)
        assert not set(shared) & set().union(unlabeled, *rest)


def test_a_shared_base_arm_is_fitted_once_and_returned_with_the_first_successful_trial(make_spec: MakeSpec) -> None:
    spec = make_spec(methods=["toy.vote", {"use": "toy.vote", "name": "bold", "options": {"boldness": 3}}])
    first, second = SpecWork(spec)(items(spec)[0])
    assert isinstance(first, TrialResult)
    assert isinstance(second, TrialResult)
    assert [arm.arm for arm in first.arms] == ["base", "extra", "test"]
    assert [arm.arm for arm in second.arms] == ["extra", "test"]
    known = WorkItem(items(spec)[0].trials, has_base=True)
    assert all(
        isinstance(o, TrialResult) and [a.arm for a in o.arms] == ["extra", "test"] for o in SpecWork(spec)(known)
    )


def test_after_a_failure_the_base_arm_is_returned_with_the_next_trial(
    make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = {"use": "controls.leak", "name": "broken", "options": {"share": 0.5}}
    spec = make_spec(methods=[broken, "controls.null"])
    worker = SpecWork(spec)
    item = items(spec)[0]
    assert len(item.trials) == 2
    run_fit = worker._run_fit

    def failing(method: Any, context: Any, loaded: Any, subsample: Any, rows: Any, sets: Any) -> Any:
        if method.name == "broken" and rows is not None and np.array_equal(rows, subsample.test):
            raise RuntimeError("late")
        return run_fit(method, context, loaded, subsample, rows, sets)

    monkeypatch.setattr(worker, "_run_fit", failing)
    first, second = worker(item)
    assert isinstance(first, TrialFailure)
    assert isinstance(second, TrialResult)
    assert [arm.arm for arm in second.arms] == ["base", "extra", "test"]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("raise", "RuntimeError: this method is broken"),
        ("exit", "SystemExit: 0"),
        ("surrogate", r"ValueError: bad text \ud83d"),
        ("nan", "ContractError: predictions contain NaN or infinity in 30 of 30 rows, the first is row 0"),
        ("shape", r"ContractError: predictions have shape (30, 2), expected (30, 3): one probability for each class"),
        ("sum", "ContractError: predictions in row 0 sum to 2, not to 1"),
        ("type", "ContractError: toy.faulty returned str; a method of a plugin returns peekbench.Predictor(predict)"),
    ],
)
def test_an_error_fails_its_trial_with_traceback_and_place(error: str, message: str, make_spec: MakeSpec) -> None:
    spec = make_spec(methods=[{"use": "toy.faulty", "options": {"error": error}}])
    (failure,) = SpecWork(spec)(items(spec)[0])
    assert isinstance(failure, TrialFailure)
    assert failure.error.startswith(message)
    assert "Traceback (most recent call last)" in failure.traceback
    assert "in the trial of task a, method toy.faulty, num_train 12, num_test 30, subsample 0" in failure.traceback
    assert "use: toy.faulty" in failure.traceback


def test_results_do_not_depend_on_the_order_of_work_or_the_global_random_state(make_spec: MakeSpec) -> None:
    spec = make_spec(methods=["toy.vote", "classic.lsa", "toy.reckless"])
    forwards = results(spec)
    worker = pickle.loads(pickle.dumps(SpecWork(spec)))
    for item in reversed(items(spec)):
        np.random.seed(len(item.trials))
        for outcome in worker(item):
            for arm, other in zip(outcome.arms, forwards[outcome.trial].arms, strict=True):
                assert arm.scores == other.scores
                assert arm.predicted.numbers.tobytes() == other.predicted.numbers.tobytes()


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        ([["a", "b", "c"]], "return an array of floats"),
        ([[0.2, 0.8]], "have shape"),
        ([[0.5, 0.5, np.inf]], "NaN or infinity"),
        ([[-0.5, 0.5, 1.0]], "negative probability in row 0"),
        ([[0.5, 0.4, 0.0]], "sum to 0.9, not to 1"),
        ([[0.5, 0.5, 0.002]], "not to 1"),
    ],
)
def test_predictions_that_are_not_probabilities_are_refused(predictions: Any, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        check_predictions(np.array(predictions), 1, TASK)


def test_predictions_that_sum_to_one_within_rounding_are_accepted() -> None:
    check_predictions(np.array([[0.5, 0.5, 0.0005]], dtype=np.float16), 1, TASK)
    check_predictions(np.array([1.5, -2.0]), 2, NUMBERS)
    with pytest.raises(ContractError, match="one number for each input"):
        check_predictions(np.array([[1.5], [2.0]]), 2, NUMBERS)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2])
def test_thread_pools_have_one_thread_in_every_process(
    workers: int, make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in POOL_VARIABLES:
        monkeypatch.setenv(name, "2")
    with threadpool_limits(2):
        before = dict(os.environ), [pool["num_threads"] for pool in threadpool_info()]
        assert 2 in before[1]
        summary = run(make_spec(methods=["toy.look"], executor={"use": "local", "options": {"workers": workers}}))
        after = dict(os.environ), [pool["num_threads"] for pool in threadpool_info()]
    with Store.open(summary.store) as store:
        metrics = store.metrics()["toy.look"]
    assert {by_arm["threads"] for by_arm in metrics.values()} == {1.0}
    assert min(by_arm["pools"] for by_arm in metrics.values()) >= 1
    assert after[0] == before[0]
    if workers == 2:
        assert after[1] == before[1]


def test_the_global_generators_of_the_caller_are_preserved(make_spec: MakeSpec) -> None:
    random.seed(5)
    np.random.seed(5)
    expected = [random.random(), np.random.random()]
    random.seed(5)
    np.random.seed(5)
    run(make_spec(methods=["toy.reckless"]))
    assert [random.random(), np.random.random()] == expected


@pytest.mark.slow
def test_data_that_change_during_a_run_stop_it(
    make_spec: MakeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\n" + "".join(f"text {row},{row % 2}\n" for row in range(90)))
    spec = make_spec(
        tasks=[{"use": "files", "options": {"path": "rows.csv"}}], executor={"use": "local", "options": {"workers": 2}}
    )
    worker = SpecWork(spec, Identity(data={"files": "what it was before"}))
    with pytest.raises(DataError, match="task files: its data have changed since the run started"):
        worker(items(spec)[0])

    list_trials = ExperimentSpec.trials

    def change(spec: ExperimentSpec) -> Any:  # after the data are checked and before the first trial
        rows.write_text(rows.read_text().replace("text 7,", "other text,"))
        forget()
        return list_trials(spec)

    monkeypatch.setattr(ExperimentSpec, "trials", change)
    with pytest.raises(DataError, match="task files: its data have changed since the run started"):
        run(spec)


def test_data_that_change_between_two_runs_in_one_process_are_refused(make_spec: MakeSpec, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\n" + "".join(f"text {row},{row % 2}\n" for row in range(90)))
    spec = make_spec(tasks=[{"use": "files", "options": {"path": "rows.csv"}}])
    run(spec)
    rows.write_text(rows.read_text().replace("text 7,", "other text,"))
    with pytest.raises(StoreError, match="data of task files: fingerprint"):
        run(spec)


class Careless(Options):
    """Options of `careless`."""

    behavior: str = "none"


def careless(unlabeled: Any, train: Any, task: Any, *, options: Careless, context: Any) -> Predictor:
    """Change the state of the process, or raise an exception that is hard to store."""
    if options.behavior == "state":
        os.chdir("/")
        os.environ["ADDED"] = "1"
        os.environ["PRESENT"] = "changed"
        del os.environ["DELETED"]
        np.seterr(all="raise")
    return Predictor(lambda inputs: np.full((len(inputs), task.num_classes), 1 / task.num_classes))


@pytest.fixture
def run_careless(make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[Any]]:
    """Return a function that runs one item of the method `careless` with a behavior."""

    def run_one(behavior: str) -> list[Any]:
        spec = make_spec(methods=["toy.constant"])
        worker = SpecWork(spec)
        fit = partial(careless, options=Careless(behavior=behavior))
        monkeypatch.setattr(worker, "_fit", lambda method, task: fit)
        return list(worker(items(spec)[0]))

    return run_one


def test_a_fit_does_not_change_the_state_of_the_process(
    run_careless: Callable[[str], list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRESENT", "before")
    monkeypatch.setenv("DELETED", "before")
    before = Path.cwd(), dict(os.environ), np.geterr()
    (outcome,) = run_careless("state")
    assert isinstance(outcome, TrialResult)
    assert (Path.cwd(), dict(os.environ), np.geterr()) == before
