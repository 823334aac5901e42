"""Measures one trial of each method at each design point, and forecasts the time of a run."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from peekbench.data.preflight import describe_tasks
from peekbench.execution.driver import execute
from peekbench.execution.hosts import prefetch_methods
from peekbench.execution.provenance import identify
from peekbench.execution.work import SpecWork
from peekbench.plugins.work_protocols import Outcome
from peekbench.records.answers import find_correct, join_predicted
from peekbench.records.trials import Draw, Trial, TrialFailure, TrialResult, WorkItem
from peekbench.spec.components import TaskSpec
from peekbench.spec.experiment import ExperimentSpec

Key: TypeAlias = tuple[str, int, int]
"""Method, num_train and num_test of a trial."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the trials of a run will use on this machine."""

    workers: int
    """Trials at a time."""
    seconds: float
    """Wall time."""


@dataclass(frozen=True, slots=True)
class Pilot:
    """How long pilot trials took."""

    seconds: Mapping[Key, float]
    """Seconds of each measured trial, with base arms shared as in the run; without methods of which a trial failed."""
    first: Mapping[str, float]
    """Seconds of the first trial of each method, which also imports libraries and loads models."""
    failures: tuple[TrialFailure, ...]
    """Failed trials."""
    variances: Mapping[Key, float] = field(default_factory=dict)
    """Variance of the bias between divisions into folds, see `variance_of_bias`; nothing without folds."""
    preparation: float = 0.0
    """Seconds of what is prepared once before all trials, such as downloads and models."""
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What was prepared for each method, as its plugin describes it."""

    @property
    def start(self) -> float:
        """Seconds that a worker needs for what only first trials do, such as importing libraries."""
        fastest: dict[str, float] = {}
        for (method, *_), seconds in self.seconds.items():
            fastest[method] = min(seconds, fastest.get(method, seconds))
        return sum(max(0.0, self.first[method] - seconds) for method, seconds in fastest.items())

    def forecast(self, spec: ExperimentSpec, workers: int) -> Forecast:
        """Forecast the trials of a spec on this machine with a number of workers: what the pilot used, multiplied."""
        trials = {key: number for key, number in count_trials(spec).items() if key in self.seconds}
        workers = min(workers, max(1, sum(trials.values())))
        parallel = min(workers, available_cores())
        total = sum(number * self.seconds[key] for key, number in trials.items())
        longest = max((self.seconds[key] for key in trials), default=0.0)
        starts = self.start * workers / parallel
        return Forecast(workers, starts + max(total / parallel, longest))


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class PilotWork(SpecWork):
    """The work of a spec whose results tell how long each trial took."""

    def __call__(self, item: WorkItem) -> Iterator[Outcome]:
        """Do an item of one trial; see `SpecWork.__call__`."""
        started = time.perf_counter()
        for outcome in super().__call__(item):
            if isinstance(outcome, TrialResult):
                outcome = replace(outcome, seconds=time.perf_counter() - started)
            yield outcome


def _key(trial: Trial) -> Key:
    return trial.method, trial.draw.num_train, trial.draw.num_test


def run_pilot(spec: ExperimentSpec, note: Callable[[str], None] = lambda _: None) -> Pilot:
    """Run trials of each method at each design point through the spec's executor, with one worker. Nothing is stored.

    Methods and machines are first prepared as for a run, and each method runs once before it is measured, because its
    first fit also imports libraries.

    Parameters
    ----------
    spec
        The spec.
    note
        Receives a text about each method before it is prepared.

    Returns
    -------
    Pilot
        How long the trials took.

    Raises
    ------
    PeekbenchError
        If what a method needs is unavailable, or another machine differs from this one, as in a run.
    """
    started = time.monotonic()
    facts = prefetch_methods(spec, note)
    preparation = time.monotonic() - started
    work = PilotWork(spec, identify(spec, describe_tasks(spec), facts))
    if hasattr(spec.executor.options, "workers"):  # one worker, which has then loaded the libraries
        spec = spec.with_executor_options(workers=1)
    seconds: dict[Key, float] = {}
    variances: dict[Key, float] = {}
    first: dict[str, float] = {}
    failures: list[TrialFailure] = []
    with closing(execute(spec.executor, _pilot_items(spec), work)) as batches:
        for outcome in (event for batch in batches for event in batch):
            if isinstance(outcome, TrialFailure):
                failures.append(outcome)
            elif isinstance(outcome, TrialResult):
                method = outcome.trial.method
                if method in first:
                    key = _key(outcome.trial)
                    seconds[key] = outcome.seconds
                    is_accuracy = outcome.test_labels.ndim < outcome.arms[0].predicted.numbers.ndim
                    if spec.design.folds and is_accuracy:
                        variances[key] = variance_of_bias(outcome)
                else:
                    first[method] = outcome.seconds
    failed = {failure.trial.method for failure in failures}
    seconds = {key: number for key, number in seconds.items() if key[0] not in failed}
    variances = {key: variances[key] for key in seconds if key in variances}
    return Pilot(seconds, first, tuple(failures), variances, preparation, facts)


def variance_of_bias(result: TrialResult) -> float:
    """Return the variance of the bias in accuracy between divisions into folds, from a single division.

    All fits of a division answer all texts, and differ as those of other divisions do. If answers to a text have the
    variance v among fits, the difference between the mean of K - 1 answers and another one has the variance
    v K / (K - 1), and its mean over n texts an n-th of it. Answers to a group of texts, which is never divided, vary
    together. The quality of fits cancels, as each one has the same weight in both arms.

    Parameters
    ----------
    result
        A trial with folds, whose arms extra and test have one and K - 1 answers for each text.
    """
    labels = result.test_labels
    of_arms = join_predicted([arm.predicted for arm in result.arms if arm.arm in ("extra", "test")])
    correct = find_correct(of_arms.by_fit(len(labels)), labels)  # (n_folds, n_texts)
    num_folds, num_texts = correct.shape
    position = np.arange(num_texts)
    if result.test_groups is not None:
        position = np.unique(result.test_groups, return_inverse=True)[1]
    of_groups = np.array([np.bincount(position, weights=of_fits) for of_fits in correct])  # (n_folds, n_groups)
    return float(of_groups.var(axis=0, ddof=1).sum() * num_folds / (num_folds - 1) / num_texts**2)


def count_trials(spec: ExperimentSpec) -> Counter[Key]:
    """Return the number of trials of a spec by method and design point."""
    counts: Counter[Key] = Counter()
    for task in spec.tasks:
        design = spec.design_of(task)
        for num_train, num_test in design.points():
            for method in spec.methods:
                counts[method.name, num_train, num_test] += design.repeats(num_test)
    return counts


def _pilot_items(spec: ExperimentSpec) -> Iterator[WorkItem]:
    """Yield a first trial of each method, and then one at each design point, on the first task that has the point."""
    tasks: dict[tuple[int, int], TaskSpec] = {}
    for task in spec.tasks:
        for point in spec.design_of(task).points():
            tasks.setdefault(point, task)
    point, task = next(iter(tasks.items()))
    # The first trials have another draw than the measured ones, which would otherwise find embeddings in a cache.
    last = spec.design_of(task).repeats(point[1]) - 1
    draws = [Draw(task.name, *point, last), *(Draw(task.name, *point, 0) for point, task in tasks.items())]
    for draw in draws:
        yield from _items_of_draw(spec, draw)


def _items_of_draw(spec: ExperimentSpec, draw: Draw) -> Iterator[WorkItem]:
    fitted_bases: set[str] = set()
    for method in spec.methods:
        base_key = method.base_key(draw.task)
        yield WorkItem((Trial(draw, method.name),), has_base=base_key in fitted_bases)
        fitted_bases.add(base_key)
