"""Contract checks of executors, with work whose trials are quick, hang, or end their process."""

from __future__ import annotations

import os
import platform
import signal
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

import numpy as np
import psutil

from peekbench.errors import ContractError, PeekbenchError
from peekbench.execution.determinism import one_thread_pools
from peekbench.execution.driver import WorkQueue
from peekbench.execution.hosts import host_name
from peekbench.formatting import pluralize
from peekbench.plugins.entries import ExecutorEntry
from peekbench.plugins.protocols import Options
from peekbench.plugins.work_protocols import Outcome
from peekbench.records.answers import Predicted
from peekbench.records.runs import Host, Resources
from peekbench.records.trials import ArmResult, Draw, Trial, TrialFailure, TrialResult, WorkItem
from peekbench.spec.components import ExecutorSpec, make_component
from peekbench_testing.runner import Checks, Memo

TIME_LIMIT = 1.0  # seconds of a trial of the checks
END_TIMEOUT = 10.0  # seconds in which workers end after the executor has been closed
LONG = 20.0
"""Seconds of a trial that an executor has to end."""
BROKEN = "this is the error of the sample work"
NUM_TEST, NUM_CLASSES = 40, 3
NUM_PLAIN = 40  # trials of the ordinary run


def this_process() -> tuple[str, int]:
    """Return the names of this machine and process."""
    return platform.node(), os.getpid()


