"""Stores that must not stand in the way of a corrected or smaller spec, and those that must."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml
from commands import run_command
from stored_scores import find_wrong_scores

from peekbench.data.preflight import describe_tasks
from peekbench.errors import PeekbenchError, StoreError
from peekbench.execution.observers import Observers
from peekbench.execution.runner import run
from peekbench.records import TrialEvidence
from peekbench.records.runs import TrialFinished
from peekbench.report import report_of_run, state
from peekbench.spec.experiment import ExperimentSpec, canonical
from peekbench.store.reader import Store
from peekbench.store.writer import StoreWriter

MakeSpec: TypeAlias = Callable[..., ExperimentSpec]
STORE = Path("runs/small.sqlite")
VOTE, FAULTY = "toy.vote", "toy.faulty"
TASK = {"use": "toy.words", "name": "a"}
CHANGES: list[dict[str, Any]] = [
    {"methods": [{"use": FAULTY, "options": {"message": "another one"}}]},
    {"tasks": ["toy.words"]},
    {"seed": 8},
    {"design": {"num_train": 9, "num_test": 20, "num_subsamples": 1}},
    {"arms": ["extra", "test"]},
]


def design(num_subsamples: int, **parts: Any) -> dict[str, Any]:
    return {"num_train": 12, "num_test": 30, "num_subsamples": num_subsamples, **parts}


class InterruptAfter:
    """Interrupts a run after a number of trials."""

    def __init__(self, trials: int = 0) -> None:
        self.left = trials

    def trial_finished(self, event: TrialFinished) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def scores() -> dict[tuple[str, str, int, str], float]:
    """Return the stored scores by method, task, subsample and arm."""
    with Store.open(STORE) as store:
        columns = store.result_columns()
    keys = zip(*(columns[name] for name in ("method", "task", "subsample", "arm")), strict=True)
    return dict(zip(keys, columns["score"], strict=True))


def base_arms() -> int:
    with closing(sqlite3.connect(STORE)) as connection:
        return int(connection.execute("SELECT count(*) FROM arms WHERE arm = 'base'").fetchone()[0])


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_a_store_without_a_finished_trial_is_replaced(make_spec: MakeSpec, change: dict[str, Any]) -> None:
    assert run(make_spec(tasks=[TASK], methods=[FAULTY])).failed == 3
    corrected = make_spec(**{"tasks": [TASK], "methods": [FAULTY], **change})
    summary = run(corrected)
    assert summary.resumed == 0
    assert find_wrong_scores(STORE) == []
    with Store.open(STORE) as store:
        assert store.spec() == canonical(corrected)
        assert (len(store.sessions()), len(store.failures()), len(store.done())) == (
            1,
            summary.failed,
            summary.finished,
        )
        assert [*store.tasks()] == [task.name for task in corrected.tasks]


def test_what_no_finished_trial_depends_on_may_change(make_spec: MakeSpec) -> None:
    other = {**TASK, "name": "b"}
    short = {"use": FAULTY, "by_task": {"b": {"error": "none"}}}
    run(make_spec(tasks=[TASK, other], methods=[VOTE, FAULTY]))
    before = scores()
    run(make_spec(tasks=[TASK, other], methods=[VOTE, {"use": FAULTY, "options": {"message": "another one"}}]))
    with Store.open(STORE) as store:
        assert {failure.error.partition(" (")[0] for failure in store.failures()} == {"RuntimeError: another one"}
        assert len(store.sessions()) == 2, "of the finished trials, and of the repeated failures"
    summary = run(make_spec(tasks=[TASK, other], methods=[VOTE]))
    assert (summary.finished, summary.planned) == (0, 6)
    assert scores() == before
    with Store.open(STORE) as store:
        assert ([*store.methods()], store.failures(), len(store.sessions())) == ([VOTE], [], 1)
    assert find_wrong_scores(STORE) == []
    for change in ({"methods": [FAULTY]}, {"tasks": [other]}, {"seed": 8}):
        with pytest.raises(StoreError, match="contains another experiment"):
            run(make_spec(**{"tasks": [TASK, other], "methods": [VOTE], **change}))
    with pytest.raises(StoreError, match=r"methods\[toy.vote\].by_task"):
        run(make_spec(tasks=[TASK, other], methods=[{**short, "use": VOTE, "by_task": {"b": {"trust": 2}}}]))
    assert scores() == before


def test_a_corrected_method_gets_no_base_arm_of_its_old_options(make_spec: MakeSpec) -> None:
    bold = {"use": VOTE, "name": "bold"}
    spec = make_spec(tasks=[TASK], methods=[VOTE, bold])  # which share their base arms
    run(make_spec(tasks=[TASK], methods=[VOTE]))
    for trust in (1.0, 2.0):
        spec = make_spec(tasks=[TASK], methods=[VOTE, {**bold, "options": {"trust": trust}}])
        with StoreWriter.for_run(STORE, spec, describe_tasks(spec)):
            pass
        assert base_arms() == 3
    run(spec)
    assert base_arms() == 6


@pytest.mark.parametrize("fresh", [False, True])
def test_a_run_that_cannot_be_prepared_leaves_everything_as_it_is(make_spec: MakeSpec, fresh: bool) -> None:
    broken = make_spec(methods=[VOTE, {"use": "toy.short", "options": {"weights": "gone"}}])
    with pytest.raises(PeekbenchError, match="there is no file gone"):
        run(broken, fresh=fresh)
    assert not Path("runs").exists()
    run(make_spec(tasks=[TASK], methods=[VOTE]))
    before = STORE.read_bytes()
    with pytest.raises(PeekbenchError, match="there is no file gone"):
        run(broken, fresh=fresh)
    assert STORE.read_bytes() == before


def test_a_fresh_run_deletes_the_stored_trials(make_spec: MakeSpec) -> None:
    run(make_spec(tasks=[TASK], methods=[VOTE]))
    report_of_run(STORE)
    before = scores()
    other = make_spec(tasks=[TASK], methods=[VOTE], seed=8)
    with (
        StoreWriter.for_run(STORE, make_spec(tasks=[TASK], methods=[VOTE]), describe_tasks(other)),
        pytest.raises(StoreError, match="in use"),
    ):
        run(other, fresh=True)
    with Store.open(STORE) as reader:  # a report that is being written
        assert run(other, fresh=True).finished == 3
        assert len(reader.done()) == 3
        assert reader.spec()["seed"] == 7
    assert scores() != before
    assert find_wrong_scores(STORE) == []
    with Store.open(STORE) as store:
        assert (store.looks(), len(store.sessions())) == ([], 1)


def test_a_smaller_design_keeps_all_stored_trials_and_counts_as_a_look(make_spec: MakeSpec) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(make_spec(design=design(300)), observers=Observers(InterruptAfter(14)))  # of 2 tasks and 2 methods
    before = scores()
    stored = max(subsample for _, _, subsample, _ in before) + 1
    with pytest.raises(StoreError, match="num_subsamples for num_test 30: 300 before, 2 now"):
        run(make_spec(design=design(2)))
    summary = run(make_spec(design=design(stored)))
    assert 14 <= summary.resumed <= summary.planned == 4 * stored
    assert summary.resumed + summary.finished == summary.planned
    assert before.items() <= scores().items()
    verdict = report_of_run(STORE).verdicts[0]
    assert isinstance(verdict.evidence, TrialEvidence)
    assert verdict.evidence.looks is not None
    known = sum(method == VOTE and arm == "test" for method, _, _, arm in before)
    assert verdict.evidence.looks.earlier == (known,)
    assert verdict.estimate.level > 0.997
    assert f"changed to {2 * stored} trials after analyses at {known}" in state(verdict)
    with Store.open(STORE) as store:
        assert [look.get("is_lowering") for look in store.looks()] == [True, None]
        assert len(store.spec()["tasks"]) == 2


def test_a_lower_maximum_keeps_that_of_the_first_look(make_spec: MakeSpec) -> None:
    stop = {"looks": 2, "method": "confidence_sequence"}
    with pytest.raises(KeyboardInterrupt):
        run(make_spec(methods=[VOTE], design=design(400, stop=stop)), observers=Observers(InterruptAfter(12)))
    run(make_spec(methods=[VOTE], design=design(40, stop=stop)))
    with Store.open(STORE) as store:
        assert store.looks()[0]["maximum"] == 400, "the target of the sequence, chosen before the results were known"


@pytest.mark.slow
def test_the_command_follows_its_own_remedy(make_raw: Callable[..., dict[str, Any]]) -> None:
    for seed in (1, 2):
        Path("small.yaml").write_text(yaml.safe_dump(make_raw(tasks=[TASK], methods=[VOTE], seed=seed)))
        refused = run_command("run", "small.yaml")
    assert refused.returncode == 2
    assert "seed: 1 before, 2 now" in refused.stderr
    validated = run_command("validate", "small.yaml")
    for refusal in (refused, validated):
        assert refusal.stderr.endswith("or delete the stored trials:\n  peekbench run small.yaml --fresh\n")
    assert run_command("run", "small.yaml", "--fresh").returncode == 0
    assert run_command("run", "small.yaml").returncode == 0
