"""Numbers of subsamples of single tasks, `tasks[i].num_subsamples`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from peekbench.errors import StoreError
from peekbench.execution.fit_plans import count_work, planned_design
from peekbench.execution.runner import run
from peekbench.results.analyze import analyze
from peekbench.spec.compatibility import incompatible_changes
from peekbench.spec.design import designs_by_task
from peekbench.spec.experiment import ExperimentSpec, canonical

MakeSpec = Callable[..., ExperimentSpec]
DESIGN = {"num_train": 12, "num_test": 30, "num_subsamples": 10}


@pytest.fixture
def make(make_spec: MakeSpec) -> MakeSpec:
    def make_one(own: int | None, stop: Any = None, **design: Any) -> ExperimentSpec:
        tasks = [{"use": "toy.words", "name": "a"}, {"use": "toy.words", "name": "b", "num_subsamples": own}]
        return make_spec(tasks=tasks, methods=["toy.vote"], design={**DESIGN, **design, "stop": stop})

    return make_one


def count(spec: ExperimentSpec) -> dict[str, int]:
    return dict(Counter(trial.draw.task for trial in spec.trials()))


def test_a_task_can_have_more_or_fewer_subsamples(make: MakeSpec) -> None:
    for own, largest in ((4, 10), (25, 25)):
        spec = make(own)
        assert count(spec) == {"a": 10, "b": own}
        assert spec.largest == largest
        assert count_work(spec).trials == 10 + own
        assert designs_by_task(canonical(spec)) == {task.name: spec.design_of(task) for task in spec.tasks}
    (point,) = planned_design(make(5), {"a": 3, "b": 3}).points
    assert point.num_subsamples == round(2 / (1 / 10 + 1 / 5))
    assert count(make(None)) == {"a": 10, "b": 10}
    several = make(4, num_test=[20, 30], num_subsamples={20: 10, 30: 5})
    assert count(several) == {"a": 15, "b": 8}


@pytest.mark.parametrize("looks", [2, [5]])
def test_looks_cut_all_tasks_in_proportion(make: MakeSpec, looks: Any) -> None:
    spec = make(4, stop={"looks": looks})
    assert count(spec.at_look(1)) == {"a": 5, "b": 2}
    assert count(spec.at_look(2)) == count(spec)
    first = designs_by_task(canonical(spec), stopped_at=5)
    assert {name: design.repeats(30) for name, design in first.items()} == {"a": 5, "b": 2}


def test_subsamples_of_a_task_may_only_be_added(make: MakeSpec) -> None:
    def changes(old: ExperimentSpec, new: ExperimentSpec) -> list[str]:
        return incompatible_changes(canonical(old), canonical(new))

    assert changes(make(4), make(6)) == changes(make(None), make(12)) == changes(make(12), make(12)) == []
    assert changes(make(4), make(None)) == [], "the design's number is larger"
    place = "tasks[b].num_subsamples for num_test 30"
    assert changes(make(6), make(4)) == [f"{place}: 6 before, 4 now"]
    assert changes(make(None), make(4)) == [f"{place}: 10 before, 4 now"]
    stop = {"looks": 2}
    (change,) = changes(make(4, stop), make(6, stop))
    assert change.startswith(f"{place}: 4 before, 6 now; with planned looks, all numbers of subsamples grow in")
    assert changes(make(4, stop), make(8, stop, num_subsamples=20)) == []


def test_a_run_of_unequal_numbers_is_complete_and_grows(make: MakeSpec) -> None:
    assert run(make(4)).finished == 14
    summary = run(make(6))
    assert (summary.resumed, summary.finished) == (14, 2)
    assert len(analyze(summary.store).analyses) == 2  # no trial is missing
    with pytest.raises(StoreError, match="tasks\\[b\\].num_subsamples for num_test 30: 6 before, 5 now"):
        run(make(5))
