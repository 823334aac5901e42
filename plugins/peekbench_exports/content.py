"""What all formats need of a run: its results, its estimates with intervals, and its provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peekbench import PeekbenchError
from peekbench.records import Report, RunContent, ScoreEstimate

if TYPE_CHECKING:
    import pandas as pd

TRIAL = ["task", "method", "model", "num_train", "num_test", "subsample"]


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """A run, with what its users say about its publication."""

    content: RunContent
    author: str
    license: str

    @property
    def spec(self) -> Mapping[str, Any]:
        """Canonical form of the spec."""
        spec: Mapping[str, Any] = self.content.report.details["spec"]
        return spec

    @property
    def name(self) -> str:
        """Name of the run."""
        return str(self.spec["name"])

    @property
    def identifier(self) -> str:
        """Identifier of the run."""
        return str(self.content.report.details["identifier"])

    @property
    def tasks(self) -> Mapping[str, Mapping[str, Any]]:
        """Facts about the data by task."""
        tasks: Mapping[str, Mapping[str, Any]] = self.content.report.details["data"]
        return tasks

    @property
    def sessions(self) -> Sequence[Mapping[str, Any]]:
        """Provenance of the sessions, oldest first; at least one."""
        sessions: Sequence[Mapping[str, Any]] = self.content.report.details["sessions"]
        return sessions

    @property
    def session(self) -> Mapping[str, Any]:
        """The last session."""
        return self.sessions[-1]

    @property
    def results(self) -> pd.DataFrame:
        """The results table, with complete trials only."""
        return self.content.results

    @property
    def estimates(self) -> Sequence[ScoreEstimate]:
        """Scores and effects by configuration and quantity: the average, then by task."""
        return self.content.estimates

    @property
    def num_analyzed(self) -> int:
        """Number of complete trials."""
        return len(self.results.drop_duplicates(TRIAL))

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
    return ExportedRun(report.read_run(), report.author, report.license)
