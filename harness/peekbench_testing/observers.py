"""Contract checks of observers, which must take the events of every run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from math import inf, nan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from peekbench.errors import ContractError
from peekbench.records.data import Folders
from peekbench.records.report import Analysis, Column, Table
from peekbench.records.runs import ArmScores, RunFinished, RunStarted, TrialFinished
from peekbench.records.trials import Draw, Trial
from peekbench.records.verdicts import Estimate, Verdict
from peekbench.spec.components import ObserverSpec, make_component
from peekbench_testing.runner import Checks

STORE_ID = "0123456789abcdef0123456789abcdef"
NUM_TRIALS = 6
METHODS = ("lsa", "größe: 50% [a/b]")  # the second has characters that trackers may not allow in names


@dataclass(frozen=True, slots=True)
class ObserverCase:
    """An observer with a folder in which it is checked."""

    use: str
    """Name of the observer in specs."""
    spec: ObserverSpec
    """Component that names it, with its options."""
    folder: Path
    """Folder of the spec, of the run and of its report, which is the current folder during checks."""

    def observe(self) -> object:
        """Return an observer."""
        folders = Folders(spec=self.folder, cache=self.folder / "cache")
        return self.spec.entry.observe(options=self.spec.options, folders=folders)

    def send(self, events: list[tuple[str, Any]]) -> None:
        """Send events to a new observer."""
        observer = self.observe()
        for event, argument in events:
            if method := getattr(observer, event, None):
                try:
                    method(argument)
                except Exception as error:
                    raise ContractError(f"{event} raised {type(error).__name__}: {error}; take {argument!r}") from error


def sample_events(folder: Path, *, stored: int = 0, status: str = "finished") -> list[tuple[str, Any]]:
    """Return the events of a small run, each with the name of the observer's method that takes it.

    Parameters
    ----------
    folder
        Folder of the run. The report's files are written into it.
    stored
        Number of trials that were stored before the run was resumed.
    status
        How the run ends. An interrupted run has half of the trials, and no report.

    Returns
    -------
    list of tuple
        Name of a method, and its argument.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     events = sample_events(Path(folder), status="interrupted")
    >>> [name for name, _ in events]
    ['run_started', 'trial_finished', 'trial_finished', 'trial_finished', 'run_finished']
    """
    is_interrupted = status == "interrupted"
    tasks = [{"use": "files", "name": "some words", "options": {"path": "words.csv"}}]
    methods = [{"use": "classic.lsa", "name": name, "options": {"num_components": 10}} for name in METHODS]
    design = {"num_train": [50], "num_test": [200], "num_subsamples": 3, "stop": None}
    spec = {"name": "sample", "seed": 1, "tasks": tasks, "methods": methods, "design": design, "arms": ["base"]}
    store = folder / "runs" / "sample.sqlite"
    last = NUM_TRIALS // 2 if is_interrupted else NUM_TRIALS
    events: list[tuple[str, Any]] = [("run_started", RunStarted(STORE_ID, "sample", spec, store, NUM_TRIALS, stored))]
    events += [("trial_finished", _trial(number)) for number in range(stored + 1, last + 1)]
    finished = RunFinished("finished", NUM_TRIALS, stored, last - stored, 0)
    if is_interrupted:
        return [*events, ("run_finished", replace(finished, status="interrupted"))]
    report = folder / "reports" / "sample"
    report.mkdir(parents=True, exist_ok=True)
    (report / "report.html").write_text("<p>a report</p>", encoding="utf-8")
    (report / "report.json").write_text("{}", encoding="utf-8")
    return [*events, ("analysis_finished", _analysis()), ("run_finished", replace(finished, report=report))]


def _trial(number: int) -> TrialFinished:
    trial = Trial(Draw("some words", 50, 200, number), METHODS[number % 2])
    if number == 2:
        return TrialFinished(trial, number, NUM_TRIALS, {}, "ValueError: no texts")
    scores = {"score": 0.5 + number / 100, "num_correct": 100 + 2 * number, "macro_f1": None}
    arms = ("base", "extra", "test") if number % 2 else ("extra", "test")
    metrics = {"loss": nan, "final loss (nats)": inf}
    return TrialFinished(trial, number, NUM_TRIALS, {arm: ArmScores(scores, metrics, 0.1, 0.01) for arm in arms})


def _analysis() -> Analysis:
    names = ("method", "num_train", "bias", "controls")
    rows = (("lsa", 50, Estimate(0.01, -0.002, 0.022), None), (METHODS[1], 50, Estimate(), True))
    columns = tuple(Column(name, "difference" if name.startswith("bias") else "text") for name in names)
    verdicts = (
        Verdict("lsa", "bias", "inconclusive", Estimate(0.01, -0.002, 0.022), region=0.01),
        Verdict(METHODS[1], "bias", "passed", control="negative"),
    )
    return Analysis("summary", (Table("Mean bias", columns, rows),), verdicts=verdicts, warnings=("Few trials.",))


@contextmanager
def observer_to_check(use: str, options: Mapping[str, Any], _: None) -> Iterator[ObserverCase]:
    """Make a case of an observer in a temporary folder, which is the current one."""
    spec = make_component(ObserverSpec, use, options)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder, chdir(folder):
        yield ObserverCase(use, spec, Path(folder).resolve())


def check_methods(case: ObserverCase) -> None:
    """Check that an observer has methods for events, and none with a misspelled name."""
    case.observe()


def check_runs(case: ObserverCase) -> None:
    """Check that an observer takes runs: finished, interrupted, resumed, without a new trial, and failed at once."""
    events = sample_events(case.folder)
    start, spec = events[0], deepcopy(events[0][1].spec)
    case.send(events)
    if start[1].spec != spec:
        raise ContractError("run_started changes the spec; work on a copy")
    case.send(sample_events(case.folder, status="interrupted"))
    case.send(sample_events(case.folder, stored=NUM_TRIALS // 2))
    case.send(sample_events(case.folder, stored=NUM_TRIALS))
    case.send(
        [start, ("run_finished", RunFinished("failed", NUM_TRIALS, 0, 0, 0, error="StoreError: the disk is full"))]
    )


OBSERVER_CHECKS: Checks = {
    "returns an object with methods for events": check_methods,
    "takes runs that finish, are resumed, or fail": check_runs,
}
