"""Makes the first fit of each method, and the first grades of each task, twice: equal seeds must give equal results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from peekbench.execution.fit_plans import Part, rows_of
from peekbench.execution.fits import Fit, LoadedTask, RunFit
from peekbench.execution.prediction_checks import grade_answers
from peekbench.records.answers import Predicted, join_predicted
from peekbench.records.data import IntArray, Reference
from peekbench.records.trials import Repeat, RepeatSubject, Subsample, Trial
from peekbench.spec.experiment import ExperimentSpec

MAX_SECONDS = 60.0
"""Fits that take longer are not repeated."""
MAX_SHARE = 0.1  # of the time limit of a trial
TOLERANCE = 1e-3  # of the largest prediction, for devices that round in varying order


def plan_repeats(spec: ExperimentSpec) -> Mapping[Trial, frozenset[RepeatSubject]]:
    """Return the first trial of each method, and that of each task, with what is repeated in them."""
    fits: dict[str, Trial] = {}
    grades: dict[str, Trial] = {}
    for trial in spec.trials():
        fits.setdefault(trial.method, trial)
        grades.setdefault(trial.draw.task, trial)
        if len(fits) == len(spec.methods) and len(grades) == len(spec.tasks):
            break
    planned: dict[Trial, frozenset[RepeatSubject]] = dict.fromkeys(fits.values(), frozenset(["fit"]))
    for trial in grades.values():
        planned[trial] = planned.get(trial, frozenset()) | {"grades"}
    return planned


class Repeater:
    """Runs the fits of a trial, and repeats the first one, of those with unlabeled texts if there are any.

    Parameters
    ----------
    run
        Runs a fit.
    subjects
        What to repeat.
    spec
        Spec of the trial.
    loaded
        Task of the trial, with its labels and scores.
    subsample
        Rows of the trial.
    """

    def __init__(
        self,
        run: RunFit,
        subjects: frozenset[RepeatSubject],
        spec: ExperimentSpec,
        loaded: LoadedTask,
        subsample: Subsample,
    ) -> None:
        self._run, self._subjects, self._loaded, self._sets = run, subjects, loaded, subsample.sets
        self._has_unlabeled = any(arm.kind != "base" for arm in spec.arms)
        self._max_seconds = MAX_SECONDS
        if spec.timeout is not None:
            self._max_seconds = min(MAX_SECONDS, MAX_SHARE * spec.timeout)
        self.repeats: list[Repeat] = []
        """What was repeated, with the difference."""

    def __call__(self, unlabeled_rows: IntArray | None, parts: Sequence[Part]) -> Fit:
        """Run a fit."""
        fit = self._run(unlabeled_rows, parts)
        if self._has_unlabeled and unlabeled_rows is None:
            return fit
        subjects, self._subjects = self._subjects, frozenset()
        rows = np.concatenate([rows_of(part, self._sets) for part in parts])
        first, answers = _join(fit, parts)
        if "grades" in subjects and answers:
            again = Predicted(grade_answers(answers, self._loaded.sampler.labels[rows], self._loaded.task))
            self._compare("grades", rows, first, again)
        if "fit" in subjects and fit.fit_seconds <= self._max_seconds:
            second, other_answers = _join(self._run(unlabeled_rows, parts), parts)
            num_changed = None
            if answers:
                num_changed = sum(one != other for one, other in zip(answers, other_answers, strict=True))
            self._compare("fit", rows, first, second, num_changed)
        return fit

    def _compare(
        self,
        subject: RepeatSubject,
        rows: IntArray,
        first: Predicted,
        second: Predicted,
        num_changed: int | None = None,
    ) -> None:
        if num_changed is None:
            num_changed = count_changed(first, second)
        scores = [self._loaded.score(predicted, rows, None)["score"] for predicted in (first, second)]
        self.repeats.append(Repeat(subject, num_changed, len(rows), *map(_as_number, scores)))


def _as_number(score: float | None) -> float:
    assert score is not None
    return float(score)


def _join(fit: Fit, parts: Sequence[Part]) -> tuple[Predicted, tuple[Reference, ...]]:
    """Return the predictions of all parts, and the answers."""
    predictions = [fit.predictions[part] for part in parts]
    answers = tuple(answer for prediction in predictions for answer in prediction.answers)
    return join_predicted([prediction.predicted for prediction in predictions]), answers


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
