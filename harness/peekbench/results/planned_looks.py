"""Results of a run before it ends: planned looks, which can stop it, and estimates for those who watch it.

Watching a run is no look that its verdicts would have to account for: nothing is recorded, and the estimates are those
of a confidence sequence, which hold however often one looks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from peekbench.plugins.names import Code, is_refused
from peekbench.records.report import Analysis
from peekbench.records.runs import Looks, PlannedLook, Settled
from peekbench.records.trials import TrialFailure
from peekbench.results.analyze import Seen, run_analysis
from peekbench.results.missing_trials import drop_incomplete, only_complete
from peekbench.results.read import StoredPredictions, load_results, read_store
from peekbench.results.recorded_looks import count_trials, describe_looks
from peekbench.spec.design import first_maximum
from peekbench.spec.experiment import ExperimentSpec, make_spec
from peekbench.store.files import is_in_use
from peekbench.store.reader import Store

SETTLES: Mapping[str, Settled] = {
    "biased up": "biased",
    "biased down": "biased",
    "equivalent": "equivalent",
    "inert": "equivalent",
    "no signal": "equivalent",
}
"""Kind of verdict at which a run may stop, by decision. More subsamples hardly change the last two."""
MIN_TRIALS = 20  # of a session, before which the start of its workers makes up most of its time
MIN_SUBSAMPLES = 5
"""With fewer, a coarse score can have no spread by chance, and intervals are far too narrow."""


def take_planned_look(path: Path, spec: ExperimentSpec, number: int) -> PlannedLook:
    """Analyze the trials up to a planned look, and decide whether the run stops there.

    The look depends only on these trials and on earlier looks, so it does not depend on workers or interruptions.

    Parameters
    ----------
    path
        Store of the run.
    spec
        Its spec, whose design plans looks.
    number
        Number of the look, from 1.

    Returns
    -------
    PlannedLook
        Its decisions are those of the spec's first analysis that sees looks.

    Raises
    ------
    ResultsError
        If trials before this look are missing, and the spec does not allow that.
    """
    stop = spec.design.stop
    assert stop is not None
    stage = spec.at_look(number)
    with Store.open(path, verified=False) as store:
        recorded = store.looks()
    maximum = first_maximum(recorded, spec.design)
    fraction = spec.design.look_fractions()[number - 1] * spec.design.largest / maximum
    results = load_results(path)
    designs = {task.name: stage.design_of(task) for task in stage.tasks}
    draws = zip(results["task"], results["num_test"], results["subsample"], strict=True)
    is_before = [subsample < designs[task].repeats(num_test) for task, num_test, subsample in draws]
    results = results[is_before].reset_index(drop=True)
    results, warnings = only_complete(results, list(stage.trials()), allow_incomplete=spec.report.allow_incomplete)
    looks = describe_looks(spec.design, recorded, fraction, count_trials(results))
    deciding = next(analysis for analysis in spec.analyses if analysis.entry.sees_looks)
    analysis = run_analysis(deciding, results, warnings, Seen(looks, StoredPredictions(path)))
    decisions = {
        verdict.method: verdict.decision
        for verdict in analysis.verdicts
        if verdict.effect == "bias" and not verdict.control
    }
    stops = bool(decisions) and all(SETTLES.get(decision) in stop.at for decision in decisions.values())
    return PlannedLook(stage.design.largest, maximum, fraction, decisions, stops)


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
    first_failure: TrialFailure | None = None

    @property
    def is_complete(self) -> bool:
        """Whether no trial is missing."""
        return self.done >= self.planned

    @property
    def trials_per_hour(self) -> float | None:
        """Trials per hour of the last session while it is going on; None before its first trial."""
        if not (self.is_running and self.done_now and self.seconds):
            return None
        return 3600 * self.done_now / self.seconds

    @property
    def seconds_left(self) -> float | None:
        """Seconds that the missing trials take at this pace; None if it is not known yet."""
        if self.trials_per_hour is None or self.done_now < MIN_TRIALS:
            return None
        return 3600 * (self.planned - self.done) / self.trials_per_hour


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
        sessions = store.sessions()
    spec = make_spec(raw, folder=folder, origin=f"the spec in {path}", stored=True)
    number = spec.design.look_number(stopped_at)
    if number is not None and not is_running:
        spec = spec.at_look(number)
    planned = Counter((trial.method, trial.draw.num_train, trial.draw.num_test) for trial in spec.trials())
    done: Counter[tuple[str, int, int]] = Counter()
    for group in groups:
        if not group.is_failed:
            done[group.kind] += group.trials
    seconds = 0.0
    if sessions:
        seconds = (datetime.now(UTC) - datetime.fromisoformat(sessions[-1]["started"])).total_seconds()
    return RunState(
        name=spec.name,
        planned=sum(planned.values()),
        done=sum(min(number, planned[kind]) for kind, number in done.items()),
        failed=sum(group.trials for group in groups if group.is_failed and (group.is_last_session or not is_running)),
        is_running=is_running,
        seconds=max(0.0, seconds),
        done_now=sum(group.trials for group in groups if group.is_last_session),
        first_failure=failure,
    )


def estimate(path: Path, given: Collection[Code] = ()) -> Estimates:
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
    given
        Code that the caller gave, such as `ExperimentSpec.code`; analyses in other code are passed over.

    Raises
    ------
    SpecError
        If the analysis is not installed any more.
    """
    with Store.open(path, verified=False) as store:
        raw, folder, recorded = store.spec(), store.folder(), store.looks()
        handled = store.done() | {failure.trial for failure in store.failures()}
        results = read_store(store)
    spec = make_spec(raw, folder=folder, origin=f"the spec in {path}", stored=True, given=given)
    allowed = (analysis for analysis in spec.analyses if not is_refused(analysis.use))
    deciding = next((analysis for analysis in allowed if analysis.entry.sees_looks), None)
    missing = (trial.draw.subsample for trial in spec.trials() if trial not in handled)
    size = next(missing, spec.largest)  # trials come subsample by subsample
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
