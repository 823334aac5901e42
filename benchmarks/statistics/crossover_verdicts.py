"""Measure how often verdicts on real crossover trials are right. Print tables, assert nothing.

Each method is run on real texts, or its run in FOLDER is resumed, and the biases of its trials of two and of four sets
form a pool of each task. Data sets of 5, 10 and 20 subsamples per task are drawn from the pools with replacement, so
the true bias is the mean of the pools. Columns:

- coverage: of the first interval, whose level is 96%;
- wrong 'biased', swapped: own and other sets are swapped at random in each trial, so there is no bias;
- wrong 'biased', centered: the mean of each task is subtracted;
- wrong 'equivalent': centered, with a bias just outside the region;
- power: swapped, with the bias that Student's t test would find in 80% of runs if the noise were normal, relative to
  these 80%.

The last rows judge all methods as one family. Errors are then those of any method.

    python benchmarks/statistics/crossover_verdicts.py FOLDER [--subsamples 30] [--repeats 1000]
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from crossover_runs import CLASSIC, METHODS, contained_biases, fit_scores, num_test, use_model
from simulated_trials import ALPHA, REGION, UNPLANNED, Draw, Method, judge, share

from peekbench.records import FloatArray
from peekbench_stats import level_at, welch_satterthwaite
from peekbench_summary.biased_rule import Bias, Conclusion
from peekbench_summary.power.detection import Criterion, minimum_detectable

CELLS = ((2, 5), (2, 10), (2, 20), (4, 10))
"""Sets of a trial, and subsamples of each task."""
OUTSIDE = REGION.half_width + 1e-4
POWER = 0.8


@dataclass(frozen=True, slots=True)
class Pool:
    """Biases of real trials, from which data sets are drawn."""

    values: FloatArray
    """Shape (n_tasks, n_trials)."""
    step: float
    """Distance between neighboring scores."""

    @classmethod
    def of(cls, scores: FloatArray, sets: int, texts: int) -> Pool:
        """Return the pool of trials of some sets, from `fit_scores`; disjoint sets form different trials."""
        starts = range(0, scores.shape[-1] - sets + 1, sets)
        parts = [scores[..., start : start + sets, start : start + sets] for start in starts]
        values = np.concatenate([contained_biases(part, sets)[..., 0] for part in parts], axis=1)
        return cls(values, 1 / (texts * sets * (sets - 1)))

    def measured(self, rng: np.random.Generator, tasks: int, size: int) -> FloatArray:
        """Draw biases."""
        columns = rng.integers(self.values.shape[1], size=(tasks, size))
        sample: FloatArray = self.values[np.arange(tasks)[:, None], columns]
        return sample

    def centered(self, rng: np.random.Generator, tasks: int, size: int) -> FloatArray:
        """Draw biases without the mean of their task."""
        sample: FloatArray = self.measured(rng, tasks, size) - self.values.mean(axis=1, keepdims=True)
        return sample

    def swapped(self, rng: np.random.Generator, tasks: int, size: int) -> FloatArray:
        """Draw biases whose own and other sets are swapped at random."""
        sample: FloatArray = self.measured(rng, tasks, size) * rng.choice([-1.0, 1.0], (tasks, size))
        return sample

    def method(self, draw: Draw, bias: float = 0.0) -> Method:
        """Return a method without trials."""
        return Method(draw, np.full(len(self.values), bias), self.step)

    def detectable(self, size: int) -> float:
        """Return the bias that a t test on the swapped trials of a run finds with the nominal power."""
        squared_errors = (self.values**2).mean(axis=1) / size
        degrees = float(welch_satterthwaite(squared_errors, np.full(len(squared_errors), size - 1.0)))
        error = float(np.sqrt(squared_errors.sum())) / len(squared_errors)
        detected = minimum_detectable(error, degrees, Criterion(POWER, level_at(UNPLANNED)(ALPHA)))
        assert detected is not None
        return detected


@dataclass(frozen=True, slots=True)
class Cell:
    """Simulated runs of a family of methods with some subsamples."""

    pools: Sequence[Pool]
    size: int
    repeats: int
    rng: np.random.Generator

    def coverage(self) -> list[bool]:
        """Return whether the intervals of first reports contain the means of the pools."""
        hits = []
        for _ in range(self.repeats):
            methods = [pool.method(pool.measured) for pool in self.pools]
            for (bias, conclusion), pool in zip(self._judge(methods), self.pools, strict=True):
                estimate = bias.estimate(conclusion.alpha)  # not extended to zero
                hits.append(estimate.low <= pool.values.mean() <= estimate.high)
        return hits

    def any_decision(self, kind: str, make: Callable[[Pool], Method]) -> list[bool]:
        """Return whether first reports of runs make a decision of a kind about any method."""
        made = ([c.decision for _, c in self._judge(list(map(make, self.pools)))] for _ in range(self.repeats))
        return [any(decision.startswith(kind) for decision in decisions) for decisions in made]

    def finds_detectable(self) -> list[bool]:
        """Return whether the interval of the only method is above zero, if its bias is detectable."""
        (pool,) = self.pools
        bias = pool.detectable(self.size)
        judged = (self._judge([pool.method(pool.swapped, bias)]) for _ in range(self.repeats))
        return [conclusion.estimate.low > 0 for ((_, conclusion),) in judged]

    def _judge(self, methods: Sequence[Method]) -> list[tuple[Bias, Conclusion]]:
        for method in methods:
            method.extend(self.rng, self.size)
        return judge(methods, UNPLANNED)

    def cells(self) -> list[str]:
        """Return the cells that tables of methods and of families share."""
        swapped = self.any_decision("biased", lambda pool: pool.method(pool.swapped))
        centered = self.any_decision("biased", lambda pool: pool.method(pool.centered))
        outside = self.any_decision("equivalent", lambda pool: pool.method(pool.centered, OUTSIDE))
        return [*map(share, (self.coverage(), swapped, centered, outside))]


def print_rows(pools: Mapping[str, Mapping[int, Pool]], repeats: int, seed: int) -> None:
    """Print a row for each method, and then for the family of all methods, with each design."""
    print(
        "| method | sets | subsamples | coverage | wrong 'biased': swapped | centered "
        "| wrong 'equivalent' | power |\n" + "|---" * 8 + "|"
    )
    families = {name: [by_sets] for name, by_sets in pools.items()}
    if len(pools) > 1:
        families[f"family of {len(pools)}"] = list(pools.values())
    for name, members in families.items():
        for sets, size in CELLS:
            rng = np.random.default_rng([seed, zlib.crc32(name.encode()), sets, size])
            cell = Cell([by_sets[sets] for by_sets in members], size, max(100, repeats // len(members)), rng)
            cells = [name, str(sets), str(size), *cell.cells()]
            if len(members) == 1:
                cells.append(f"{np.mean(cell.finds_detectable()) / POWER:.2f}")
            print("| " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Run or resume the methods, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", nargs="+", default=["docstrings.all"])
    parser.add_argument("--methods", nargs="+", default=list(CLASSIC), choices=list(METHODS))
    parser.add_argument("--sets", type=int, default=5)
    parser.add_argument("--subsamples", type=int, default=30)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", default="", help="model of the method tapt-model")
    arguments = parser.parse_args()
    use_model(arguments.model)
    pools: dict[str, dict[int, Pool]] = {}
    for method in arguments.methods:
        design = arguments.subsamples, arguments.sets, arguments.workers
        scores = fit_scores(arguments.folder, method, arguments.tasks, *design)
        pools[method] = {sets: Pool.of(scores, sets, num_test(method)) for sets, _ in CELLS}
    print_rows(pools, arguments.repeats, arguments.seed)


if __name__ == "__main__":
    main()
