"""The number of subsamples that a design with planned looks will probably need."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import t

from peekbench.records import DesignPoint, PlannedDesign
from peekbench_power.detection import Criterion
from peekbench_power.noise import Noise
from peekbench_stats import levels_at

NUM_WALKS = 10_000
MIN_SUBSAMPLES = 2


@dataclass(frozen=True, slots=True)
class Expectation:
    """What to expect of a design with planned looks if the bias has a given size."""

    subsamples: float
    """Mean number of subsamples per task at which the run stops."""
    biased: float
    """Probability that it stops at 'biased'."""


def expect(noise: Noise, point: DesignPoint, design: PlannedDesign, bias: float, criterion: Criterion) -> Expectation:
    """Simulate the looks at one design point; the verdict on it alone decides when the run stops.

    Parameters
    ----------
    noise
        Noise of the method.
    point
        Sizes, tasks and maximum number of subsamples.
    design
        Planned looks, and the verdicts at which the run stops.
    bias
        True mean bias over these tasks.
    criterion
        Level and region of the verdicts.
    """
    sizes = np.array(
        [max(MIN_SUBSAMPLES, math.ceil(share * point.num_subsamples - 1e-9)) for share in design.looks.fractions]
    )
    errors, degrees = np.array(
        [noise.error_for_these_tasks(len(point.tasks), size, point.num_test) for size in sizes]
    ).T
    half_widths = t.ppf(1 - levels_at(design.looks, criterion.alpha) / 2, degrees) * errors
    # The sum of the first subsamples is a random walk; its increments have the variance of the added subsamples.
    steps = np.random.default_rng(0).normal(size=(NUM_WALKS, len(sizes))) * np.sqrt(np.diff(sizes, prepend=0))
    means = bias + steps.cumsum(axis=1) / sizes * errors[0] * math.sqrt(sizes[0])
    equivalent = np.abs(means) + half_widths <= criterion.region
    biased = (np.abs(means) > half_widths) & ~equivalent
    settled = (biased & ("biased" in design.stops_at)) | (equivalent & ("equivalent" in design.stops_at))
    settled[:, -1] = True
    stop = settled.argmax(axis=1)
    return Expectation(float(sizes[stop].mean()), float(biased[np.arange(NUM_WALKS), stop].mean()))
