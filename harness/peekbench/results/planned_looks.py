"""Planned looks at the results of a run, which can stop it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from peekbench.records.runs import PlannedLook, Settled
from peekbench.results.analyze import Seen, run_analysis
from peekbench.results.missing_trials import only_complete
from peekbench.results.read import StoredPredictions, load_results
from peekbench.results.recorded_looks import count_trials, describe_looks
from peekbench.spec.design import first_maximum
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.reader import Store

SETTLES: Mapping[str, Settled] = {
    "biased up": "biased",
    "biased down": "biased",
    "equivalent": "equivalent",
    "inert": "equivalent",
    "no signal": "equivalent",
}
"""Kind of verdict at which a run may stop, by decision. More subsamples hardly change the last two."""


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
