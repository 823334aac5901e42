"""Runs the fits that arms plan, and scores arms from their predictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, TypeAlias

import numpy as np

from peekbench.execution.planning import Part, Unlabeled, plan_arm
from peekbench.records.data import FloatArray, Inputs, IntArray
from peekbench.records.scores import TextLikelihoods, average_scores
from peekbench.records.trials import ArmResult, Subsample
from peekbench.spec.arms import Arm


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a fit predicts for the texts of a part."""

    numbers: FloatArray
    """Predictions as stored."""
    texts: TextLikelihoods | None
    """Log-likelihoods of the texts, if a classifier gives them."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted model with its predictions."""

    fit_seconds: float
    metrics: Mapping[str, float]
    predictions: Mapping[Part, Prediction]


RunFit: TypeAlias = Callable[[IntArray | None, Sequence[Part]], Fit]
"""Fits a method to unlabeled rows, and predicts parts in this order."""
Score: TypeAlias = Callable[[FloatArray, IntArray, TextLikelihoods | None], Mapping[str, float | int | None]]
"""Scores predictions for rows."""


def run_arms(
    arms: Iterable[Arm], subsample: Subsample, run: RunFit, score: Score, *, crossover: bool
) -> Iterator[ArmResult]:
    """Run the fits of arms, and score each arm. Fits to the same unlabeled rows run once.

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
    plans = [(arm, plan_arm(arm, len(sets), len(subsample.test), crossover=crossover)) for arm in arms]
    wanted: dict[Unlabeled, dict[Part, None]] = {}
    uses: Counter[Unlabeled] = Counter()
    for part, unlabeled in (pair for _, scored in plans for of_set in scored for pair in of_set):
        wanted.setdefault(unlabeled, {})[part] = None
        uses[unlabeled] += 1
    fits: dict[Unlabeled, Fit] = {}
    for arm, scored in plans:
        for _, unlabeled in (pair for of_set in scored for pair in of_set):
            if unlabeled not in fits:
                rows = None if unlabeled is None else np.concatenate([rows_of(part, sets) for part in unlabeled])
                fit = run(rows, list(wanted[unlabeled]))
                fits[unlabeled] = replace(fit, fit_seconds=fit.fit_seconds / uses[unlabeled])  # for each use
        fitted = [[(part, fits[unlabeled]) for part, unlabeled in of_set] for of_set in scored]
        yield _join(arm.name, fitted, subsample, score)


def rows_of(part: Part, sets: Sequence[IntArray]) -> IntArray:
    """Return the rows of the texts of a part."""
    return sets[part.number][part.start : part.stop]


def _join(arm: str, scored: Sequence[Sequence[tuple[Part, Fit]]], subsample: Subsample, score: Score) -> ArmResult:
    """Score each set from the predictions of its parts, and average scores and metrics."""
    pairs = [pair for of_set in scored for pair in of_set]
    predicted = [[fit.predictions[part] for part, fit in of_set] for of_set in scored]
    of_sets = [np.concatenate([each.numbers for each in predictions]) for predictions in predicted]
    scores = [
        score(numbers, subsample.sets[of_set[0][0].number], _join_texts([each.texts for each in predictions]))
        for of_set, numbers, predictions in zip(scored, of_sets, predicted, strict=True)
    ]
    names = dict.fromkeys(name for _, fit in pairs for name in fit.metrics)
    return ArmResult(
        arm,
        average_scores(scores, len({part.number for part, _ in pairs})),
        sum(fit.fit_seconds for _, fit in pairs),
        sum(each.seconds for predictions in predicted for each in predictions),
        {name: fmean(fit.metrics[name] for _, fit in pairs if name in fit.metrics) for name in names},
        np.concatenate(of_sets),
    )


def _join_texts(parts: Sequence[TextLikelihoods | None]) -> TextLikelihoods | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return TextLikelihoods(np.concatenate([part.values for part in known]), sum(part.num_bytes for part in known))


def read_only(array: Any) -> Any:
    """Make an array read-only in place and return it."""
    array.flags.writeable = False
    return array


def take(inputs: Inputs, rows: IntArray) -> Inputs:
    """Return some inputs as a tuple of texts or a read-only array, so that no method can change another's inputs."""
    if isinstance(inputs, np.ndarray):
        features: FloatArray = read_only(inputs.take(rows, axis=0))
        return features
    return tuple([inputs[row] for row in rows.tolist()])
