"""Measures a few trials of each method at each design point, to forecast the time and the memory of a run."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, TypeAlias

from peekbench.data.preflight import describe_tasks
from peekbench.execution.hosts import expect, pack, unpack
from peekbench.execution.preparation import prepare
from peekbench.execution.progress import NullProgress, Progress
from peekbench.execution.usage import Stopwatch
from peekbench.execution.work import SpecWork
from peekbench.plugins.gpus import list_gpus
from peekbench.plugins.work_protocols import Outcome
from peekbench.records.trials import Draw, Trial, TrialFailure, TrialResult, WorkItem
from peekbench.records.usage import Usage
from peekbench.spec.experiment import ExperimentSpec

SECONDS = 10.0
"""Seconds after which no further round of trials starts."""
MAX_ROUNDS = 10
"""Trials of a method at a design point, at most."""

Key: TypeAlias = tuple[str, int, int]
"""Method, num_train and num_test of a trial."""


@dataclass(frozen=True, slots=True)
class Pilot:
    """What pilot trials used."""

    usages: Mapping[Key, tuple[Usage, ...]]
    """Usage of the measured trials, with base arms shared as in the run; without methods of which a trial failed."""
    first: Mapping[str, Usage]
    """Usage of the first trial of each method, which also imports libraries and loads models."""
    failures: tuple[TrialFailure, ...]
    """Failed trials."""

    @property
    def num_trials(self) -> int:
        """Number of measured trials."""
        return sum(map(len, self.usages.values()))

    @property
    def seconds(self) -> dict[Key, float]:
        """Mean seconds of a trial whose process never waits for a core."""
        return {key: fmean(usage.idle_seconds for usage in usages) for key, usages in self.usages.items()}

    @property
    def processor(self) -> dict[Key, float]:
        """Mean processor time of a trial in seconds."""
        return {key: fmean(usage.processor for usage in usages) for key, usages in self.usages.items()}

    @property
    def start(self) -> float:
        """Processor time in seconds of a worker outside of trials, and of what only first trials do."""
        usages = [usage for usages in self.usages.values() for usage in usages]
        if not usages:
            return 0.0
        rest = max(usage.process_total for usage in usages) - sum(usage.processor for usage in usages)
        steady = (
            min(mean for key, mean in self.processor.items() if key[0] == method)
            for method in self.first
            if any(key[0] == method for key in self.usages)
        )
        return max(0.0, rest - sum(steady))

    @property
    def busy(self) -> float:
        """Share of the time in which trials waited for a core."""
        usages = [usage for usages in self.usages.values() for usage in usages]
        total = sum(usage.seconds for usage in usages)
        return sum(usage.waited for usage in usages) / total if total else 0.0

    @property
    def memory(self) -> int:
        """Peak of the resident memory of a worker in bytes."""
        return max((usage.memory for usages in self.usages.values() for usage in usages), default=0)

    @property
    def gpu_memory(self) -> int:
        """Largest memory of GPUs of a worker after a trial in bytes; 0 if it used none."""
        return max((usage.gpu_memory for usages in self.usages.values() for usage in usages), default=0)

    def operations(self, key: Key) -> float:
        """Return the operations of a trial: those of the method's first trial, in proportion to processor time."""
        method, *point = key
        counted = next(other for other in self.usages if other[0] == method)
        operations = self.first[method].operations
        return operations if counted[1:] == tuple(point) else operations * self.processor[key] / self.processor[counted]


class PilotWork(SpecWork):
    """The work of a spec whose results tell what each trial has used.

    Parameters
    ----------
    spec, expected
        As for `SpecWork`.
    counts_operations
        Whether the operations of each method's first trial are counted, which makes it slower.
    """

    def __init__(self, *arguments: Any, counts_operations: bool = False) -> None:
        super().__init__(*arguments)
        self._counts_operations = counts_operations
        self._was_tried: set[str] = set()
        self._gpu_memory_before: int | None = None
        self.process_start = time.process_time()
        """Processor time before the pilot: that of the process that runs it, or 0 in a worker."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments only, as `SpecWork` does."""
        return _unpickle, (pack(self._spec, self._expected), self._counts_operations)

    def __call__(self, item: WorkItem) -> Iterator[Outcome]:
        """Do an item of one trial; see `SpecWork.__call__`."""
        if self._gpu_memory_before is None:
            self._gpu_memory_before = _used_gpu_memory()
        return self._measure(item.trials[0].method, super().__call__(item))

    def _measure(self, method: str, outcomes: Iterator[Outcome]) -> Iterator[Outcome]:
        count = None
        if self._counts_operations and method not in self._was_tried:
            count = self._spec.method(method).entry.operations
        self._was_tried.add(method)
        stopwatch = Stopwatch(self.process_start)
        stopwatch.start()
        with ExitStack() as stack:
            num_operations: Callable[[], float] = (lambda: 0.0) if count is None else stack.enter_context(count())
            for outcome in outcomes:
                usage = stopwatch.stop(operations=num_operations())
                before = self._gpu_memory_before or 0
                usage = replace(usage, gpu_memory=max(0, _used_gpu_memory() - before))
                yield replace(outcome, usage=usage) if isinstance(outcome, TrialResult) else outcome


