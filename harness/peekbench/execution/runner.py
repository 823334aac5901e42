"""Runs the pending trials of a spec up to its planned looks. Stored trials are never computed again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peekbench.data.loading import forget, with_sizes
from peekbench.data.preflight import describe_tasks, warn_of_data
from peekbench.execution.determinism import one_thread_pools, preserve_global_generators
from peekbench.execution.driver import Driver
from peekbench.execution.hosts import host_name
from peekbench.execution.observers import Observers
from peekbench.execution.provenance import describe_code_of, describe_session, identify, relevant_versions
from peekbench.execution.resuming import StoredRun
from peekbench.execution.work import SpecWork
from peekbench.records.runs import PlannedLook, Settled
from peekbench.results.analyze import Seen, check_analyses, run_analysis
from peekbench.results.missing_trials import only_complete
from peekbench.results.read import StoredPredictions, load_results
from peekbench.results.recorded_looks import count_trials, describe_looks
from peekbench.spec.design import Design, first_maximum
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.differences import describe_version_changes
from peekbench.store.files import RUNS, in_use_error, is_in_use
from peekbench.store.reader import Store
from peekbench.store.writer import StoreWriter

SETTLES: Mapping[str, Settled] = {
    "biased up": "biased",
    "biased down": "biased",
    "equivalent": "equivalent",
    "inert": "equivalent",
    "no signal": "equivalent",
}
"""Kind of verdict at which a run may stop, by decision. More subsamples hardly change the last two."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Outcome of a run."""

    spec: ExperimentSpec
    """The spec, with the sizes and versions of the run."""
    store: Path
    planned: int
    """Trials of the spec."""
    resumed: int
    """Trials that the store already had."""
    finished: int
    """Trials finished in this run."""
    failed: int
    """Trials that failed in this run. The store has their tracebacks, and the next run tries them again."""
    stopped: Mapping[str, int] = field(default_factory=dict)
    """Number of trials that were not tried, by method, because the first ones of the method failed."""
    look: PlannedLook | None = None
    """The last planned look before the maximum; None if there is none."""
    notes: tuple[str, ...] = ()
    """Stored trials that the spec as it was given does not ask for: of more subsamples, or of other code."""

    @property
    def is_settled(self) -> bool:
        """Whether the run stopped at a planned look, because all verdicts were settled."""
        return self.look is not None and self.look.stops


def store_path(spec: ExperimentSpec) -> Path:
    """Return the default store of a spec, `runs/<name>.sqlite`."""
    return RUNS / f"{spec.name}.sqlite"


def run(
    spec: ExperimentSpec,
    *,
    store: str | Path | None = None,
    observers: Observers | None = None,
    keep_going: bool = False,
    allow_changed_code: bool = False,
    fresh: bool = False,
) -> RunSummary:
    """Run the trials of a spec that its store does not have yet.

    If the design plans looks, the run analyzes its results at each of them, and stops if all verdicts are settled.

    Parameters
    ----------
    spec, store, keep_going, allow_changed_code, fresh
        As for `peekbench.run`, which also describes the errors.
    observers
        Are told what happens in the run.

    Returns
    -------
    RunSummary
        The store, the numbers of trials, and the last planned look.
    """
    observers = observers or Observers()
    forget()
    path = Path(store or store_path(spec))
    if is_in_use(path):
        raise in_use_error(path)
    stored = StoredRun(path)
    if not fresh:
        stored = StoredRun.read(path)
    spec = stored.keep_looks(with_sizes(stored.pin(spec)))
    tasks = describe_tasks(spec)
    stored.refuse_changes(spec, tasks)
    trials = list(spec.trials())
    code = describe_code_of(spec)
    notes = [
        f"the code of the plugin {plugin} differs from the code that made trials in {path}, which are not computed "
        "again. To measure the present code alone, give the run another name in the spec, or repeat the command with "
        "--fresh (in Python, fresh=True)"
        for plugin in stored.changed_code(spec, trials, code, is_allowed=allow_changed_code)
    ]
    for note in notes:
        observers.warn(note)
    # All that can fail before the first trial comes before the store is opened, which makes or changes it.
    facts: dict[str, dict[str, Any]] | None = None
    if stored.pending(spec, trials):
        check_analyses(spec)
        facts = stored.prefetch_methods(spec, observers.note)
    with (
        StoreWriter.for_run(path, spec, tasks, fresh=fresh) as opened,
        preserve_global_generators(),
        one_thread_pools(),
    ):
        done = opened.done()
        remaining = [trial for trial in trials if trial not in done]
        num_done = len(trials) - len(remaining)
        observers.start(spec, opened, len(trials), num_done)
        driver = Driver(spec, opened, observers, keep_going=keep_going)
        work: SpecWork | None = None
        look: PlannedLook | None = None
        for number in _remaining_looks(spec.design, opened):
            planned = spec
            if number < spec.design.num_looks:
                planned = spec.at_look(number)
            pending = [trial for trial in planned.trials() if trial not in done]
            if pending:
                if work is None:
                    facts = facts or stored.prefetch_methods(spec, observers.note)
                    session = {**describe_session(spec.folder), "code": code, "versions": relevant_versions(code)}
                    opened.add_session({**session, "methods": facts}, host_name())
                    if changes := describe_version_changes([*stored.sessions_with_trials(), session]):
                        observers.warn(f"this session has other versions than the stored trials: {changes}")
                    for warning in warn_of_data(spec, tasks):
                        observers.warn(warning)
                    work = SpecWork(spec, identify(spec, tasks, facts))
                driver.do(pending, work)
                done.update(pending)
            if number == spec.design.num_looks:
                break
            if driver.failed and not spec.report.allow_incomplete:
                continue
            look = _look(opened, spec, number, is_unchanged=not pending)
            if look.stops:
                break
    stopped = {method: number for method, number in driver.stopped.items() if number}
    return RunSummary(
        spec, path, len(trials), num_done, driver.finished, driver.failed, stopped, look, tuple(notes),
    )  # fmt: skip


def _remaining_looks(design: Design, store: Store) -> range:
    """Return the numbers of the planned looks from the last one that a stored run has reached."""
    reached = [look.subsamples for look in store.planned_looks()]
    sizes = design.split_by_looks(design.largest)
    first = max((number for number, size in enumerate(sizes, start=1) if size <= max(reached, default=0)), default=1)
    return range(first, len(sizes) + 1)


def _look(store: StoreWriter, spec: ExperimentSpec, number: int, *, is_unchanged: bool) -> PlannedLook:
    """Take and store a planned look, unless the store has it already and no trial was added."""
    size = spec.design.split_by_looks(spec.design.largest)[number - 1]
    stored = [look for look in store.planned_looks() if look.subsamples == size]
    if stored and is_unchanged:
        return stored[-1]
    look = take_planned_look(store.path, spec, number)
    store.add_look(look)
    return look


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
    seen = Seen(looks, StoredPredictions(path))
    decisions = {
        verdict.method: verdict.decision
        for analysis in [analysis for analysis in spec.analyses if analysis.entry.sees_looks][:1]
        for verdict in run_analysis(analysis, results, warnings, seen).verdicts
        if verdict.effect == "bias" and not verdict.control
    }
    stops = bool(decisions) and all(SETTLES.get(decision) in stop.at for decision in decisions.values())
    return PlannedLook(stage.design.largest, maximum, fraction, decisions, stops)
