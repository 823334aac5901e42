"""Passes a run on to MLflow."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag

from peekbench import Analysis, Folders
from peekbench.records import RunFinished, RunStarted, TrialFinished
from peekbench_tracking import MLflow
from peekbench_tracking.content import (
    TrialNumbers,
    describe_decisions,
    describe_settings,
    describe_verdicts,
    join_names,
    result_tables,
)

TAG = "peekbench.store"
SQLITE = "sqlite:///"
STATUSES = {"finished": "FINISHED", "failed": "FAILED", "interrupted": "KILLED"}
SECONDS = 5.0  # between two transactions with metrics, each of which takes several milliseconds
MAX_METRICS = 1_000  # of a transaction, a limit of MLflow
MAX_PARAMS = 100
MAX_VALUE = 6_000  # characters of a param


class MLflowTracker:
    """A run of MLflow, found by the id of peekbench's store.

    Parameters
    ----------
    options
        Options from the spec.
    folders
        Folders of the spec file and of the cache.
    """

    def __init__(self, *, options: MLflow, folders: Folders) -> None:
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        logging.getLogger("alembic").setLevel(logging.WARNING)
        uri = options.uri or os.environ.get("MLFLOW_TRACKING_URI") or f"{SQLITE}mlflow.db"
        self._database: Path | None = None
        if uri.startswith(SQLITE):
            self._database = Path(uri.removeprefix(SQLITE)).absolute()
            uri = f"{SQLITE}{self._database}"
        self._client = MlflowClient(uri)
        self._experiment = options.experiment
        self._metrics: list[Metric] = []
        self._last_write = 0.0
        self._step = 0

    def run_started(self, event: RunStarted) -> None:
        """Create a run, or continue the one of the same store."""
        self._step = event.stored
        self._numbers = TrialNumbers(event)
        experiment = self._find_experiment()
        runs = self._client.search_runs([experiment], f"tags.`{TAG}` = '{event.store_id}'", max_results=1)
        if runs:
            self._run = runs[0].info.run_id
            self._client.update_run(self._run, status="RUNNING")
        else:
            self._run = self._client.create_run(experiment, run_name=event.name, tags={TAG: event.store_id}).info.run_id
            params = [Param(join_names(key), value[:MAX_VALUE]) for key, value in describe_settings(event.spec).items()]
            for start in range(0, len(params), MAX_PARAMS):
                self._client.log_batch(self._run, params=params[start : start + MAX_PARAMS])
        self._client.log_dict(self._run, dict(event.spec), "spec.json")

    def _find_experiment(self) -> str:
        found = self._client.get_experiment_by_name(self._experiment)
        if found is not None:
            return str(found.experiment_id)
        files = None if self._database is None else (self._database.parent / "mlartifacts").as_uri()
        return str(self._client.create_experiment(self._experiment, artifact_location=files))

    def trial_finished(self, event: TrialFinished) -> None:
        """Log the numbers of a trial, with its number as step."""
        self._step = event.number
        self._add(self._numbers.describe(event))
        if time.monotonic() - self._last_write > SECONDS:
            self._write()

    def _add(self, numbers: dict[str, float]) -> None:
        now = int(time.time() * 1000)
        self._metrics += [Metric(name, value, now, self._step) for name, value in numbers.items()]

    def _write(self) -> None:
        for start in range(0, len(self._metrics), MAX_METRICS):
            self._client.log_batch(self._run, metrics=self._metrics[start : start + MAX_METRICS])
        self._metrics = []
        self._last_write = time.monotonic()

    def analysis_finished(self, analysis: Analysis) -> None:
        """Log estimates as metrics, decisions as tags, and tables."""
        self._add(describe_verdicts(analysis))
        self._write()
        tags = [RunTag(name, value) for name, value in describe_decisions(analysis).items()]
        self._client.log_batch(self._run, tags=tags)
        for name, columns, rows in result_tables(analysis):
            self._log_table(f"tables/{name}.json", columns, [list(row) for row in rows])

    def _log_table(self, path: str, columns: list[str], rows: list[list[Any]]) -> None:
        """Log a table, or replace the one of an earlier session, to which `log_table` would add the rows."""
        folder, _, _ = path.rpartition("/")
        if any(file.path == path for file in self._client.list_artifacts(self._run, folder)):
            self._client.log_dict(self._run, {"columns": columns, "data": rows}, path)
        else:
            cells = {name: [row[position] for row in rows] for position, name in enumerate(columns)}
            self._client.log_table(self._run, cells, path)

    def run_finished(self, event: RunFinished) -> None:
        """Upload the report and end the run."""
        self._write()
        if event.report is not None:
            self._client.log_artifacts(self._run, str(event.report), "report")
        if event.error:
            self._client.set_tag(self._run, "peekbench.error", event.error[:MAX_VALUE])
        self._client.set_terminated(self._run, STATUSES[event.status])
