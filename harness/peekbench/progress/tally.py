"""Counts, mean scores and the remaining time of a run, for the displays of its progress."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from peekbench.formatting import duration, shorten
from peekbench.records.trials import Trial, TrialFailure

if TYPE_CHECKING:
    from peekbench.plugins.work_protocols import Outcome

MAX_ERROR = 500  # characters of the first failure
MIN_SECONDS = 3.0  # after the first trial, before the first estimate


@dataclass(slots=True)
class Tally:
    """Counts, mean scores and times of a run so far."""

    methods: tuple[str, ...]
    arms: tuple[str, ...]
    pending: Sequence[Trial]
    """Trials to try in this run."""
    done_before: int
    done: int = 0
    failed: int = 0
    skipped: int = 0
    first_failure: str = ""
    started: float = field(default_factory=time.monotonic)
    """Time of the first outcome, before which workers start and load libraries; at first, of the start."""
    _sums: dict[tuple[str, str], tuple[float, int]] = field(default_factory=dict)

    @property
    def planned(self) -> int:
        """Trials of the run, those of earlier sessions included, without those that are not tried."""
        return self.done_before + len(self.pending) - self.skipped

    def add(self, outcome: Outcome) -> None:
        """Count the outcome of a trial."""
        if not self.done + self.failed:
            self.started = time.monotonic()
        if isinstance(outcome, TrialFailure):
            self.failed += 1
            error = " ".join(shorten(outcome.error, MAX_ERROR).split())
            self.first_failure = self.first_failure or f"{outcome.trial}: {error}"
            return
        self.done += 1
        for arm in outcome.arms:
            total, count = self._sums.get((outcome.trial.method, arm.arm), (0.0, 0))
            self._sums[outcome.trial.method, arm.arm] = (total + arm.score, count + 1)

    def stop(self, num_trials: int) -> None:
        """Take account of trials that are not tried."""
        self.skipped += num_trials

    def mean_scores(self) -> list[list[str]]:
        """Return each method with the mean scores of its arms so far as text.

        The score of a base arm that was fitted with another method is 'shared'.
        """
        known = {method for method, _ in self._sums}
        rows = []
        for method in self.methods:
            means = [self._sums.get((method, arm)) for arm in self.arms]
            empty = ["shared" if arm == "base" and method in known else "-" for arm in self.arms]
            texts = [f"{mean[0] / mean[1]:.3f}" if mean else text for mean, text in zip(means, empty, strict=True)]
            rows.append([method, *texts])
        return rows

    @property
    def handled(self) -> int:
        """Trials that are done or failed."""
        return self.done_before + self.done + self.failed

    def pace(self) -> str:
        """Return the rate and the remaining time as text, once there are enough trials to tell."""
        done_now = self.done + self.failed
        elapsed = time.monotonic() - self.started
        if done_now < 2 or elapsed < MIN_SECONDS:
            return "" if self.handled == self.planned else "estimating the time left"
        rate = (done_now - 1) / elapsed
        words = f"{rate:.1f} trials/s" if rate >= 0.1 else f"{duration(1 / rate)} per trial"
        if self.handled == self.planned:
            return words
        return f"{words}, about {duration((self.planned - self.handled) / rate)} left"
