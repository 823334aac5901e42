"""Contract checks for executors."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from tempfile import TemporaryDirectory
from traceback import format_exception
from typing import Any

import psutil

from peekbench.errors import ContractError, PeekbenchError
from peekbench.execution.driver import WorkQueue
from peekbench.execution.hosts import host_name
from peekbench.formatting import pluralize
from peekbench.plugins.entries import ExecutorEntry
from peekbench.plugins.exceptions import describe_exception
from peekbench.plugins.protocols import Options
from peekbench.plugins.work_protocols import Event, Outcome
from peekbench.records.hosts import Capacity, Host
from peekbench.records.trials import Trial, TrialFailure, TrialResult, WorkItem
from peekbench.spec.components import ExecutorSpec, make_component
from peekbench.spec.experiment import DEFAULT_EXECUTOR
from peekbench.testing.outcomes import CheckOutcome, not_run
from peekbench.testing.sample_work import BROKEN, Origin, SampleWork, make_items
from peekbench.testing.watch import TimeLimitError, watched

TIME_LIMIT = 1.0  # seconds of a trial of the checks
MAX_DELAY = 5.0  # seconds that a trial may take longer than its time limit
END_TIMEOUT = 10.0  # seconds in which workers end after the executor has been closed
NUM_PLAIN = 40  # trials of the ordinary run; the first ten decide whether the others are handed out


class _NotApplicableError(Exception):
    """A check that an executor of this kind does not need."""


@dataclass(slots=True)
class _Run:
    """What an executor yielded for a list of items."""

    items: Sequence[WorkItem]
    outcomes: list[Outcome] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    """Times of the outcomes, in seconds after the start."""
    hosts: set[str] = field(default_factory=set)
    """Names of machines that were yielded."""
    unprepared: set[str] = field(default_factory=set)
    """Names of machines of which outcomes were yielded before the machine."""
    num_empty: int = 0
    others: list[object] = field(default_factory=list)
    """What is no outcome, machine or capacity."""

    def receive(self, batch: Sequence[Event], seconds: float) -> list[Outcome]:
        """Note a batch, and return its outcomes."""
        self.num_empty += not batch
        outcomes = []
        for event in batch:
            if isinstance(event, Host):
                self.hosts.add(event.name)
            elif isinstance(event, TrialResult | TrialFailure):
                if event.host not in ("", host_name(), *self.hosts):
                    self.unprepared.add(event.host)
                outcomes.append(event)
                self.times.append(seconds)
            elif not isinstance(event, Capacity):
                self.others.append(event)
        self.outcomes += outcomes
        return outcomes

    @property
    def trials(self) -> list[Trial]:
        """Trials of the items."""
        return [trial for item in self.items for trial in item.trials]

    def results(self) -> dict[Trial, TrialResult]:
        """Return the results by trial, the first one of each as in a run."""
        return {outcome.trial: outcome for outcome in reversed(self.outcomes) if isinstance(outcome, TrialResult)}

    def failures(self) -> dict[Trial, TrialFailure]:
        """Return the failures by trial."""
        return {outcome.trial: outcome for outcome in self.outcomes if isinstance(outcome, TrialFailure)}


class ExecutorCase:
    """An executor with its options, and its runs, of which several checks look at the same ones.

    Parameters
    ----------
    entry
        The executor.
    options
        Its options.
    folder
        Folder for files of the trials.
    """

    def __init__(self, entry: ExecutorEntry, options: Options, folder: str) -> None:
        self.entry = entry
        self.options = options
        self.folder = folder

    def batches(self, items: Iterable[WorkItem], timeout: float | None = None) -> Any:
        """Return the generator of the executor for items of the sample work."""
        return self.entry.execute(items, SampleWork(self.folder, timeout), options=self.options)

    def run(self, items: Sequence[WorkItem], timeout: float | None = None) -> _Run:
        """Do items as the core does: methods go on if their first trials succeed."""
        done = _Run(items)
        queue = WorkQueue(items)
        start = time.monotonic()
        num_left = -1
        while len(queue) not in (0, num_left):
            num_left = len(queue)
            with closing(self.batches(queue, timeout)) as batches:
                for batch in batches:
                    for outcome in done.receive(batch, time.monotonic() - start):
                        queue.record(outcome)
        return done

    @cached_property
    def plain(self) -> _Run:
        """Quick trials, one slow trial, and items with three trials."""
        methods = ["quick"] * NUM_PLAIN + ["slow"]
        return self.run([*make_items(methods), *make_items(["a"] * (NUM_PLAIN + 3), per_item=3)[-2:]])

    @cached_property
    def faulty(self) -> _Run:
        """Trials that hang or end their process, among quick ones, and an item whose second trial does so once."""
        if self.is_in_process:
            raise _NotApplicableError("the executor works in the calling process, which such a trial would end")
        methods = ["quick"] * 12
        methods[3:3] = ["dies", "hangs", "dies once"]
        last = make_items(["quick"] * (len(methods) + 1), per_item=3)[-1]
        first, second, third = last.trials
        shared = replace(last, trials=(first, second._replace(method="dies once"), third))
        return self.run([*make_items(methods), shared], TIME_LIMIT)

    @property
    def is_in_process(self) -> bool:
        """Whether work is done in this process."""
        own = Origin.here().process
        return any(process == own for process in _processes(self.plain.outcomes))


def _processes(outcomes: Iterable[Outcome]) -> Iterator[int]:
    """Return the processes on this machine that computed results."""
    for outcome in outcomes:
        if isinstance(outcome, TrialResult) and outcome.arms[-1].metrics["is here"]:
            yield int(outcome.arms[-1].metrics["process"])


def check_executor(use: str, options: Mapping[str, Any] | None = None) -> list[CheckOutcome]:
    """Do all contract checks of an executor. It takes about ten seconds.

    Parameters
    ----------
    use
        Name of the executor in specs.
    options
        Options as in a spec.

    Returns
    -------
    list of CheckOutcome
        Outcomes in the order of `EXECUTOR_CHECKS`. A check that an executor of this kind does not need has passed, with
        a message that says why it was skipped.

    Raises
    ------
    PluginError, SpecError
        If there is no such executor, or the options are invalid.

    Examples
    --------
    >>> list(EXECUTOR_CHECKS)[0]
    'every trial has an outcome'
    >>> outcomes = check_executor("local", {"in_process": True})
    >>> all(outcome.passed for outcome in outcomes)
    True
    >>> sum("the calling process" in outcome.message for outcome in outcomes)  # skipped: they need worker processes
    4
    """
    spec = make_component(ExecutorSpec, use, options)
    return check_entry(spec.entry, spec.options)


def check_entry(entry: ExecutorEntry, options: Options) -> list[CheckOutcome]:
    """Do all contract checks of an executor's entry; see `check_executor`."""
    with TemporaryDirectory() as folder:
        case = ExecutorCase(entry, options, folder)
        first, *others = EXECUTOR_CHECKS
        try:
            with watched(first, 1, len(EXECUTOR_CHECKS)):
                case.plain  # noqa: B018 - the run that most checks look at
        except (Exception, TimeLimitError) as error:
            failed = CheckOutcome(first, False, f"it raised {describe_exception(error)}", traceback=_format(error))
            return [failed, *(not_run(name, first) for name in others)]
        return [
            _outcome(name, check, case, position) for position, (name, check) in enumerate(EXECUTOR_CHECKS.items(), 1)
        ]


