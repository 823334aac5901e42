"""A machine of a run is prepared and compared with the main process before it works."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from peekbench.data.loading import forget, load_dataset
from peekbench.data.preflight import describe_tasks
from peekbench.errors import HostError, PluginError
from peekbench.execution.fit_plans import group_trials
from peekbench.execution.pilot import run_pilot
from peekbench.execution.provenance import identify
from peekbench.execution.work import SpecWork
from peekbench.plugins import NODE_VARIABLE, Options, Work, registry
from peekbench.plugins.entries import ExecutorEntry
from peekbench.plugins.work_protocols import Event
from peekbench.records import Resources, TrialResult, WorkItem
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.differences import Identity

MakeSpec = Callable[..., ExperimentSpec]


@pytest.fixture
def expected(make_spec: MakeSpec) -> Identity:
    spec = make_spec()
    return identify(spec, describe_tasks(spec), {})


def replace_entry(monkeypatch: pytest.MonkeyPatch, use: str, entry_type: Any, **fields: Any) -> None:
    """Let a plugin's entry have other fields."""
    find = registry.find
    entry = replace(find(use, entry_type), **fields)
    monkeypatch.setattr(registry, "find", lambda other, kind: entry if other == use else find(other, kind))


def items(spec: ExperimentSpec) -> Any:
    return group_trials(spec.trials(), spec.base_keys(), ())


def test_an_equal_machine_is_described(
    make_spec: MakeSpec, expected: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NODE_VARIABLE, "node 7")
    work = pickle.loads(pickle.dumps(SpecWork(make_spec(), expected)))
    host = work.prepare()
    assert host.name == "node 7"
    assert host.packages["numpy"] == np.__version__
    (outcome, *_) = work(next(items(make_spec())))
    assert outcome.host == "node 7"


@pytest.mark.parametrize(
    ("difference", "message"),
    [
        (
            {"code": {"toy": {"peekbench_toy.py": "0", "helper.py": "1"}}},
            "plugin toy: helper.py removed, peekbench_toy.py changed",
        ),
        ({"code": {"peekbench": {"removed.py": "0"}}}, "plugin peekbench: .* added"),
        ({"versions": {"numpy": "1.0"}}, r"numpy: 2\S* instead of 1.0"),
        ({"versions": {"missing": "1.0"}}, "missing: no version instead of 1.0"),
        ({"data": {"a": "1" * 64}}, "task a: its data .*fingerprint 111111111111 at the start"),
    ],
)
def test_a_different_machine_is_refused(
    make_spec: MakeSpec, expected: Identity, difference: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NODE_VARIABLE, "node 7")
    with pytest.raises(HostError, match=f"node 7 differs from the main process.*\n.*{message}"):
        SpecWork(make_spec(), replace(expected, **difference)).prepare()


def test_a_machine_without_a_plugin_is_refused(make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    pickled = pickle.dumps(SpecWork(make_spec()))
    monkeypatch.setenv(NODE_VARIABLE, "node 7")
    monkeypatch.setattr(registry, "find", partial(_fail, error=PluginError("no plugin 'toy' is installed")))
    with pytest.raises(HostError, match=r"node 7 cannot do the work of this run[^$]*no plugin 'toy' is installed"):
        pickle.loads(pickled)


def test_data_that_a_machine_cannot_read_are_sent_with_the_work(make_spec: MakeSpec, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\n" + "".join(f"text {row},{row % 2}\n" for row in range(90)))
    spec = make_spec(tasks=[{"use": "files", "options": {"path": "rows.csv"}}])
    work = SpecWork(spec, identify(spec, describe_tasks(spec), {}))
    direct = [outcome for item in items(spec) for outcome in work(item)]
    alone, complete = pickle.dumps(work), pickle.dumps(work.with_data())
    rows.unlink()
    forget()
    with pytest.raises(HostError, match=r"rows\.csv"):
        pickle.loads(alone).prepare()
    elsewhere = pickle.loads(complete)
    elsewhere.prepare()
    sent = [outcome for item in items(spec) for outcome in elsewhere(item)]
    for one, other in zip(direct, sent, strict=True):
        assert isinstance(one, TrialResult)
        assert isinstance(other, TrialResult)
        assert [arm.scores for arm in one.arms] == [arm.scores for arm in other.arms]
    assert len(load_dataset(spec.source(spec.tasks[0])).labels) == 90  # for methods, too


def test_a_pilot_compares_machines_and_sends_data(
    make_spec: MakeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An executor that does all work on another machine, which has other data than the main process, or none."""
    spec = make_spec(tasks=["toy.words"], methods=["toy.constant"], executor="toy.careless")
    replace_entry(monkeypatch, "toy.careless", ExecutorEntry, execute=_execute_elsewhere)
    monkeypatch.setenv("PEEKBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ELSEWHERE", "1")
    with pytest.raises(HostError, match="task toy.words: its data have changed .* or are different on node 7"):
        run_pilot(spec)
    monkeypatch.setenv("ELSEWHERE", "none")
    forget()
    assert list(run_pilot(spec).seconds) == [("toy.constant", 12, 30)]


def _execute_elsewhere(items: Iterable[WorkItem], work: Work, *, options: Options) -> Iterator[list[Event]]:
    complete = pickle.dumps(work.with_data())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOY_DATA", os.environ["ELSEWHERE"])
        patch.setenv(NODE_VARIABLE, "node 7")
        forget()
        elsewhere = pickle.loads(complete if os.environ["ELSEWHERE"] == "none" else pickle.dumps(work))
        yield [elsewhere.prepare()]
        for item in items:
            yield list(elsewhere(item))


def _fail(*_: object, error: Exception) -> None:
    raise error


def test_needs_are_those_of_the_method(make_spec: MakeSpec) -> None:
    options = {"model": "./no-model", "device": "cuda", "threads": 3}
    spec = make_spec(methods=["toy.constant", {"use": "finetune.tapt", "options": options}])
    work = SpecWork(spec)
    needs = [work.needs(item) for item in list(items(spec))[:2]]
    assert needs == [Resources(), Resources(cpus=3, gpus=1, is_estimate=True)]
