"""Passes a run on to Weights & Biases."""

from __future__ import annotations

from pathlib import Path

import wandb

from peekbench import Analysis, Folders
from peekbench.records import RunFinished, RunStarted, TrialFinished
from peekbench_tracking import Wandb
from peekbench_tracking.content import (
    TrialNumbers,
    describe_decisions,
    describe_settings,
    describe_verdicts,
    join_names,
    result_tables,
)


class WandbTracker:
    """A run of Weights & Biases, whose id is that of peekbench's store.

    Parameters
    ----------
    options
        Options from the spec.
    folders
        Folders of the spec file and of the cache.
    """

    def __init__(self, *, options: Wandb, folders: Folders) -> None:
        self._options = options
        self._folder = Path.cwd()

    def run_started(self, event: RunStarted) -> None:
        """Start the run, or continue the one of the same store."""
        self._step = event.stored
        self._numbers = TrialNumbers(event)
        self._run = wandb.init(
            project=self._options.project,
            entity=self._options.entity or None,
            id=event.store_id,
            name=event.name,
            resume="allow",
            mode=self._options.mode,
            dir=self._folder,
            config={**describe_settings(event.spec), "store": str(event.store), "planned": event.planned},
            reinit="create_new",
            # The output, the code and the packages of the process are those of peekbench, whose store records them.
            settings=wandb.Settings(
                silent=True, console="off", disable_git=True, disable_code=True, x_save_requirements=False
            ),
        )

    def trial_finished(self, event: TrialFinished) -> None:
        """Log the numbers of a trial, with its number as step."""
        self._step = event.number
        self._run.log(dict(self._numbers.describe(event)), step=event.number)

    def analysis_finished(self, analysis: Analysis) -> None:
        """Log tables, and put estimates and decisions into the summary of the run."""
        self._run.summary.update({**describe_verdicts(analysis), **describe_decisions(analysis)})
        tables = {
            name: wandb.Table(columns=columns, data=[list(row) for row in rows], allow_mixed_types=True)
            for name, columns, rows in result_tables(analysis)
        }
        if tables:
            self._run.log(tables, step=self._step)

    def run_finished(self, event: RunFinished) -> None:
        """Keep the report as an artifact and end the run."""
        if event.report is not None:
            artifact = wandb.Artifact(join_names(f"report-{self._run.id}"), type="report")
            for file in sorted(path for path in event.report.rglob("*") if path.is_file()):
                artifact.add_file(str(file), name=str(file.relative_to(event.report)))  # `add_dir` prints
            self._run.log_artifact(artifact)
        self._run.finish(exit_code=0 if event.status == "finished" else 1)
