"""What exports need of a run: its results, its estimates with intervals, its provenance, and its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peekbench.errors import ContractError, PeekbenchError
from peekbench.plugins import registry
from peekbench.plugins.entries import AnalyzerEntry
from peekbench.records.estimates import ScoreEstimate, read_estimates
from peekbench.report.build.run_report import report_of_run
from peekbench.results.analyze import Seen, find_analysis, only_complete, planned_trials, run_analysis
from peekbench.results.columns import TRIAL
from peekbench.results.looks import look_at
from peekbench.results.read import load_results
from peekbench.spec.components import AnalysisSpec, make_component
from peekbench.store.reader import StoredMethod
from peekbench.store.writer import Store

if TYPE_CHECKING:
    import pandas as pd

    from peekbench.report.document import Report


@dataclass(frozen=True, slots=True)
class Publication:
    """What users say about an export, because no run knows it.

    Examples
    --------
    >>> Publication(author="Ada Lovelace", license="CC-BY-4.0").author
    'Ada Lovelace'
    """

    author: str = ""
    """Person or organization that publishes the results."""
    license: str = ""
    """License of the results, as a URL or an SPDX identifier."""
    lock: Path | None = None
    """Lock file of the run, if there is one."""


@dataclass(frozen=True)  # no slots, because the report is made on first use
class ExportedRun:
    """The content of a run, from its store."""

    store: Path
    spec: Mapping[str, Any]
    """Canonical form of the spec."""
    tasks: Mapping[str, Mapping[str, Any]]
    """Facts about the data by task."""
    methods: Mapping[str, StoredMethod]
    sessions: Sequence[Mapping[str, Any]]
    """Provenance of the sessions, oldest first; at least one."""
    identifier: str
    results: pd.DataFrame
    """The results table, with complete trials only."""
    num_planned: int
    """Number of trials that the design plans."""
    stopped_at: int | None
    """Subsamples of the planned look at which the run stopped; None if it did not."""
    estimates: Sequence[ScoreEstimate]
    """Scores and effects by configuration and quantity: the average, then by task."""
    allow_incomplete: bool
    publication: Publication

    @property
    def name(self) -> str:
        """Name of the run."""
        return str(self.spec["name"])

    @property
    def session(self) -> Mapping[str, Any]:
        """The last session."""
        return self.sessions[-1]

    @property
    def num_analyzed(self) -> int:
        """Number of complete trials."""
        return len(self.results.drop_duplicates(list(TRIAL)))

    @property
    def is_complete(self) -> bool:
        """Whether all planned trials are complete."""
        return self.num_analyzed == self.num_planned

    @cached_property
    def report(self) -> Report:
        """The report of the run."""
        return report_of_run(self.store, allow_incomplete=self.allow_incomplete)

    @property
    def use_of(self) -> dict[str, str]:
        """Method to its `plugin.thing`."""
        return {method["name"]: method["use"] for method in self.spec["methods"]}


def read_run(store: Path, publication: Publication, *, allow_incomplete: bool = False) -> ExportedRun:
    """Read a run from its store.

    Parameters
    ----------
    store
        Store of the run.
    publication
        What users say about the export.
    allow_incomplete
        Export the complete trials of a design with missing trials instead of refusing it.

    Raises
    ------
    PeekbenchError
        If the run has no trials, or trials are missing and neither `allow_incomplete` nor the spec allows that.
    """
    with Store.open(store) as opened:
        spec, tasks, methods = opened.spec(), opened.tasks(), opened.methods()
        sessions, identifier, stopped_at = opened.sessions(), opened.identifier(), opened.stopped_at()
    results, planned = load_results(store), planned_trials(store)
    if results.empty or not sessions:
        raise PeekbenchError(f"{store} has no finished trial, so there is nothing to export; finish the run")
    allow_incomplete = allow_incomplete or bool(spec["report"]["allow_incomplete"])
    complete, _ = only_complete(results, planned, allow_incomplete=allow_incomplete)
    seen = Seen(looks=look_at(store, complete))
    component = _estimates_analysis(spec)
    analysis = run_analysis(component, complete, (), seen)
    if not analysis.tables:
        raise ContractError(f"{component.use} has the role 'estimates' and returned no table; see estimates_table")
    return ExportedRun(
        store=store,
        spec=spec,
        tasks=tasks,
        methods=methods,
        sessions=sessions,
        identifier=identifier,
        results=complete,
        num_planned=len(planned),
        stopped_at=stopped_at,
        estimates=read_estimates(analysis.tables[0]),
        allow_incomplete=allow_incomplete,
        publication=publication,
    )


def _estimates_analysis(spec: Mapping[str, Any]) -> AnalysisSpec:
    """Return the analysis for estimates, with the options of the spec's first analysis that has the same options."""
    use = find_analysis("estimates")
    model = registry.find(use, AnalyzerEntry).options
    for analysis in spec["analyses"]:
        if registry.find(analysis["use"], AnalyzerEntry).options is model:
            return make_component(AnalysisSpec, use, analysis["options"])
    return make_component(AnalysisSpec, use)
