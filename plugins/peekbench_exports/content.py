"""What all formats need of a run: its results, its estimates with intervals, and its provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from peekbench import PeekbenchError
from peekbench.records import Report, RunContent, ScoreEstimate

DETAILS = ("identifier", "spec", "data", "sessions")
TRIAL = ["task", "method", "model", "num_train", "num_test", "subsample"]


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """A run, with what its users say about its publication."""

    content: RunContent
    estimates: Sequence[ScoreEstimate]
    """Scores and effects by configuration and quantity: the average, then by task."""
    identifier: str
    spec: Mapping[str, Any]
    """Canonical form of the spec."""
    tasks: Mapping[str, Mapping[str, Any]]
    """Facts about the data by task."""
    sessions: Sequence[Mapping[str, Any]]
    """Provenance of the sessions, oldest first; at least one."""
    num_analyzed: int
    """Number of complete trials."""
    author: str
    license: str

    @property
    def name(self) -> str:
        """Name of the run."""
        return str(self.spec["name"])

    @property
    def session(self) -> Mapping[str, Any]:
        """The last session."""
        return self.sessions[-1]

    @property
    def is_complete(self) -> bool:
        """Whether all planned trials are complete."""
        return self.num_analyzed == self.content.num_planned


def read_run(report: Report) -> ExportedRun:
    """Read the run of a report.

    Raises
    ------
    PeekbenchError
        If the report is of no run, or the run has no complete trial.
    """
    if report.read_run is None:
        raise PeekbenchError(
            f"{report.name} is a report of no run, and this format describes runs; name a run, as in `peekbench report "
            "RUN --format FORMAT`"
        )
    content = report.read_run()
    identifier, spec, tasks, sessions = (content.report.details[key] for key in DETAILS)
    trials = content.results.drop_duplicates(TRIAL)
    return ExportedRun(
        content, content.estimates, identifier, spec, tasks, sessions, len(trials), report.author, report.license
    )
