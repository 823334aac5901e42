"""Measures a few trials of each method at each design point, and forecasts the time and the memory of a run.

From the times of fits and predictions, it also compares the numbers of scored sets, `design.crossover`, by the time
that each takes for the same power.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, TypeAlias

import psutil

from peekbench.data.loading import load_dataset
from peekbench.data.preflight import check_sizes, describe_tasks
from peekbench.errors import DataError, SpecError
from peekbench.execution.hosts import expect, pack, unpack
from peekbench.execution.observers import Progress
from peekbench.execution.preparation import prepare
from peekbench.execution.work import SpecWork
from peekbench.formatting import pluralize
from peekbench.plugins.gpus import list_gpus
from peekbench.plugins.work_protocols import Outcome
from peekbench.records.trials import ArmResult, Draw, Trial, TrialFailure, TrialResult, Usage, WorkItem
from peekbench.spec.experiment import ExperimentSpec, canonical, make_spec

SECONDS = 10.0
"""Seconds after which no further round of trials starts."""
MAX_ROUNDS = 10
"""Trials of a method at a design point, at most."""
STATUS = Path("/proc/self/status")

Crossover: TypeAlias = Literal[False] | int
"""Value of `design.crossover`."""
CHOICES: tuple[Crossover, ...] = (False, 2, 3, 5, 10)
"""Values that are compared, besides the spec's own."""
MIN_DEGREES = 20
"""Degrees of freedom that a choice must leave. With fewer, intervals are more than 6% wider for this reason alone."""
TOLERANCE = 0.1
"""Share of the time that a choice must save to be recommended."""

Key: TypeAlias = tuple[str, int, int]
"""Method, num_train and num_test of a trial."""