def _unpickle(packed: bytes, counts_operations: bool) -> PilotWork:
    work = PilotWork(*unpack(packed), counts_operations=counts_operations)
    work.process_start = 0.0
    return work


def _used_gpu_memory() -> int:
    """Return the memory of all GPUs in use. Only one worker runs in a pilot, so the growth is its own."""
    return sum(gpu.used for gpu in list_gpus() or ())


def run_pilot(spec: ExperimentSpec, progress: Progress | None = None, *, counts_operations: bool = False) -> Pilot:
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
    counts_operations
        Whether to count the operations of matrix products, for a forecast for GPUs.

    Returns
    -------
    Pilot
        What the trials used.

    Raises
    ------
    PeekbenchError
        If what a method needs is unavailable, or another machine differs from this one, as in a run.
    """
    facts = prepare(spec, progress or NullProgress())
    work = PilotWork(spec, expect(spec, describe_tasks(spec), facts), counts_operations=counts_operations)
    if hasattr(spec.executor.options, "workers"):  # one worker, which has then loaded the libraries
        spec = spec.with_executor_options(workers=1)
    usages: dict[Key, list[Usage]] = {}
    first: dict[str, Usage] = {}
    failures: dict[Trial, TrialFailure] = {}
    executor = spec.executor
    with closing(executor.entry.execute(_pilot_items(spec), work, options=executor.options)) as batches:
        for outcome in (event for batch in batches for event in batch if isinstance(event, TrialResult | TrialFailure)):
            draw, method = outcome.trial.draw, outcome.trial.method
            if isinstance(outcome, TrialFailure):
                failures[outcome.trial] = outcome
            elif method not in first:
                assert outcome.usage is not None
                first[method] = outcome.usage
            else:
                assert outcome.usage is not None
                usages.setdefault((method, draw.num_train, draw.num_test), []).append(outcome.usage)
    failed = {trial.method for trial in failures}
    measured = {key: tuple(found) for key, found in usages.items() if key[0] not in failed}
    return Pilot(measured, first, tuple(failures.values()))


def count_trials(spec: ExperimentSpec) -> Counter[Key]:
    """Return the number of trials of a spec by method and design point."""
    counts: Counter[Key] = Counter()
    for task in spec.tasks:
        design = spec.design_of(task)
        for num_train, num_test in design.points():
            for method in spec.methods:
                counts[method.name, num_train, num_test] += spec.design.repeats(num_test)
    return counts


def _pilot_items(spec: ExperimentSpec) -> Iterator[WorkItem]:
    """Yield a first trial of each method, and then rounds of trials, as long as there is time for them."""
    tasks: dict[tuple[int, int], list[str]] = {}
    for task in spec.tasks:
        for point in spec.design_of(task).points():
            tasks.setdefault(point, []).append(task.name)
    point = next(iter(tasks))
    # Another draw than the measured ones, which would otherwise find its embeddings in a cache.
    yield from _items_of_draw(spec, Draw(tasks[point][0], *point, spec.design.repeats(point[1]) - 1))
    started = time.monotonic()
    for number in range(MAX_ROUNDS):
        if number and time.monotonic() - started >= SECONDS:
            return
        for point, names in tasks.items():
            subsample, position = divmod(number, len(names))
            if subsample < spec.design.repeats(point[1]):
                yield from _items_of_draw(spec, Draw(names[position], *point, subsample))


def _items_of_draw(spec: ExperimentSpec, draw: Draw) -> Iterator[WorkItem]:
    fitted_bases: set[str] = set()
    for method in spec.methods:
        yield WorkItem((Trial(draw, method.name),), has_base=method.base_key() in fitted_bases)
        fitted_bases.add(method.base_key())
