"""Passes a run on to Trackio, which keeps it on this machine."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import trackio

from peekbench import Analysis, Folders
from peekbench.records import RunFinished, RunStarted, TrialFinished
from peekbench_tracking import Trackio
from peekbench_tracking.content import (
    TrialNumbers,
    describe_decisions,
    describe_settings,
    describe_verdicts,
    result_tables,
)


class TrackioTracker:
    """A run of Trackio, whose id is that of peekbench's store.

    Trackio writes in a thread of its own, twice a second, so its calls are quick.

    Parameters
    ----------
    options
        Options from the spec.
    folders
        Folders of the spec file and of the cache.
    """

    def __init__(self, *, options: Trackio, folders: Folders) -> None:
        self._project = options.project

    def run_started(self, event: RunStarted) -> None:
        """Start the run, or continue the one of the same store."""
        self._step = event.stored
        self._numbers = TrialNumbers(event)
        # `trackio.init` would print to standard output, and let Trackio choose the id.
        self._run = trackio.Run(
            url=None,
            project=self._project,
            client=None,
            name=event.name,
            run_id=event.store_id,
            config={**describe_settings(event.spec), "store": str(event.store), "planned": event.planned},
        )

    def trial_finished(self, event: TrialFinished) -> None:
        """Log the numbers of a trial, with its number as step."""
        self._step = event.number
        self._run.log(dict(self._numbers.describe(event)), step=event.number)

    def analysis_finished(self, analysis: Analysis) -> None:
        """Log estimates, decisions and tables at the step of the last trial."""
        tables = {
            name: trackio.Table(data=[dict(zip(columns, row, strict=True)) for row in rows])
            for name, columns, rows in result_tables(analysis)
            if rows
        }
        content = {**describe_verdicts(analysis), **describe_decisions(analysis), **tables}
        if content:
            self._run.log(content, step=self._step)

    def run_finished(self, event: RunFinished) -> None:
        """Keep the report as an artifact and end the run."""
        with redirect_stdout(io.StringIO()):  # Trackio prints; the run has ended, so nothing else prints now
            if event.report is not None:
                self._run.log_artifact(event.report, name=f"report-{self._run.name}", type="report")
            self._run.finish()