@dataclass(frozen=True, slots=True)
class TrialTimes:
    """Seconds of the parts of a trial.

    Examples
    --------
    >>> times = TrialTimes(base_fit=1.0, base_predict=0.5, fit=2.0, predict=0.5)
    >>> times.seconds(False), times.seconds(2)
    (6.5, 8.0)
    """

    base_fit: float
    """Fit of the base arm; 0 if the trial has none, or shares that of another method."""
    base_predict: float
    """Prediction of one set by this fit."""
    fit: float
    """A fit that adapts to a set."""
    predict: float
    """Prediction of one set by such a fit."""

    @classmethod
    def of(cls, arms: Sequence[ArmResult], crossover: Crossover) -> TrialTimes:
        """Divide the times of the arms base, extra and test of a trial among their fits and predictions."""
        sets = crossover or 1
        base = next((arm for arm in arms if arm.arm == "base"), None)
        adapted = [arm for arm in arms if arm.arm in ("extra", "test")]
        return cls(
            0.0 if base is None else base.fit_seconds,
            0.0 if base is None else base.predict_seconds / sets,
            sum(arm.fit_seconds for arm in adapted) / (crossover or 2),
            sum(arm.predict_seconds for arm in adapted) / (crossover**2 or 2),
        )

    @classmethod
    def mean(cls, times: Sequence[TrialTimes]) -> TrialTimes:
        """Return the mean times of several trials."""
        return cls(*(fmean(getattr(each, field.name) for each in times) for field in fields(cls)))

    def seconds(self, crossover: Crossover) -> float:
        """Return the seconds of a trial with another number of sets."""
        sets, fits, predictions = (crossover, crossover, crossover**2) if crossover else (1, 2, 2)
        return self.base_fit + sets * self.base_predict + fits * self.fit + predictions * self.predict


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the trials of a run will use on this machine."""

    workers: int
    """Trials at a time."""
    seconds: float
    """Wall time."""
    memory: int
    """Resident memory of all workers in bytes."""


@dataclass(frozen=True, slots=True)
class Pilot:
    """What pilot trials used."""

    usages: Mapping[Key, tuple[Usage, ...]]
    """Usage of the measured trials, with base arms shared as in the run; without methods of which a trial failed."""
    first: Mapping[str, Usage]
    """Usage of the first trial of each method, which also imports libraries and loads models."""
    failures: tuple[TrialFailure, ...]
    """Failed trials."""
    times: Mapping[Key, TrialTimes] = field(default_factory=dict)
    """Mean times of the fits and predictions of the measured trials."""

    @property
    def measured(self) -> list[Usage]:
        """Usage of all measured trials."""
        return [usage for usages in self.usages.values() for usage in usages]

    @property
    def seconds(self) -> dict[Key, float]:
        """Mean seconds of a trial."""
        return {key: fmean(usage.seconds for usage in usages) for key, usages in self.usages.items()}

    @property
    def start(self) -> float:
        """Seconds that a worker needs for what only first trials do, such as importing libraries."""
        fastest: dict[str, float] = {}
        for (method, *_), seconds in self.seconds.items():
            fastest[method] = min(seconds, fastest.get(method, seconds))
        return sum(max(0.0, self.first[method].seconds - seconds) for method, seconds in fastest.items())

    @property
    def gpu_memory(self) -> int:
        """Largest memory of GPUs of a worker after a trial in bytes; 0 if it used none."""
        return max((usage.gpu_memory for usage in self.measured), default=0)

    def forecast(self, spec: ExperimentSpec, workers: int) -> Forecast:
        """Forecast the trials of a spec on this machine with a number of workers: the measured times, multiplied."""
        trials = {key: number for key, number in count_trials(spec).items() if key in self.usages}
        seconds = self.seconds
        workers = min(workers, max(1, sum(trials.values())))
        parallel = min(workers, available_cores())
        total = sum(number * seconds[key] for key, number in trials.items())
        longest = max((seconds[key] for key in trials), default=0.0)
        memory = max((usage.memory for usage in self.measured), default=0)
        starts = self.start * workers / parallel
        return Forecast(workers, starts + max(total / parallel, longest), workers * memory)


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class PilotWork(SpecWork):
    """The work of a spec whose results tell what each trial has used."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._gpu_memory_before: int | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments only, as `SpecWork` does."""
        return _unpickle, (pack(self._spec, self._expected),)

    def __call__(self, item: WorkItem) -> Iterator[Outcome]:
        """Do an item of one trial; see `SpecWork.__call__`."""
        if self._gpu_memory_before is None:
            self._gpu_memory_before = _used_gpu_memory()
        return self._measure(item, time.perf_counter(), self._gpu_memory_before)

    def _measure(self, item: WorkItem, started: float, gpu_memory: int) -> Iterator[Outcome]:
        for outcome in super().__call__(item):
            usage = Usage(
                seconds=time.perf_counter() - started,
                memory=peak_memory(),
                gpu_memory=max(0, _used_gpu_memory() - gpu_memory),
            )
            yield replace(outcome, usage=usage) if isinstance(outcome, TrialResult) else outcome


def _unpickle(packed: bytes) -> PilotWork:
    return PilotWork(*unpack(packed))


def peak_memory() -> int:
    """Return the peak of the resident memory of this process in bytes."""
    # On Linux, `getrusage` starts with the peak of the process that started this one, and VmHWM does not.
    if STATUS.exists():
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak_on_windows = getattr(psutil.Process().memory_info(), "peak_wset", None)
    if peak_on_windows is not None:
        return int(peak_on_windows)
    import resource  # noqa: PLC0415 - the module is missing on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _used_gpu_memory() -> int:
    """Return the memory of all GPUs in use. Only one worker runs in a pilot, so the growth is its own."""
    return sum(gpu.used for gpu in list_gpus() or ())


