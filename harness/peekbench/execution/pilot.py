"""Times one trial of each method at each design point, to say beforehand what a spec will take."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peekbench.execution.worker import Worker
from peekbench.records.trials import Draw, Trial, TrialFailure, TrialResult, WorkItem

if TYPE_CHECKING:
    from peekbench.spec.experiment import ExperimentSpec


@dataclass(frozen=True, slots=True)
class Timing:
    seconds: dict[tuple[str, int, int], float]
    """Of a trial by (method, num_train, num_test), base arms shared as in the run."""
    total: float
    """Seconds that all trials of the spec take one after the other."""
    failures: tuple[TrialFailure, ...]


def time_pilot(spec: ExperimentSpec) -> Timing:
    """Run each method once at each design point, as the spec's executor would; nothing is stored.

    The task is the first that is drawn at that point.

    Each method is run once more beforehand, because its first fit also imports libraries.
    """
    if hasattr(spec.executor.options, "workers"):  # one, so that the trial timed is run where the libraries are loaded
        spec = spec.with_executor_options(workers=1)
    items: list[WorkItem] = []
    num_tasks = Counter(point for task in spec.tasks for point in spec.design_of(task).points())
    for num_train, num_test in num_tasks:
        with_base: set[str] = set()
        task = next(task.name for task in spec.tasks if num_test in spec.design_of(task).num_test)
        for method in spec.methods:
            trial = Trial(Draw(task, num_train, num_test, 0), method.name)
            items.append(WorkItem((trial,), has_base=method.base_key() in with_base))
            with_base.add(method.base_key())
    warm_up = items[: len(spec.methods)]
    seconds: dict[tuple[str, int, int], float] = {}
    failures: dict[Trial, TrialFailure] = {}
    executor = spec.executor
    with closing(executor.entry.execute([*warm_up, *items], Worker(spec), options=executor.options)) as batches:
        for outcome in (outcome for batch in batches for outcome in batch):
            draw = outcome.trial.draw
            if isinstance(outcome, TrialResult):
                taken = sum(arm.fit_seconds + arm.predict_seconds for arm in outcome.arms)
                seconds[outcome.trial.method, draw.num_train, draw.num_test] = taken
            else:
                failures[outcome.trial] = outcome
    total = sum(
        taken * spec.design.repeats(num_test) * num_tasks[num_train, num_test]
        for (_, num_train, num_test), taken in seconds.items()
    )
    return Timing(seconds, total, tuple(failures.values()))
