"""Times one trial of each method at each design point, to estimate the time of a run."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass

from peekbench.data.preflight import describe_tasks
from peekbench.execution.hosts import expect
from peekbench.execution.preparation import prepare
from peekbench.execution.progress import NullProgress, Progress
from peekbench.execution.work import SpecWork
from peekbench.records.trials import Draw, Trial, TrialFailure, TrialResult, WorkItem
from peekbench.spec.experiment import ExperimentSpec


@dataclass(frozen=True, slots=True)
class Timing:
    """Times of pilot trials."""

    seconds: dict[tuple[str, int, int], float]
    """Seconds of a trial by (method, num_train, num_test), with base arms shared as in the run; without methods of
    which a trial failed."""
    total: float
    """Seconds of all trials of these methods, one after the other."""
    failures: tuple[TrialFailure, ...]
    """Failed trials."""


def time_pilot(spec: ExperimentSpec, progress: Progress | None = None) -> Timing:
    """Run each method once at each design point through the spec's executor. Nothing is stored.

    At each point the first task drawn at that point is used. Methods and machines are first prepared as for a run, and
    each method runs once without timing, because its first fit also imports libraries.

    Parameters
    ----------
    spec
        The spec.
    progress
        Receives the name of each method that is prepared.

    Returns
    -------
    Timing
        Times by method and design point, and the estimated total.

    Raises
    ------
    PeekbenchError
        If what a method needs is unavailable, or another machine differs from this one, as in a run.
    """
    facts = prepare(spec, progress or NullProgress())
    work = SpecWork(spec, expect(spec, describe_tasks(spec), facts))
    if hasattr(spec.executor.options, "workers"):  # one worker, which has then loaded the libraries
        spec = spec.with_executor_options(workers=1)
    num_tasks = Counter(point for task in spec.tasks for point in spec.design_of(task).points())
    items = _pilot_items(spec, num_tasks)
    warm_up = items[: len(spec.methods)]
    seconds: dict[tuple[str, int, int], float] = {}
    failures: dict[Trial, TrialFailure] = {}
    executor = spec.executor
    with closing(executor.entry.execute([*warm_up, *items], work, options=executor.options)) as batches:
        for outcome in (event for batch in batches for event in batch if isinstance(event, TrialResult | TrialFailure)):
            draw = outcome.trial.draw
            if isinstance(outcome, TrialResult):
                trial_seconds = sum(arm.fit_seconds + arm.predict_seconds for arm in outcome.arms)
                seconds[outcome.trial.method, draw.num_train, draw.num_test] = trial_seconds
            else:
                failures[outcome.trial] = outcome
    failed = {trial.method for trial in failures}
    seconds = {key: trial_seconds for key, trial_seconds in seconds.items() if key[0] not in failed}
    total = sum(
        trial_seconds * spec.design.repeats(num_test) * num_tasks[num_train, num_test]
        for (_, num_train, num_test), trial_seconds in seconds.items()
    )
    return Timing(seconds, total, tuple(failures.values()))


def _pilot_items(spec: ExperimentSpec, points: Counter[tuple[int, int]]) -> list[WorkItem]:
    items: list[WorkItem] = []
    for num_train, num_test in points:
        fitted_bases: set[str] = set()
        task = next(task.name for task in spec.tasks if num_test in spec.design_of(task).num_test)
        for method in spec.methods:
            trial = Trial(Draw(task, num_train, num_test, 0), method.name)
            items.append(WorkItem((trial,), has_base=method.base_key() in fitted_bases))
            fitted_bases.add(method.base_key())
    return items
