"""Reads what formats write of a run besides its report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from peekbench.errors import ContractError, PeekbenchError
from peekbench.plugins import registry
from peekbench.plugins.entries import AnalyzerEntry
from peekbench.records.estimates import read_estimates
from peekbench.records.report import Report, RunContent
from peekbench.records.trials import Trial
from peekbench.results.analyze import Seen, find_analysis, only_complete, run_analysis
from peekbench.results.looks import look_at
from peekbench.results.read import load_results
from peekbench.spec.components import AnalysisSpec, make_component
from peekbench.spec.experiment import ExperimentSpec
from peekbench.spec.lockfile import find_lock
from peekbench.store.maintenance import back_up
from peekbench.store.writer import Store


def read_run(
    path: Path, spec: ExperimentSpec, planned: Sequence[Trial], report: Report, *, allow_incomplete: bool
) -> RunContent:
    """Read the content of a run.

    Parameters
    ----------
    path
        Store of the run.
    spec
        Spec of the run.
    planned
        Trials that the design plans.
    report
        Report of the run.
    allow_incomplete
        Read the complete trials of a design with missing trials instead of refusing it.

    Raises
    ------
    PeekbenchError
        If the run has no trials, or trials are missing and `allow_incomplete` is false.
    """
    with Store.open(path) as store:
        sessions, stopped_at, folder = store.sessions(), store.stopped_at(), store.folder()
    results = load_results(path)
    if results.empty or not sessions:
        raise PeekbenchError(f"{path} has no finished trial, so there is nothing to export; finish the run")
    complete, _ = only_complete(results, planned, allow_incomplete=allow_incomplete)
    component = _find_estimates_analysis(spec)
    analysis = run_analysis(component, complete, (), Seen(looks=look_at(path, complete)))
    if not analysis.tables:
        raise ContractError(f"{component.use} has the role 'estimates' and returned no table; see estimates_table")
    return RunContent(
        report=report,
        results=complete,
        estimates=read_estimates(analysis.tables[0]),
        num_planned=len(planned),
        num_looks=spec.design.num_looks,
        last_look=None if stopped_at is None else spec.design.look_number(stopped_at),
        summaries={analysis.use: analysis.entry.summary for analysis in spec.analyses},
        lock=find_lock(_list_spec_files(sessions[-1], folder, spec.name)),
        copy_store=partial(back_up, path),
    )


def _find_estimates_analysis(spec: ExperimentSpec) -> AnalysisSpec:
    """Return the analysis for estimates, with the options of the spec's first analysis that has the same options."""
    use = find_analysis("estimates")
    model = registry.find(use, AnalyzerEntry).options
    options = (analysis.raw_options() for analysis in spec.analyses if analysis.entry.options is model)
    return make_component(AnalysisSpec, use, next(options, None))


def _list_spec_files(session: Mapping[str, Any], folder: Path, name: str) -> Iterator[Path]:
    """Yield the files that can be the spec of a session: those of its command, and the one with the name of the spec.

    Stores do not name the file of a spec, only its folder.
    """
    named = (Path(argument).name for argument in session.get("command", ()))
    yield from (folder / file for file in (*named, f"{name}.yaml"))
