"""The fits of a trial, what they predict, and the scores of arms that are joined from them.

The first fit of each method is made twice: equal seeds must give equal results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeAlias

import numpy as np

from peekbench.data.sampling import Sampler
from peekbench.execution.fit_plans import Part, Unlabeled, plan_arm, rows_of
from peekbench.execution.prediction_checks import compute_scores
from peekbench.records.answers import Predicted, join_predicted
from peekbench.records.data import Dataset, IntArray, Reference, Task
from peekbench.records.scores import TextLikelihoods, average_scores
from peekbench.records.trials import ArmResult, Repeat, Subsample, Trial
from peekbench.spec.arms import Arm
from peekbench.spec.experiment import ExperimentSpec

MAX_SECONDS = 60.0
"""Fits that take longer are not repeated."""
MAX_SHARE = 0.1  # of the time limit of a trial
TOLERANCE = 1e-3  # of the largest prediction, for devices that round in varying order


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a fit predicts for the texts of a part."""

    predicted: Predicted
    """Predictions as stored."""
    texts: TextLikelihoods | None
    """Log-likelihoods of the texts, if a classifier gives them."""
    seconds: float
    answers: tuple[Reference, ...] = ()
    """Generated answers."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted model with its predictions."""

    fit_seconds: float
    metrics: Mapping[str, float]
    predictions: Mapping[Part, Prediction]


RunFit: TypeAlias = Callable[[IntArray | None, Sequence[Part]], Fit]
"""Fits a method to unlabeled rows, and predicts parts in this order."""
Score: TypeAlias = Callable[[Predicted, IntArray, TextLikelihoods | None], Mapping[str, float | int | None]]
"""Scores predictions for rows."""


def run_arms(
    arms: Iterable[Arm], subsample: Subsample, run: RunFit, score: Score, *, crossover: bool
) -> Iterator[ArmResult]:
    """Run the fits of arms, and score each arm. Fits to the same unlabeled rows run once.

    Their seconds are divided among the uses by other arms than rules, if there are any: rules come at no cost to them.

    Parameters
    ----------
    arms
        Arms to score, in this order.
    subsample
        Rows of the draw.
    run
        Runs a fit.
    score
        Computes scores.
    crossover
        Whether every set is scored, and not only the first one.
    """
    sets = subsample.sets
    size, folds = len(subsample.test), subsample.folds
    plans = [(arm, plan_arm(arm, len(sets), size, crossover=crossover, folds=folds)) for arm in arms]
    wanted: dict[Unlabeled, dict[Part, None]] = {}
    uses: Counter[tuple[Unlabeled, bool]] = Counter()  # by arms that are rules, and by others
    for arm, scored in plans:
        for part, unlabeled in (pair for of_set in scored for pair in of_set):
            wanted.setdefault(unlabeled, {})[part] = None
            uses[unlabeled, arm.is_rule] += 1
    fits: dict[Unlabeled, Fit] = {}
    for arm, scored in plans:
        for _, unlabeled in (pair for of_set in scored for pair in of_set):
            if unlabeled not in fits:
                own = [rows_of(part, sets) for part in unlabeled or ()]
                rows = None
                if unlabeled is not None:
                    rows = np.concatenate([*own, subsample.shared])
                fits[unlabeled] = run(rows, list(wanted[unlabeled]))
        seconds = sum(
            fits[unlabeled].fit_seconds / uses[unlabeled, arm.is_rule]
            for _, unlabeled in (pair for of_set in scored for pair in of_set)
            if not (arm.is_rule and uses[unlabeled, False])
        )
        fitted = [[(part, fits[unlabeled]) for part, unlabeled in of_set] for of_set in scored]
        yield _join(arm.name, fitted, seconds, subsample, score)


def _join(
    arm: str, scored: Sequence[Sequence[tuple[Part, Fit]]], fit_seconds: float, subsample: Subsample, score: Score
) -> ArmResult:
    """Score each set from the predictions of its parts, and average scores and metrics."""
    pairs = [pair for of_set in scored for pair in of_set]
    predicted = [[fit.predictions[part] for part, fit in of_set] for of_set in scored]
    of_sets = [join_predicted([part.predicted for part in predictions]) for predictions in predicted]
    scores = [
        score(
            of_whole_set,
            np.concatenate([rows_of(part, subsample.sets) for part, _ in of_set]),
            _join_texts([part.texts for part in predictions]),
        )
        for of_set, of_whole_set, predictions in zip(scored, of_sets, predicted, strict=True)
    ]
    names = dict.fromkeys(name for _, fit in pairs for name in fit.metrics)
    return ArmResult(
        arm,
        average_scores(scores, len({part.number for part, _ in pairs})),
        fit_seconds,
        sum(part.seconds for predictions in predicted for part in predictions),
        {name: fmean(fit.metrics[name] for _, fit in pairs if name in fit.metrics) for name in names},
        join_predicted(of_sets),
        tuple(answer for predictions in predicted for part in predictions for answer in part.answers),
    )


def _join_texts(parts: Sequence[TextLikelihoods | None]) -> TextLikelihoods | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return TextLikelihoods(np.concatenate([part.values for part in known]), sum(part.num_bytes for part in known))


@dataclass(frozen=True, slots=True)
class LoadedTask:
    """A task with its data and a sampler."""

    task: Task
    dataset: Dataset
    sampler: Sampler

    def score(
        self, predicted: Predicted, rows: IntArray, texts: TextLikelihoods | None
    ) -> dict[str, float | int | None]:
        """Return the scores of predictions for rows."""
        return compute_scores(predicted, self.sampler.labels[rows], self.task, texts)


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
