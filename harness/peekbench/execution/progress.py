"""What a run reports while it is going on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from peekbench.plugins.work_protocols import Outcome
from peekbench.records.hosts import Capacity
from peekbench.records.trials import Trial
from peekbench.spec.experiment import ExperimentSpec


class Progress(Protocol):
    """Receives the progress of a run."""

    def start(self, spec: ExperimentSpec, pending: Sequence[Trial], done: int) -> None:
        """Start with the trials to try and the number of trials already in the store."""

    def prepare(self, method: str) -> None:
        """Report that a method is being prepared."""

    def warn(self, message: str) -> None:
        """Report data that make the results of the run doubtful, before its first trial."""

    def show_capacity(self, capacity: Capacity) -> None:
        """Report the machines and workers that do the work at present."""

    def advance(self, outcome: Outcome) -> None:
        """Report one finished or failed trial."""

    def stop(self, method: str, num_trials: int) -> None:
        """Report that the other trials of a method are not tried, because its first ones failed in the same way."""

    def wait(self) -> None:
        """Report, about once a second, that no trial has finished since the last report."""


class NullProgress:
    """Progress that shows nothing."""

    def start(self, spec: ExperimentSpec, pending: Sequence[Trial], done: int) -> None:
        """Do nothing."""

    def prepare(self, method: str) -> None:
        """Do nothing."""

    def warn(self, message: str) -> None:
        """Do nothing."""

    def show_capacity(self, capacity: Capacity) -> None:
        """Do nothing."""

    def advance(self, outcome: Outcome) -> None:
        """Do nothing."""

    def stop(self, method: str, num_trials: int) -> None:
        """Do nothing."""

    def wait(self) -> None:
        """Do nothing."""
