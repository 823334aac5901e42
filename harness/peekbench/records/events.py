"""Events of a run, as observers receive them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from peekbench.records.trials import Trial

RunStatus: TypeAlias = Literal["finished", "failed", "interrupted"]
"""How a run ended: 'finished' if no trial failed in it, 'interrupted' by Ctrl-C or a signal, otherwise 'failed'.

Examples
--------
>>> from typing import get_args
>>> get_args(RunStatus)
('finished', 'failed', 'interrupted')
"""


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run starts, or is resumed.

    Examples
    --------
    >>> event = RunStarted("0f3a", "tickets", {"seed": 1}, Path("runs/tickets.sqlite"), planned=40, stored=0)
    >>> event.stored > 0  # whether the run is resumed
    False
    """

    store_id: str
    """Random id of the run's store, 32 hexadecimal digits, which a run keeps when it is resumed."""
    name: str
    """Name of the run, from its spec."""
    spec: Mapping[str, Any]
    """The spec as JSON values, with all defaults filled in."""
    store: Path
    """File with the results, as an absolute path."""
    planned: int
    """Trials of the spec, the stored ones included."""
    stored: int
    """Trials that the store already has. They have no `trial_finished`."""


@dataclass(frozen=True, slots=True)
class ArmScores:
    """Scores and costs of one arm of a trial.

    Examples
    --------
    >>> ArmScores({"score": 0.75}, {"loss": 0.6}, fit_seconds=1.5, predict_seconds=0.1).scores["score"]
    0.75
    """

    scores: Mapping[str, float | int | None]
    """Scores by name, see `peekbench.results.SCORES`; None if a score is undefined for the kind of task."""
    metrics: Mapping[str, float]
    """Numbers that the method recorded."""
    fit_seconds: float
    """Seconds of the fit."""
    predict_seconds: float
    """Seconds of the predictions for the test inputs."""


@dataclass(frozen=True, slots=True)
class TrialFinished:
    """A trial has finished or failed, and is stored.

    Examples
    --------
    >>> from peekbench.records import Draw
    >>> event = TrialFinished(Trial(Draw("tickets", 50, 200, 0), "lsa"), number=1, planned=40, arms={}, error="OSError")
    >>> event.failed
    True
    """

    trial: Trial
    """The trial that finished or failed."""
    number: int
    """Number of the trial in the order in which trials finish, from 1. The trials that were already stored when the run
    started count first."""
    planned: int
    """Trials of the spec."""
    arms: Mapping[str, ArmScores]
    """Scores by arm; empty if the trial failed. The arm base is missing if the trial of another method on the same draw
    has it."""
    error: str = ""
    """Type and message of the error; empty if the trial did not fail."""

    @property
    def failed(self) -> bool:
        """Whether the trial failed."""
        return self.error != ""


@dataclass(frozen=True, slots=True)
class RunFinished:
    """A run has ended, and its report, if there is one, is written.

    Examples
    --------
    >>> RunFinished("finished", planned=40, stored=0, finished=40, failed=0, report=Path("reports/tickets")).report.name
    'tickets'
    """

    status: RunStatus
    """How the run ended."""
    planned: int
    """Trials of the spec."""
    stored: int
    """Trials that were already stored when the run started."""
    finished: int
    """Trials that finished since then. The sum may be smaller than `planned` if the run stopped at a planned look."""
    failed: int
    """Trials that failed since then."""
    report: Path | None = None
    """Folder with the report's files, as an absolute path; None if there is no report."""
    error: str = ""
    """Type and message of the error that ended the run; empty if there is none."""