def run_pilot(spec: ExperimentSpec, progress: Progress | None = None) -> Pilot:
    """Run trials of each method at each design point through the spec's executor, with one worker. Nothing is stored.

    Methods and machines are first prepared as for a run, and each method runs once before it is measured, because its
    first fit also imports libraries. Each method is then measured at least once at each point. While the pilot has
    taken less than `SECONDS`, it continues with other tasks and subsamples, up to `MAX_ROUNDS`.

    Parameters
    ----------
    spec
        The spec.
    progress
        Receives the name of each method that is prepared.

    Returns
    -------
    Pilot
        What the trials used.

    Raises
    ------
    PeekbenchError
        If what a method needs is unavailable, or another machine differs from this one, as in a run.
    """
    facts = prepare(spec, progress or Progress())
    work = PilotWork(spec, expect(spec, describe_tasks(spec), facts))
    if hasattr(spec.executor.options, "workers"):  # one worker, which has then loaded the libraries
        spec = spec.with_executor_options(workers=1)
    usages: dict[Key, list[Usage]] = {}
    times: dict[Key, list[TrialTimes]] = {}
    first: dict[str, Usage] = {}
    failures: dict[Trial, TrialFailure] = {}
    executor = spec.executor
    with closing(executor.entry.execute(_pilot_items(spec), work, options=executor.options)) as batches:
        for outcome in (event for batch in batches for event in batch if isinstance(event, TrialResult | TrialFailure)):
            draw, method = outcome.trial.draw, outcome.trial.method
            if isinstance(outcome, TrialFailure):
                failures[outcome.trial] = outcome
                continue
            assert outcome.usage is not None
            if method not in first:
                first[method] = outcome.usage
                continue
            key = (method, draw.num_train, draw.num_test)
            usages.setdefault(key, []).append(outcome.usage)
            times.setdefault(key, []).append(TrialTimes.of(outcome.arms, spec.design.crossover))
    failed = {trial.method for trial in failures}
    measured = {key: tuple(found) for key, found in usages.items() if key[0] not in failed}
    means = {key: TrialTimes.mean(times[key]) for key in measured}
    return Pilot(measured, first, tuple(failures.values()), means)


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
    """Yield a first trial of each method, and then rounds of trials, as long as there is time for them."""
    tasks: dict[tuple[int, int], list[str]] = {}
    for task in spec.tasks:
        for point in spec.design_of(task).points():
            tasks.setdefault(point, []).append(task.name)
    point = next(iter(tasks))
    # Another draw than the measured ones, which would otherwise find its embeddings in a cache.
    repeats = {task.name: spec.design_of(task).repeats for task in spec.tasks}
    first = tasks[point][0]
    yield from _items_of_draw(spec, Draw(first, *point, repeats[first](point[1]) - 1))
    started = time.monotonic()
    for number in range(MAX_ROUNDS):
        if number and time.monotonic() - started >= SECONDS:
            return
        for point, names in tasks.items():
            subsample, position = divmod(number, len(names))
            if subsample < repeats[names[position]](point[1]):
                yield from _items_of_draw(spec, Draw(names[position], *point, subsample))


def _items_of_draw(spec: ExperimentSpec, draw: Draw) -> Iterator[WorkItem]:
    fitted_bases: set[str] = set()
    for method in spec.methods:
        yield WorkItem((Trial(draw, method.name),), has_base=method.base_key() in fitted_bases)
        fitted_bases.add(method.base_key())


def information(crossover: Crossover) -> float:
    """Return the information of a trial on the bias, in units of the inverse variance of one score of one fit.

    A score is the sum of the difficulty of the set, the quality of the fit, the bias if the fit adapted to the set, and
    noise of variance v. With K sets, difficulty and quality cancel. `test` averages K scores and `extra` the other
    K (K - 1), so the variance of their difference is v / K + v / (K (K - 1)) = v / (K - 1). With one set, it is 2 v
    plus the variances of the qualities of both fits, which are left out here in favor of one set.
    """
    return crossover - 1.0 if crossover else 0.5


@dataclass(frozen=True, slots=True)
class SetChoice:
    """The choices of `design.crossover` for a spec."""

    current: Crossover
    """The spec's own."""
    costs: Mapping[str, Mapping[Crossover, float]]
    """By method, seconds of the choices that the spec and its data allow, for the power that the spec has now."""
    excluded: Mapping[Crossover, str]
    """Reasons why other choices are not possible."""

    @property
    def relative(self) -> dict[Crossover, float]:
        """Time of each choice for all methods, relative to the spec's own."""
        return relative_times(self.costs.values(), self.current)

    @property
    def best(self) -> Crossover:
        """Recommended choice for all methods."""
        return recommend(self.relative, self.current)

    def best_by_method(self) -> dict[str, Crossover]:
        """Return the choice that would be recommended for each method alone."""
        return {
            method: recommend(relative_times([costs], self.current), self.current)
            for method, costs in self.costs.items()
        }


