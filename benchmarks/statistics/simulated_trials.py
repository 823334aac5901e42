"""Simulated trials that the code of reports judges, for benchmarks of verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from peekbench.records import FloatArray, Looks
from peekbench.records.verdicts import Advice
from peekbench_stats import level_after, level_at
from peekbench_summary.biased_rule import Bias, Conclusion, Evidence, Levels, LookLevels, Region, conclude
from peekbench_summary.forecast import settle

ALPHA, REGION = 0.05, Region(0.005)
UNPLANNED = Looks()
"""Looks at a run or a table that may be extended, whatever its reports say."""
Draw = Callable[[np.random.Generator, int, int], FloatArray]
"""Generator, number of tasks and of subsamples to biases of shape (n_tasks, n_subsamples)."""


class Method:
    """The trials of one method, which grow with a run.

    Parameters
    ----------
    draw
        Draws the noise.
    biases
        Bias of each task.
    step
        Distance between neighboring scores, if known. Scores are then rounded at random, which keeps their mean.
    region
        Region of practical equivalence.
    """

    def __init__(self, draw: Draw, biases: FloatArray, step: float | None, region: Region = REGION) -> None:
        self.draw, self.biases, self.step, self.region = draw, biases, step, region
        self.trials: FloatArray = np.empty((len(biases), 0))

    def extend(self, rng: np.random.Generator, number: int) -> None:
        """Draw more subsamples of each task."""
        new = self.draw(rng, len(self.biases), number) + self.biases[:, None]
        if self.step:
            new = np.floor(new / self.step + rng.random(new.shape)) * self.step
        self.trials = np.concatenate([self.trials, new], axis=1)

    def bias(self, looks: Looks, earlier: Sequence[int] = ()) -> Bias:
        """Return what a report knows."""
        count = self.trials.size
        levels = LookLevels(level_at(looks, count, earlier), lambda ratio: level_after(looks, ratio, count, earlier))
        return Bias(self.trials.tolist(), self.region, self.step, levels)


def judge(methods: Sequence[Method], looks: Looks, earlier: Sequence[int] = ()) -> list[tuple[Bias, Conclusion]]:
    """Judge methods as one family, as a report does."""
    biases = [method.bias(looks, earlier) for method in methods]
    family = Evidence.of_family(biases, ALPHA)
    levels = Levels.of_family(family, ALPHA)
    return [(bias, conclude(evidence, levels)) for bias, evidence in zip(biases, family, strict=True)]


def advice_on(bias: Bias, conclusion: Conclusion) -> Advice | None:
    """Return what would settle a verdict; None if it is not inconclusive, or no number is known."""
    settling = settle(bias, conclusion.alpha) if conclusion.decision == "inconclusive" else None
    return settling.advice if settling else None


def share(hits: Sequence[bool]) -> str:
    """Return a share with its standard error."""
    rate = float(np.mean(hits))
    return f"{rate:.1%} ({np.sqrt(max(rate * (1 - rate), 0.0) / len(hits)):.1%})"