class SampleWork:
    """Work whose trials do what the names of their methods say; see `make_items`.

    Parameters
    ----------
    folder
        Folder in which a trial that ends its process once notes this.
    timeout
        Time limit of a trial in seconds.
    """

    def __init__(self, folder: str, timeout: float | None = None, origin: tuple[str, int] | None = None) -> None:
        self._folder = folder
        self._timeout = timeout
        self._origin = origin or this_process()
        self._is_busy = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments."""
        return SampleWork, (self._folder, self._timeout, self._origin)

    @property
    def timeout(self) -> float | None:
        """Time limit of a trial in seconds."""
        return self._timeout

    def needs(self, item: WorkItem) -> Resources:
        """Make the needs of every trial."""
        return Resources()

    def prepare(self) -> Host:
        """Return this machine."""
        return Host(host_name())

    def with_data(self) -> SampleWork:
        """Return this work, because the trials read no data."""
        return self

    def __call__(self, item: WorkItem) -> Iterator[Outcome]:
        """Return an iterator over the outcomes of an item.

        Raises
        ------
        PeekbenchError
            If the method is 'broken'.
        ContractError
            If another item is not finished.
        """
        if not self._is_busy.acquire(blocking=False):
            raise ContractError("it called the work while it was still working on another item")
        if item.trials[0].method == "broken":
            self._is_busy.release()
            raise PeekbenchError(BROKEN)
        return self._do(item)

    def _do(self, item: WorkItem) -> Iterator[Outcome]:
        try:
            needs_base = not item.has_base
            for trial in item.trials:
                self._act(trial)
                with one_thread_pools():
                    yield self._make_result(trial, needs_base=needs_base)
                needs_base = False
        finally:
            self._is_busy.release()

    def _act(self, trial: Trial) -> None:
        """Do what the name of a method says."""
        marker = Path(self._folder) / str(trial.draw.subsample)
        match trial.method:
            case "hangs":
                time.sleep(LONG)
            case "dies":
                self._die()
            case "dies once" if not marker.exists():
                marker.touch()
                self._die()

    def _die(self) -> None:
        if self._origin == this_process():
            raise ContractError("a trial that ends its process ran in the calling process")
        os.kill(os.getpid(), signal.SIGKILL)

    def _make_result(self, trial: Trial, *, needs_base: bool) -> TrialResult:
        arms = tuple(self._make_arm(trial, arm) for arm in ("base", "extra", "test") if arm != "base" or needs_base)
        rows = np.arange(NUM_TEST)
        return TrialResult(trial, rows % NUM_CLASSES, rows, arms, host_name())

    def _make_arm(self, trial: Trial, arm: str) -> ArmResult:
        """Return predictions that depend on the draw and the arm, from a matrix product that rounds."""
        method = "" if arm == "base" else trial.method
        rng = np.random.default_rng([trial.draw.subsample, zlib.crc32(f"{method} {arm}".encode())])
        logits = rng.normal(size=(NUM_TEST, 300)) @ rng.normal(size=(300, NUM_CLASSES)) / 10
        predictions = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        is_here = platform.node() == self._origin[0]
        metrics = {"process": float(os.getpid()), "is here": float(is_here)}
        return ArmResult(
            arm, {"score": float(predictions[0, 0])}, 0.0, 0.0, metrics, Predicted(predictions.astype(np.float32))
        )


def make_items(methods: Sequence[str], *, per_item: int = 1) -> list[WorkItem]:
    """Return items whose trials have these methods, in this order, each item on a draw of its own.

    Parameters
    ----------
    methods
        'hangs' takes long, 'dies' kills its process, 'dies once' does so at the first
        try, and 'broken' raises an error that ends the run. Others are quick.
    per_item
        Number of trials in an item; the methods of the others get a number.
    """
    items = []
    for number, method in enumerate(methods):
        draw = Draw("sample", 10, NUM_TEST, number)
        names = [method, *(f"{method} {position}" for position in range(2, per_item + 1))]
        items.append(WorkItem(tuple(Trial(draw, name) for name in names), has_base=False))
    return items


@dataclass(frozen=True, slots=True)
class ExecutorRun:
    """What an executor yielded for a list of items."""

    items: Sequence[WorkItem]
    outcomes: Sequence[Outcome]

    @property
    def trials(self) -> list[Trial]:
        """Trials of the items."""
        return [trial for item in self.items for trial in item.trials]

    def results(self) -> dict[Trial, TrialResult]:
        """Return the results by trial, the first one of each as in a run."""
        return {outcome.trial: outcome for outcome in reversed(self.outcomes) if isinstance(outcome, TrialResult)}

    def failures(self) -> set[Trial]:
        """Return the trials that failed."""
        return {outcome.trial for outcome in self.outcomes if isinstance(outcome, TrialFailure)}


class ExecutorCase:
    """An executor with its options, and its runs, of which several checks look at the same ones."""

    def __init__(self, entry: ExecutorEntry, options: Options, folder: str) -> None:
        self.entry, self.options, self.folder = entry, options, folder
        self.memo = Memo()

    def batches(self, items: Iterable[WorkItem], timeout: float | None = None) -> Any:
        """Return the generator of the executor for items of the sample work."""
        return self.entry.execute(items, SampleWork(self.folder, timeout), options=self.options)

    def run(self, items: Sequence[WorkItem], timeout: float | None = None) -> ExecutorRun:
        """Do items as the core does."""
        outcomes: list[Outcome] = []
        queue = WorkQueue(items)
        with closing(self.batches(queue, timeout)) as batches:
            for batch in batches:
                for outcome in batch:
                    if isinstance(outcome, TrialResult | TrialFailure):
                        outcomes.append(outcome)
                        queue.record(outcome)
        return ExecutorRun(items, outcomes)

    @property
    def plain(self) -> ExecutorRun:
        """A run of quick trials, and of items with three trials."""
        items = [*make_items(["quick"] * NUM_PLAIN), *make_items(["a"] * (NUM_PLAIN + 2), per_item=3)[-2:]]
        return self.memo.share("plain", lambda: self.run(items))

    @property
    def faulty(self) -> ExecutorRun:
        """A run with trials that hang or end their process, and an item whose second trial does so once."""
        methods = ["quick"] * 12
        methods[3:3] = ["dies", "hangs", "dies once"]
        last = make_items(["quick"] * (len(methods) + 1), per_item=3)[-1]
        first, second, third = last.trials
        shared = replace(last, trials=(first, second._replace(method="dies once"), third))
        return self.memo.share("faulty", lambda: self.run([*make_items(methods), shared], TIME_LIMIT))

    @property
    def is_in_process(self) -> bool:
        """Whether work is done in this process."""
        return os.getpid() in _find_processes(self.plain.outcomes)


def _find_processes(outcomes: Iterable[Outcome]) -> set[int]:
    """Return the processes on this machine that computed results."""
    metrics = [outcome.arms[-1].metrics for outcome in outcomes if isinstance(outcome, TrialResult)]
    return {int(metric["process"]) for metric in metrics if metric["is here"]}


@contextmanager
def executor_to_check(use: str, options: Mapping[str, Any], _: None) -> Iterator[ExecutorCase]:
    """Make a case of an executor."""
    spec = make_component(ExecutorSpec, use, options)
    with TemporaryDirectory() as folder:
        yield ExecutorCase(spec.entry, spec.options, folder)


def check_complete(case: ExecutorCase) -> None:
    """Check that each trial has exactly one outcome, and those of an item are in order: the first has the base arm."""
    found = Counter(outcome.trial for outcome in case.plain.outcomes)
    if repeated := [trial for trial, number in found.items() if number > 1]:
        raise ContractError(
            f"{pluralize(len(repeated), 'trial')} got several outcomes, such as {repeated[0]}; yield an outcome once, "
            "also if its item is run again"
        )
    if missing := [trial for trial in case.plain.trials if trial not in found]:
        raise ContractError(
            f"{pluralize(len(missing), 'trial')} of {len(case.plain.trials)} got no outcome, such as that of "
            f"{missing[0]}; yield every outcome of `work(item)`. If the items end before the executor has yielded "
            "their outcomes, it is called again for the others"
        )
    position = {outcome.trial: number for number, outcome in enumerate(case.plain.outcomes)}
    for item in case.plain.items:
        numbers = [position[trial] for trial in item.trials]
        if numbers != sorted(numbers):
            raise ContractError(
                f"the outcomes of the trials of an item are in another order than its trials, such as "
                f"{item.trials[0]}; items may be done in any order, but not the trials of an item"
            )


def check_equal(case: ExecutorCase) -> None:
    """Check that all numbers are those of the work in this process, to the last bit."""
    found, work = case.plain.results(), SampleWork(case.folder)
    for item in make_items(["quick"] * NUM_PLAIN):
        for expected in work(item):
            trial = expected.trial
            if trial in found and _list_numbers(found[trial]) != _list_numbers(expected):
                raise ContractError(
                    f"the predictions of {trial} differ from those in this process; yield the outcomes of "
                    "`work(item)` unchanged"
                )


def _list_numbers(result: Any) -> list[object]:
    arrays = [result.test_labels, result.test_rows]
    for arm in result.arms:
        arrays += [array for array in (arm.predicted.numbers, arm.predicted.labels) if array is not None]
    return [*((array.dtype.str, array.tobytes()) for array in arrays), *((arm.arm, arm.scores) for arm in result.arms)]


def check_faulty_trials(case: ExecutorCase) -> str | None:
    """Check that trials that end their process or exceed the time limit fail, and cost no other trial.

    Executors may retry them. The base arm of an item comes exactly once, also if a worker dies within the item.
    """
    if case.is_in_process:
        return "skipped: the executor works in the calling process"
    results, failures = case.faulty.results(), case.faulty.failures()
    failed = {trial.method for trial in failures}
    if "dies" not in failed:
        raise ContractError("a trial that always kills its worker got no `TrialFailure`")
    if "hangs" not in failed:
        raise ContractError("a trial that took longer than `work.timeout` got no `TrialFailure`; end its process")
    if "quick" in failed or not results.keys() | failures >= set(case.faulty.trials):
        raise ContractError("trials failed or were lost because the worker of another trial was killed")
    for item in case.faulty.items:
        found = [results[trial] for trial in item.trials if trial in results]
        bases = sum(arm.arm == "base" for result in found for arm in result.arms)
        if found and bases != 1:
            raise ContractError(
                f"a worker was killed while it did an item of {len(item.trials)} trials, and the base arm that they "
                f"share came {bases} times instead of once. Do only the trials again that have no outcome, with "
                "`has_base` if an outcome with the base arm was yielded"
            )
    return None


def check_close(case: ExecutorCase) -> None:
    """Check that closing the generator ends all processes, also busy ones."""
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    outcomes: list[Outcome] = []
    methods = ["quick"] * 12 + (["quick"] if case.is_in_process else ["hangs"]) * 8
    batches = case.batches(make_items(methods))
    for batch in batches:
        outcomes += [event for event in batch if isinstance(event, TrialResult)]
        if len(outcomes) >= 6:
            break
    started = [process for process in psutil.Process().children(recursive=True) if process.pid not in before]
    workers = _find_processes(outcomes) - {os.getpid()}
    started += [psutil.Process(pid) for pid in workers if psutil.pid_exists(pid)]
    batches.close()
    _, alive = psutil.wait_procs(started, timeout=END_TIMEOUT)
    if left := [process.pid for process in alive if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]:
        raise ContractError(
            f"{pluralize(len(left), 'process', 'processes')} that it started still ran {END_TIMEOUT:.0f} s after its "
            "generator was closed; end all workers, even busy ones, in a `finally` block"
        )


def check_error(case: ExecutorCase) -> None:
    """Check that an error of the work ends the run with this error."""
    try:
        with closing(case.batches(make_items(["quick"] * 5 + ["broken"] + ["quick"] * 5))) as batches:
            for _ in batches:
                pass
    except PeekbenchError as error:
        if BROKEN not in str(error):
            raise ContractError(f"an error of the work became another one: {error}; raise it unchanged") from error
        return
    raise ContractError("an error of the work, after which the run must not go on, was swallowed; raise it")


EXECUTOR_CHECKS: Checks = {
    "every trial has an outcome, in order": check_complete,
    "same numbers as in this process": check_equal,
    "a worker that dies or hangs costs only its trial": check_faulty_trials,
    "closing ends all processes": check_close,
    "an error of the work ends the run": check_error,
}