def relative_times(costs: Iterable[Mapping[Crossover, float]], current: Crossover) -> dict[Crossover, float]:
    """Return the time of each choice relative to the current one, summed over methods."""
    total: dict[Crossover, float] = {}
    for by_choice in costs:
        for choice, seconds in by_choice.items():
            total[choice] = total.get(choice, 0.0) + seconds
    return {choice: seconds / total[current] for choice, seconds in total.items()}


def recommend(relative: Mapping[Crossover, float], current: Crossover) -> Crossover:
    """Return the current choice unless another one saves time, and otherwise the smallest of about equal choices.

    Examples
    --------
    >>> recommend({False: 2.0, 2: 1.0, 3: 0.75, 5: 0.7}, 2), recommend({2: 1.0, 3: 0.95}, 2)
    (3, 2)
    """
    cheapest = min(relative.values())
    if cheapest >= 1 - TOLERANCE:
        return current
    about_equal = [choice for choice, time in relative.items() if choice and time <= cheapest * (1 + TOLERANCE)]
    return min(about_equal, default=False)


def compare(
    spec: ExperimentSpec, times: Mapping[tuple[str, int, int], TrialTimes], trials: Mapping[tuple[str, int, int], int]
) -> SetChoice | None:
    """Compare the choices of a spec by the mean times and the numbers of its trials.

    Returns
    -------
    SetChoice or None
        None if nothing was measured, or the spec has other arms than base, extra and test.
    """
    current = spec.design.crossover
    if any(arm.name not in ("base", "extra", "test") for arm in spec.arms):
        return None
    allowed: list[Crossover] = []
    excluded: dict[Crossover, str] = {}
    for choice in sorted({*CHOICES, current}):
        reason = "" if choice == current else find_obstacle(spec, choice)
        if reason:
            excluded[choice] = reason
        else:
            allowed.append(choice)
    costs: dict[str, dict[Crossover, float]] = {}
    for key, parts in times.items():
        of_method = costs.setdefault(key[0], {})
        for choice in allowed:
            ratio = information(current) / information(choice)
            of_method[choice] = of_method.get(choice, 0.0) + trials[key] * ratio * parts.seconds(choice)
    costs = {method: by_choice for method, by_choice in costs.items() if by_choice[current] > 0}
    return SetChoice(current, costs, excluded) if costs else None


def with_crossover(spec: ExperimentSpec, choice: Crossover) -> ExperimentSpec:
    """Return the spec with another number of sets, and the subsamples that then have the same information.

    Raises
    ------
    SpecError
        If the spec does not allow this, for example because of its planned looks.
    """
    ratio = information(spec.design.crossover) / information(choice)

    def scale(number: Any) -> Any:
        if isinstance(number, Mapping):
            return {size: scale(each) for size, each in number.items()}
        return None if number is None else math.ceil(number * ratio - 1e-9)

    raw = canonical(spec)
    design = {**raw["design"], "crossover": choice, "num_subsamples": scale(raw["design"]["num_subsamples"])}
    tasks = [{**task, "num_subsamples": scale(task["num_subsamples"])} for task in raw["tasks"]]
    return make_spec({**raw, "design": design, "tasks": tasks}, folder=spec.folder)


def find_obstacle(spec: ExperimentSpec, choice: Crossover) -> str:
    """Return why a spec cannot have a number of sets; empty if it can."""
    try:
        other = with_crossover(spec, choice)
    except SpecError:
        return "not with these planned looks"
    for task in other.tasks:
        try:
            check_sizes(load_dataset(spec.source(task)), other.design_of(task), task.name)
        except DataError:
            return f"too few rows in task {task.name}"
    if information(choice) > information(spec.design.crossover):
        for num_test in other.design.num_test:
            designs = [design for design in map(other.design_of, other.tasks) if num_test in design.num_test]
            repeats = [design.repeats(num_test) for design in designs]
            if designs and sum(repeats) - len(repeats) < MIN_DEGREES:
                return f"would leave {pluralize(min(repeats), 'subsample')} per task"
    return ""
