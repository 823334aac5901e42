"""A run in Python: its results, predictions, failures and reports."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from peekbench.api.messages import in_python
from peekbench.api.predictions import KEYS, RunPredictions, key_of
from peekbench.api.report_view import ReportView
from peekbench.errors import ResultsError
from peekbench.formatting import pluralize
from peekbench.report.build.run_report import report_of_run
from peekbench.results.paired_effects import paired_scores
from peekbench.results.read import load_results
from peekbench.store.writer import Store

if TYPE_CHECKING:
    from peekbench.execution.runner import RunSummary
    from peekbench.spec.experiment import ExperimentSpec


class Run:
    """A run with its results.

    `peekbench.run`, `peekbench.measure` and `peekbench.load_run` return it.

    Parameters
    ----------
    spec
        Spec of the run.
    summary
        The store and the numbers of trials.

    Examples
    --------
    >>> import peekbench as pb
    >>> run = pb.load_run("quickstart")
    >>> float(run.arms.groupby("method")["bias"].mean()["controls.null"])
    0.0
    >>> report = run.report()  # at the end of a cell of a notebook, it shows its verdicts and figures
    >>> len(report.verdicts)
    5
    """

    def __init__(self, spec: ExperimentSpec, summary: RunSummary) -> None:
        self.spec = spec
        """The experiment."""
        self._store = summary.store.absolute()  # the notebook may change its folder
        self.summary = summary
        """The numbers of trials, methods that were stopped, and planned looks."""

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.spec.name

    @property
    def store(self) -> Path:
        """Full path of the SQLite file of the run."""
        return self._store

    @property
    def planned(self) -> int:
        """Number of trials of the spec."""
        return self.summary.planned

    @property
    def resumed(self) -> int:
        """Number of trials that the store already had."""
        return self.summary.resumed

    @property
    def finished(self) -> int:
        """Number of trials that this call has finished."""
        return self.summary.finished

    @property
    def failed(self) -> int:
        """Number of trials that failed; `failures` has their errors."""
        return self.summary.failed

    @cached_property
    def results(self) -> pd.DataFrame:
        """The results table: one row for each arm of each finished trial, see `peekbench.results.COLUMNS`."""
        return load_results(self.store)

    @cached_property
    def arms(self) -> pd.DataFrame:
        """One row for each trial, with the scores of its arms side by side, the boost and the bias, as fractions."""
        if self.results.empty:
            return pd.DataFrame(columns=[*KEYS, "base", "extra", "test", "boost", "bias"])
        return paired_scores(self.results)

    @property
    def predictions(self) -> RunPredictions:
        """Predictions for the test texts, which are read when they are asked for."""
        return RunPredictions(self.store)

    @property
    def failures(self) -> pd.DataFrame:
        """One row for each failed trial, with its error and traceback."""
        with Store.open(self.store, verified=False) as store:
            failures = store.failures()
        rows = [
            {**key_of(failure.trial), "error": failure.error, "traceback": failure.traceback} for failure in failures
        ]
        return pd.DataFrame(rows, columns=[*KEYS, "error", "traceback"])

    def report(self, analyses: Sequence[str] | None = None, *, allow_incomplete: bool = False) -> ReportView:
        """Analyze the run.

        Parameters
        ----------
        analyses
            Names of the analyses; by default those of the spec.
        allow_incomplete
            Analyze a run with missing trials; a run with failed trials is always analyzed. The report warns of both.

        Returns
        -------
        ReportView
            Verdicts, tables and figures. A notebook shows them.

        Raises
        ------
        ResultsError
            If trials are missing and that is not allowed.
        """
        allow_incomplete = allow_incomplete or self.failed > 0
        try:
            return ReportView(report_of_run(self.store, allow_incomplete=allow_incomplete, analyses=analyses or ()))
        except ResultsError as error:
            raise ResultsError(in_python(str(error))) from error

    def __repr__(self) -> str:
        """Return the name and the numbers of trials."""
        failed = f", {self.failed:,} failed" if self.failed else ""
        done = self.resumed + self.finished
        return (
            f"<run {self.name}: {done:,} of {pluralize(self.planned, 'trial')} done{failed}, in {self.summary.store}>"
        )
