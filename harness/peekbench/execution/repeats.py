"""Makes the first fit of each method twice: equal seeds must give equal results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peekbench.execution.fit_plans import Part, rows_of
from peekbench.execution.fits import Fit, LoadedTask, RunFit
from peekbench.records.answers import Predicted, join_predicted
from peekbench.records.data import IntArray
from peekbench.records.trials import Repeat, Subsample, Trial
from peekbench.spec.experiment import ExperimentSpec

MAX_SECONDS = 60.0
"""Fits that take longer are not repeated."""
MAX_SHARE = 0.1  # of the time limit of a trial
TOLERANCE = 1e-3  # of the largest prediction, for devices that round in varying order


def plan_repeats(spec: ExperimentSpec) -> frozenset[Trial]:
    """Return the first trial of each method, in which a fit is repeated."""
    first: dict[str, Trial] = {}
    for trial in spec.trials():
        first.setdefault(trial.method, trial)
        if len(first) == len(spec.methods):
            break
    return frozenset(first.values())


class Repeater:
    """Runs the fits of a trial, and repeats the first one, of those with unlabeled texts if there are any.

    Parameters
    ----------
    run
        Runs a fit.
    spec
        Spec of the trial.
    loaded
        Task of the trial, with its scores.
    subsample
        Rows of the trial.
    """

    def __init__(self, run: RunFit, spec: ExperimentSpec, loaded: LoadedTask, subsample: Subsample) -> None:
        self._run, self._loaded, self._sets = run, loaded, subsample.sets
        self._has_unlabeled = any(arm.kind != "base" for arm in spec.arms)
        self._max_seconds = MAX_SECONDS
        if spec.timeout is not None:
            self._max_seconds = min(MAX_SECONDS, MAX_SHARE * spec.timeout)
        self._is_done = False
        self.repeats: list[Repeat] = []
        """What differed, if a fit was repeated."""

    def __call__(self, unlabeled_rows: IntArray | None, parts: Sequence[Part]) -> Fit:
        """Run a fit."""
        fit = self._run(unlabeled_rows, parts)
        if self._is_done or (self._has_unlabeled and unlabeled_rows is None):
            return fit
        self._is_done = True
        if fit.fit_seconds <= self._max_seconds:
            again = self._run(unlabeled_rows, parts)
            first, second = (join_predicted([of.predictions[part].predicted for part in parts]) for of in (fit, again))
            rows = np.concatenate([rows_of(part, self._sets) for part in parts])
            scores = [self._loaded.score(predicted, rows, None)["score"] for predicted in (first, second)]
            self.repeats.append(Repeat(count_changed(first, second), len(rows), *map(_as_number, scores)))
        return fit


def _as_number(score: float | None) -> float:
    assert score is not None
    return float(score)


def count_changed(first: Predicted, second: Predicted) -> int:
    """Return the number of rows whose labels differ, or whose numbers differ by more than rounding.

    Examples
    --------
    >>> count_changed(Predicted(np.array([0.2, 0.5])), Predicted(np.array([0.2, 0.6])))
    1
    """
    differences = np.abs(first.numbers.astype(np.float64) - second.numbers)
    is_changed = (differences > TOLERANCE * np.abs(first.numbers).max()).reshape(len(first), -1).any(axis=1)
    if first.labels is not None and second.labels is not None:
        is_changed |= (first.labels != second.labels).reshape(len(first), -1).any(axis=1)
    return int(is_changed.sum())