def _format(error: BaseException) -> str:
    return "".join(format_exception(error))


def _outcome(name: str, check: Callable[[ExecutorCase], None], case: ExecutorCase, position: int) -> CheckOutcome:
    try:
        with watched(name, position, len(EXECUTOR_CHECKS)):
            check(case)
    except _NotApplicableError as reason:
        return CheckOutcome(name, True, f"skipped: {reason}")
    except ContractError as error:
        return CheckOutcome(name, False, str(error), traceback=_format(error))
    except (Exception, TimeLimitError) as error:  # an error of the plugin is a failed check, and the other checks go on
        return CheckOutcome(name, False, f"it raised {describe_exception(error)}", traceback=_format(error))
    return CheckOutcome(name, True)


def check_complete(case: ExecutorCase) -> None:
    """Check that each trial has an outcome."""
    found = {outcome.trial for outcome in case.plain.outcomes}
    if missing := [trial for trial in case.plain.trials if trial not in found]:
        raise ContractError(
            f"{pluralize(len(missing), 'trial')} of {len(case.plain.trials)} got no outcome, such as that of "
            f"{missing[0]}; yield every outcome of `work(item)`. If the items end before the executor has yielded "
            "their outcomes, it is called again for the others"
        )


def check_single(case: ExecutorCase) -> None:
    """Check that no trial has two outcomes, and that nothing else is yielded."""
    if case.plain.others:
        raise ContractError(f"it yielded {case.plain.others[0]!r} in a batch; yield outcomes, `Host` and `Capacity`")
    counts = Counter(outcome.trial for outcome in case.plain.outcomes)
    if repeated := [trial for trial, number in counts.items() if number > 1]:
        raise ContractError(f"{pluralize(len(repeated), 'trial')} got several outcomes, such as {repeated[0]}")
    if unknown := [trial for trial in counts if trial not in set(case.plain.trials)]:
        raise ContractError(f"it yielded an outcome of a trial that it was not given: {unknown[0]}")


def check_order(case: ExecutorCase) -> None:
    """Check that the outcomes of an item are in the order of its trials, of which the first has the base arm."""
    position = {outcome.trial: number for number, outcome in enumerate(case.plain.outcomes)}
    for item in case.plain.items:
        numbers = [position[trial] for trial in item.trials if trial in position]
        if numbers != sorted(numbers):
            raise ContractError(
                f"the outcomes of the trials of an item are in another order than its trials, such as "
                f"{item.trials[0]}; items may be done in any order, but not the trials of an item"
            )


