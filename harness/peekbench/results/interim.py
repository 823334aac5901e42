"""What a run that is going on has so far: counts, pace and estimates, read from its store without disturbing it.

Nothing is recorded. The estimates are those of a confidence sequence, which hold however often one looks, so watching a
run is not a look that its verdicts would have to account for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from peekbench.execution.planning import make_trials
from peekbench.plugins.local_code import is_refused
from peekbench.records.report import Analysis
from peekbench.records.runs import Looks
from peekbench.records.trials import Trial, TrialFailure
from peekbench.results.analyze import Seen, drop_incomplete, run_analysis
from peekbench.results.looks import first_maximum
from peekbench.results.read import read_store
from peekbench.results.texts import StoredPredictions
from peekbench.spec.experiment import ExperimentSpec, make_spec
from peekbench.store.files import is_in_use
from peekbench.store.writer import Store

MIN_TRIALS = 20  # of a session, before which the start of its workers makes up most of its time
MIN_SUBSAMPLES = 5
"""With fewer, a coarse score can have no spread by chance, and intervals are far too narrow."""


@dataclass(frozen=True, slots=True)
class RunState:
    """What a run has so far.

    Examples
    --------
    >>> RunState("tickets", planned=40, done=10, failed=0, is_running=True, seconds=30.0, done_now=10).trials_per_hour
    1200.0
    """

    name: str
    planned: int
    """Trials up to the look at which the run stopped, if it did."""
    done: int
    failed: int
    is_running: bool
    seconds: float = 0.0
    """Since the start of the last session."""
    done_now: int = 0
    """Trials that the last session finished or that failed in it."""
    seconds_left: float | None = None
    """Predicted from the times of the trials so far; None if it is unknown."""
    workers: int | None = None
    """Workers of the executor; None if it has no such option."""
    machines: Mapping[str, int] = field(default_factory=dict)
    """Trials of the last session by machine."""
    first_failure: TrialFailure | None = None

    @property
    def is_complete(self) -> bool:
        """Whether no trial is missing."""
        return self.done >= self.planned

    @property
    def trials_per_hour(self) -> float | None:
        """Trials per hour of the last session while it is going on; None before its first trial."""
        return 3600 * self.done_now / self.seconds if self.is_running and self.done_now and self.seconds else None


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates from the subsamples that all tasks and methods have, valid at every look at once."""

    analysis: Analysis | None
    """None before there are intervals, or if no analysis of the spec accounts for looks."""
    subsamples: int
    """Subsamples per task that the estimates are from, at the test size with the most."""
    maximum: int
    """Subsamples that the design plans, at the same test size."""


def read_state(path: Path) -> RunState:
    """Return what a run has so far.

    Parameters
    ----------
    path
        Store of the run. It is read in one short transaction and is not verified.

    Raises
    ------
    StoreError
        If there is no such store, or it is damaged.
    """
    is_running = is_in_use(path)
    with Store.open(path, verified=False) as store:
        raw, folder, stopped_at = store.spec(), store.folder(), store.stopped_at()
        groups, failure = store.progress(), store.first_failure()
        sessions, hosts = store.sessions(), store.hosts()
    spec = make_spec(raw, folder=folder, origin=f"the spec in {path}", stored=True)
    number = None if stopped_at is None or is_running else spec.design.look_number(stopped_at)
    planned = Counter(_kind(trial) for trial in make_trials(spec if number is None else spec.at_look(number)))
    done: Counter[tuple[str, int, int]] = Counter()
    failed_before = failed_now = done_now = 0
    for group in groups:
        if not group.is_failed:
            done[group.kind] += group.trials
        elif group.is_last_session:
            failed_now += group.trials
        else:
            failed_before += group.trials
        done_now += group.trials * group.is_last_session
    started = datetime.fromisoformat(sessions[-1]["started"]) if sessions else datetime.now(UTC)
    seconds = max(0.0, (datetime.now(UTC) - started).total_seconds())
    left = {kind: number - done[kind] for kind, number in planned.items() if number > done[kind]}
    times = {group.kind: group.seconds / group.trials for group in groups if not group.is_failed and group.seconds}
    busy = sum(group.trials * times.get(group.kind, 0.0) for group in groups if group.is_last_session)
    is_known = is_running and done_now >= MIN_TRIALS and busy > 0 and all(kind in times for kind in left)
    options = raw["executor"].get("options") or {}
    return RunState(
        name=spec.name,
        planned=sum(planned.values()),
        done=sum(min(number, planned[kind]) for kind, number in done.items()),
        failed=failed_now if is_running else failed_now + failed_before,
        is_running=is_running,
        seconds=seconds,
        done_now=done_now,
        seconds_left=seconds * sum(left[kind] * times[kind] for kind in left) / busy if is_known else None,
        workers=options.get("workers"),
        machines={host["name"]: host["trials"] for host in hosts if host["session"] == len(sessions) - 1},
        first_failure=failure,
    )


def estimate(path: Path) -> Estimates:
    """Return estimates from the trials so far.

    They are from the first subsamples that every method has on every task, because an average over other trials would
    be of a mixture of tasks that changes with every look. The first analysis of the spec that accounts for looks makes
    them, for a confidence sequence whose target is the number of subsamples that the design planned first
    (`peekbench.records.Looks`). At test sizes with fewer subsamples, the share of the target is that of the size with
    the fewest, which widens the other intervals.

    Parameters
    ----------
    path
        Store of the run. It is read in one short transaction and is not verified.

    Raises
    ------
    SpecError
        If the analysis is not installed any more.
    """
    with Store.open(path, verified=False) as store:
        raw, folder, recorded = store.spec(), store.folder(), store.looks()
        failed = {failure.trial for failure in store.failures()}
        done = store.done()
        results = read_store(store)
    spec = make_spec(raw, folder=folder, origin=f"the spec in {path}", stored=True)
    deciding = next((each for each in spec.analyses if not is_refused(each.use) and each.entry.sees_looks), None)
    size = _common_subsamples(spec, done | failed)
    estimates = Estimates(None, size, spec.largest)
    results = results[results["subsample"] < size].reset_index(drop=True)
    if deciding is None or size < MIN_SUBSAMPLES or results.empty:
        return estimates
    designs = [spec.design_of(task) for task in spec.tasks]
    fewest = min(min(size, design.repeats(num_test)) for design in designs for _, num_test in design.points())
    looks = Looks(True, "confidence_sequence", (fewest / first_maximum(recorded, spec.design),), spec.design.largest)
    complete = drop_incomplete(results)
    if complete.empty:
        return estimates
    analysis = run_analysis(deciding, complete, (), Seen(looks, StoredPredictions(path)))
    return Estimates(analysis, size, spec.largest)


def _common_subsamples(spec: ExperimentSpec, handled: set[Trial]) -> int:
    """Return the number of first subsamples of which no trial is missing; trials come subsample by subsample."""
    missing = (trial.draw.subsample for trial in make_trials(spec) if trial not in handled)
    return next(missing, spec.largest)


def _kind(trial: Trial) -> tuple[str, int, int]:
    return trial.method, trial.draw.num_train, trial.draw.num_test
