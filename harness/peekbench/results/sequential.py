"""Runs a spec whose design plans looks: analyzes the results at each of them, and stops if all verdicts are settled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from peekbench.execution.observers import Progress
from peekbench.execution.planning import make_trials
from peekbench.execution.runner import RunSummary
from peekbench.execution.runner import run as run_trials
from peekbench.records.runs import PlannedLook, Settled
from peekbench.results.analyze import Seen, only_complete, run_analysis
from peekbench.results.looks import count_trials, describe_looks, first_maximum
from peekbench.results.read import load_results
from peekbench.results.texts import StoredPredictions
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.writer import Store

SETTLES: Mapping[str, Settled] = {
    "biased up": "biased",
    "biased down": "biased",
    "equivalent": "equivalent",
    "inert": "equivalent",
    "no signal": "equivalent",
}
"""Kind of verdict at which a run may stop, by decision. More subsamples cannot change the last two."""


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
    results, warnings = only_complete(results, list(make_trials(stage)), allow_incomplete=spec.report.allow_incomplete)
    looks = describe_looks(spec.design, recorded, fraction, count_trials(results))
    deciding = next(each for each in spec.analyses if each.entry.sees_looks)
    analysis = run_analysis(deciding, results, warnings, Seen(looks, StoredPredictions(path)))
    decisions = {
        verdict.method: verdict.decision
        for verdict in analysis.verdicts
        if verdict.effect == "bias" and not verdict.control
    }
    stops = bool(decisions) and all(SETTLES.get(decision) in stop.at for decision in decisions.values())
    return PlannedLook(stage.design.largest, maximum, fraction, decisions, stops)


def run(
    spec: ExperimentSpec,
    *,
    store: str | Path | None = None,
    progress: Progress | None = None,
    keep_going: bool = False,
    allow_changed_code: bool = False,
) -> RunSummary:
    r"""Run the trials of a spec that its store does not have yet.

    If the design plans looks, the run analyzes its results at each of them, and stops if all verdicts are settled.

    Parameters
    ----------
    spec
        The spec, for example from `peekbench.load_spec`.
    store
        The SQLite file; `runs/<name>.sqlite` by default.
    progress
        Receives the progress of the run.
    keep_going
        Try all trials of a method, even if its first ten fail in the same way.
    allow_changed_code
        Resume the run although the code of a method's plugin has changed since its trials were stored. The report then
        separates old and new trials.

    Returns
    -------
    RunSummary
        The store, the numbers of trials, and the last planned look.

    Raises
    ------
    DataError
        Before any trial, if data are unavailable or too small. Also if data change during the run.
    PluginError
        Before any trial, if a method does not support a task.
    StoreError
        Before any trial, if the store belongs to another experiment, or if the code of a method's plugin has changed.
        Also if the store cannot be written later.
    KeyboardInterrupt
        On Ctrl-C. Finished trials are stored.

    Examples
    --------
    >>> from peekbench import load_spec
    >>> summary = run(load_spec("specs/quickstart.yaml"))
    >>> summary.failed
    0
    """
    return run_trials(
        spec,
        store=store,
        progress=progress,
        keep_going=keep_going,
        allow_changed_code=allow_changed_code,
        take_look=take_planned_look,
    )
