"""The fits of a trial: which rows each sees without labels, and which arm its predictions belong to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, TypeAlias

import numpy as np

from peekbench.records.data import FloatArray, Inputs, IntArray
from peekbench.records.scores import average_scores
from peekbench.records.trials import ArmResult, Subsample
from peekbench.spec.arms import Arm


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted model with its predictions for sets, by the number of the set."""

    fit_seconds: float
    metrics: Mapping[str, float]
    predictions: Mapping[int, FloatArray]
    scores: Mapping[int, Mapping[str, float | int | None]]
    predict_seconds: Mapping[int, float]


RunFit: TypeAlias = Callable[[IntArray | None, Sequence[int]], Fit]
"""Fits a method to unlabeled rows and predicts sets, given by their numbers, in this order."""


def run_arms(arms: Iterable[Arm], subsample: Subsample, run: RunFit, *, crossover: bool) -> Iterator[ArmResult]:
    """Run the fits of arms, and score each arm.

    Without crossover scoring, each arm is one fit that predicts the test set. With crossover scoring, one fit adapts to
    each set, and predicts all sets: its own for the arm test, the others for the arm extra.
    """
    if not crossover:
        for arm in arms:
            yield _join(arm.name, [(run(unlabeled_rows(arm, subsample), [0]), 0)])
        return
    every = range(len(subsample.sets))
    adapted: list[Fit] = []
    for arm in arms:
        if arm.kind == "base":
            base = run(None, every)
            yield _join(arm.name, [(base, number) for number in every])
            continue
        adapted = adapted or [
            run(rows, [own, *(number for number in every if number != own)]) for own, rows in enumerate(subsample.sets)
        ]
        shifts = every[:1] if arm.kind == "test" else every[1:]
        yield _join(arm.name, [(adapted[(own + shift) % len(every)], own) for shift in shifts for own in every])


def _join(arm: str, parts: Sequence[tuple[Fit, int]]) -> ArmResult:
    """Average scores and metrics of fits on sets. The time of a fit is divided among the sets that it predicts."""
    num_sets = len({number for _, number in parts})
    names = dict.fromkeys(name for fit, _ in parts for name in fit.metrics)
    return ArmResult(
        arm,
        average_scores([fit.scores[number] for fit, number in parts], num_sets),
        sum(fit.fit_seconds for fit, _ in parts) / num_sets,
        sum(fit.predict_seconds[number] for fit, number in parts),
        {name: fmean(fit.metrics[name] for fit, _ in parts if name in fit.metrics) for name in names},
        np.concatenate([fit.predictions[number] for fit, number in parts]),
    )


def unlabeled_rows(arm: Arm, subsample: Subsample) -> IntArray | None:
    """Return the rows whose inputs the fit of an arm sees without labels, if only the test set is scored.

    Returns
    -------
    numpy.ndarray or None
        Shape (n_test,); None for the base arm. A dose replaces the first extra rows by test rows, so doses are nested
        and paired.
    """
    if arm.kind == "base":
        return None
    num_peeked = arm.num_peeked(len(subsample.test))
    if num_peeked == 0:
        return subsample.extra
    if num_peeked == len(subsample.test):
        return subsample.test
    return np.concatenate([subsample.test[:num_peeked], subsample.extra[num_peeked:]])


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
