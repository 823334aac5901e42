"""The fits of a trial: which rows each sees without labels, which texts it predicts, and how arms are scored.

An arm is a rule for the unlabeled texts of a fit. For each scored set, it divides the texts of the set into parts, and
each part is predicted by a fit of its own. Fits to the same unlabeled rows are one fit: with crossover scoring, the fit
to a set predicts its own set for the arm `test` and the others for the arm `extra`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from peekbench.records.data import FloatArray, Inputs, IntArray
from peekbench.records.scores import TextLikelihoods, average_scores
from peekbench.records.trials import ArmResult, Subsample
from peekbench.spec.arms import Arm


class Part(NamedTuple):
    """Consecutive texts of a set."""

    number: int
    """Number of the set."""
    start: int
    stop: int

    def of(self, sets: Sequence[IntArray]) -> IntArray:
        """Return the rows of the texts."""
        return sets[self.number][self.start : self.stop]


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


Unlabeled: TypeAlias = IntArray | None
RunFit: TypeAlias = Callable[[Unlabeled, Sequence[Part]], Fit]
"""Fits a method to unlabeled rows, and predicts parts in this order."""
Score: TypeAlias = Callable[[FloatArray, IntArray, TextLikelihoods | None], Mapping[str, float | int | None]]
"""Scores predictions for rows."""
ScoredSet: TypeAlias = list[tuple[Part, Unlabeled]]
"""All parts of a set, each with the unlabeled rows of the fit that predicts it."""


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
    plans = [(arm, plan_arm(arm, subsample, crossover=crossover)) for arm in arms]
    wanted: dict[bytes | None, dict[Part, None]] = {}
    for _, scored in plans:
        for part, unlabeled in (pair for of_set in scored for pair in of_set):
            wanted.setdefault(_key(unlabeled), {})[part] = None
    uses = Counter(_key(unlabeled) for _, scored in plans for of_set in scored for _, unlabeled in of_set)
    fits: dict[bytes | None, Fit] = {}
    for arm, scored in plans:
        for _, unlabeled in (pair for of_set in scored for pair in of_set):
            if (key := _key(unlabeled)) not in fits:
                fit = run(unlabeled, list(wanted[key]))
                fits[key] = replace(fit, fit_seconds=fit.fit_seconds / uses[key])  # divided among its uses
        yield _join(
            arm.name, [[(part, fits[_key(rows)]) for part, rows in of_set] for of_set in scored], subsample, score
        )


def plan_arm(arm: Arm, subsample: Subsample, *, crossover: bool) -> list[ScoredSet]:
    """Return how an arm predicts each set that it scores.

    With crossover scoring, all sets are scored, and for the arm `extra` by the fits to all other sets. Other arms that
    need extra texts take them from the next set.
    """
    sets = subsample.sets
    own_sets = range(len(sets)) if crossover else range(1)
    shifts = range(1, len(sets)) if crossover and arm.kind == "extra" else range(1, 2)
    return [_plan_set(arm, sets, own, (own + shift) % len(sets)) for shift in shifts for own in own_sets]


def _plan_set(arm: Arm, sets: Sequence[IntArray], number: int, other_number: int) -> ScoredSet:
    own, other = sets[number], sets[other_number]
    whole = Part(number, 0, len(own))
    match arm.kind:
        case "base":
            return [(whole, None)]
        case "extra":
            return [(whole, other)]
        case "test":
            return [(whole, own)]
        case "mix":  # doses are nested and paired
            peeked = arm.num_peeked(len(own))
            return [(whole, np.concatenate([own[:peeked], other[peeked:]]))]
    return [
        (Part(number, start, stop), _unlabeled_of_block(arm, own, other, start, stop))
        for start, stop in arm.blocks_of(len(own))
    ]


def _unlabeled_of_block(arm: Arm, own: IntArray, other: IntArray, start: int, stop: int) -> IntArray:
    """Return the unlabeled rows of the fit that predicts the texts of a set from `start` to `stop`."""
    match arm.kind:
        case "cross":
            return np.concatenate([own[:start], own[stop:]])
        case "stream":
            return own[:stop]
        case "blocks":
            return own[start:stop]
        case "swap-in":
            return np.concatenate([other[:start], own[start:stop], other[stop:]])
    raise AssertionError(arm.kind)


def count_fits(arms: Iterable[Arm], num_test: int, num_sets: int, *, crossover: bool) -> int:
    """Return the number of fits of a trial, each of them to other unlabeled rows."""
    subsample = Subsample(np.arange(0), tuple(np.arange(num_sets * num_test).reshape(num_sets, num_test)))
    plans = (plan_arm(arm, subsample, crossover=crossover) for arm in arms)
    return len({_key(rows) for scored in plans for of_set in scored for _, rows in of_set})


def _key(unlabeled: Unlabeled) -> bytes | None:
    return None if unlabeled is None else unlabeled.tobytes()


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