def check_equal(case: ExecutorCase) -> None:
    """Check that all numbers are those of the default executor, to the last bit."""
    found = case.plain.results()
    for trial, numbers in _expected_numbers().items():
        if trial in found and _numbers(found[trial]) != numbers:
            raise ContractError(
                f"the predictions of {trial} differ from those with `executor: {DEFAULT_EXECUTOR}`; yield the "
                "outcomes of `work(item)` unchanged"
            )


@cache
def _expected_numbers() -> dict[Trial, list[object]]:
    """Return the numbers of the quick trials with the default executor."""
    default = make_component(ExecutorSpec, DEFAULT_EXECUTOR)
    with TemporaryDirectory() as folder:
        done = ExecutorCase(default.entry, default.options, folder).run(make_items(["quick"] * NUM_PLAIN))
    return {trial: _numbers(result) for trial, result in done.results().items()}


def _numbers(result: TrialResult) -> list[object]:
    arrays = (result.test_labels, result.test_rows, *(arm.predictions for arm in result.arms))
    return [*((array.dtype.str, array.tobytes()) for array in arrays), *((arm.arm, arm.scores) for arm in result.arms)]


def check_hosts(case: ExecutorCase) -> None:
    """Check that machines are prepared, and yielded before their outcomes."""
    if case.plain.unprepared:
        raise ContractError(
            f"it yielded outcomes of the machine {min(case.plain.unprepared)} without its `Host`; call "
            "`work.prepare()` on each machine, and yield its return value before the first outcome of this machine"
        )


def check_empty_batches(case: ExecutorCase) -> None:
    """Check that an empty batch about once a second tells that a slow trial is running."""
    if case.is_in_process:
        raise _NotApplicableError("the executor works in the calling process, and cannot yield while a trial runs")
    if not case.plain.num_empty:
        raise ContractError("no empty batch came while a slow trial was running; yield `[]` about once a second")


def check_dying_worker(case: ExecutorCase) -> None:
    """Check that a worker that dies costs only the trials that end their process; executors may retry these."""
    done, failures = case.faulty.results(), case.faulty.failures()
    failed = {trial.method for trial in failures}
    if "dies" not in failed:
        raise ContractError("a trial that always kills its worker got no `TrialFailure`")
    if "quick" in failed or not done.keys() | failures.keys() >= set(case.faulty.trials):
        raise ContractError("trials failed or were lost because the worker of another trial was killed")


def check_base_arms(case: ExecutorCase) -> None:
    """Check that the base arm of an item comes exactly once, also if a worker dies within the item."""
    results = case.faulty.results()
    for item in case.faulty.items:
        found = [results[trial] for trial in item.trials if trial in results]
        bases = sum(arm.arm == "base" for result in found for arm in result.arms)
        if found and bases != 1:
            raise ContractError(
                f"a worker was killed while it did an item of {len(item.trials)} trials, and the base arm that they "
                f"share came {bases} times instead of once. Do only the trials again that have no outcome, with "
                "`has_base` if an outcome with the base arm was yielded"
            )


def check_time_limit(case: ExecutorCase) -> None:
    """Check that a trial is ended after `work.timeout`."""
    failures = [trial for trial in case.faulty.failures() if trial.method == "hangs"]
    if not failures:
        raise ContractError("a trial that took longer than `work.timeout` got no `TrialFailure`; end its process")
    number = [outcome.trial for outcome in case.faulty.outcomes].index(failures[0])
    before = max((seconds for seconds in case.faulty.times[:number]), default=0.0)
    if case.faulty.times[number] - before > TIME_LIMIT + MAX_DELAY:
        raise ContractError(
            f"a trial was ended {case.faulty.times[number] - before:.1f} s after the outcome before it; its time limit "
            f"was {TIME_LIMIT:g} s"
        )


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
    own = Origin.here().process
    started += [psutil.Process(pid) for pid in set(_processes(outcomes)) if pid != own and psutil.pid_exists(pid)]
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


EXECUTOR_CHECKS: dict[str, Callable[[ExecutorCase], None]] = {
    "every trial has an outcome": check_complete,
    "no trial has two outcomes": check_single,
    "the trials of an item are in order": check_order,
    "same numbers as with the default executor": check_equal,
    "machines are prepared": check_hosts,
    "empty batches while a trial runs": check_empty_batches,
    "a worker that dies costs only its trial": check_dying_worker,
    "the base arm of an item comes once": check_base_arms,
    "time limit": check_time_limit,
    "closing ends all processes": check_close,
    "an error of the work ends the run": check_error,
}
"""Checks of an executor by name.

Examples
--------
>>> next(iter(EXECUTOR_CHECKS))
'every trial has an outcome'
"""
