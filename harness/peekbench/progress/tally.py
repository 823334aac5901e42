"""Counts, mean scores and the remaining time of a run, for the displays of its progress."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from peekbench.formatting import shorten
from peekbench.records.trials import Trial, TrialFailure

if TYPE_CHECKING:
    from peekbench.plugins.work_protocols import Outcome

MAX_ERROR = 500  # characters of the first failure
MIN_TRIALS = 10  # trials before the first estimate of the remaining time
MIN_SECONDS = 3.0  # after the first trial, before the first estimate

Kind: TypeAlias = tuple[str, int, int]
"""Method, num_train and num_test of a trial, on which its duration depends most."""


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
    _times: Times | None = None

    @property
    def planned(self) -> int:
        """Trials of the run, those of earlier sessions included, without those that are not tried."""
        return self.done_before + len(self.pending) - self.skipped

    @property
    def times(self) -> Times:
        """Times of the trials so far."""
        self._times = self._times or Times(self.pending)
        return self._times

    def add(self, outcome: Outcome) -> None:
        """Count the outcome of a trial."""
        if not self.done + self.failed:
            self.started = time.monotonic()
        self.times.add(outcome)
        if isinstance(outcome, TrialFailure):
            self.failed += 1
            error = " ".join(shorten(outcome.error, MAX_ERROR).split())
            self.first_failure = self.first_failure or f"{outcome.trial}: {error}"
            return
        self.done += 1
        for arm in outcome.arms:
            total, count = self._sums.get((outcome.trial.method, arm.arm), (0.0, 0))
            self._sums[outcome.trial.method, arm.arm] = (total + arm.score, count + 1)

    def stop(self, method: str, num_trials: int) -> None:
        """Take account of trials of a method that are not tried."""
        self.skipped += num_trials
        self.times.stop(method)

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
        seconds = self.times.estimate(elapsed) if done_now >= min(MIN_TRIALS, len(self.pending) // 4) else None
        return f"{words}, {'estimating the time' if seconds is None else duration(seconds)} left"


class Times:
    """Estimates the remaining time of a run from the times of its trials.

    Trials of a larger design point take longer, and the order of work puts the points of one task next to each other.
    A plain rate would therefore rise and fall; here each trial counts with the mean time of its method at its point.

    Parameters
    ----------
    pending
        Trials to try.
    """

    def __init__(self, pending: Iterable[Trial]) -> None:
        self._left = Counter(map(_kind, pending))
        self._seconds: dict[Kind, tuple[float, int]] = {}

    def add(self, outcome: Outcome) -> None:
        """Add the times of a trial; those of a failed trial are unknown and count as nothing."""
        kind = _kind(outcome.trial)
        self._left[kind] -= 1
        arms = () if isinstance(outcome, TrialFailure) else outcome.arms
        seconds, count = self._seconds.get(kind, (0.0, 0))
        self._seconds[kind] = (seconds + sum(arm.fit_seconds + arm.predict_seconds for arm in arms), count + 1)

    def stop(self, method: str) -> None:
        """Leave out the remaining trials of a method."""
        self._left = Counter({kind: left for kind, left in self._left.items() if kind[0] != method})

    def estimate(self, elapsed: float) -> float | None:
        """Return the remaining seconds, or None until each method was seen at each design point.

        Parameters
        ----------
        elapsed
            Seconds in which the trials so far were done.
        """
        if any(kind not in self._seconds for kind, left in self._left.items() if left):
            return None
        done = sum(seconds for seconds, _ in self._seconds.values())
        left = sum(left * self._seconds[kind][0] / self._seconds[kind][1] for kind, left in self._left.items() if left)
        return elapsed * left / done if done else None


def _kind(trial: Trial) -> Kind:
    return trial.method, trial.draw.num_train, trial.draw.num_test


def duration(seconds: float) -> str:
    """Return seconds as text.

    Examples
    --------
    >>> duration(4), duration(125), duration(11_400)
    ('4 s', '2 min 05 s', '3 h 10 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
