"""Measure verdicts on tables whose tasks share random seeds, so that a subsample moves all of them. Assert nothing.

The differences of two tasks in the same subsample have the given correlation. Each row compares tables that are judged
by subsamples, each averaged over tasks, with the rule for runs, whose tasks have independent draws. Coverage: of the
95% interval for these tasks, and of the one for other tasks, whose biases then have a standard deviation of one point.
Wrong biased: without a bias. Wrong equivalent: with a bias at the edge of the region. Standard errors of shares are in
parentheses; widths are relative to those of independent tasks.

    python benchmarks/statistics/shared_seeds.py [--repeats 2000] [--seed 0]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from simulated_trials import ALPHA, REGION, share

from peekbench.records import FloatArray
from peekbench_stats import independent_units
from peekbench_summary.biased_rule import Bias, Evidence, Levels, conclude
from peekbench_summary.estimates import MeanEstimate, estimate_other_tasks

SPREAD = 0.02  # standard deviation of the difference of a trial
SPREAD_OF_TASKS = 0.01
CORRELATIONS = (0.0, 0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True)
class Table:
    """How the trials of a table are drawn."""

    num_tasks: int
    num_subsamples: int
    correlation: float
    noise: str = "normal"
    """'skewed': exponential, shared and own parts alike. 'differing': tasks have 0.5 to 2 times the noise."""
    sizes: tuple[float, ...] = (1.0,)
    """Shares of the subsamples that tasks have, in turn."""

    def draw(self, rng: np.random.Generator) -> tuple[list[list[float]], list[list[int]]]:
        """Return the noise of the trials by task, and the numbers of their subsamples."""
        shape = (self.num_tasks, self.num_subsamples)
        shared, own = self._noise(rng, shape[1:]), self._noise(rng, shape)
        noise = SPREAD * (np.sqrt(self.correlation) * shared + np.sqrt(1 - self.correlation) * own)
        if self.noise == "differing":
            noise *= np.geomspace(0.5, 2.0, self.num_tasks)[:, None]
        tasks, numbers = [], []
        for position, values in enumerate(noise):
            count = max(2, round(self.sizes[position % len(self.sizes)] * self.num_subsamples))
            chosen = np.arange(count)  # the first seeds, as in tables whose slow tasks have fewer of them
            tasks.append(values[chosen].tolist())
            numbers.append(chosen.tolist())
        return tasks, numbers

    def _noise(self, rng: np.random.Generator, shape: Sequence[int]) -> FloatArray:
        return rng.exponential(size=shape) - 1 if self.noise == "skewed" else rng.normal(size=shape)

    def __str__(self) -> str:
        """Return the cells of the row."""
        unequal = "unequal, " * (len(self.sizes) > 1)
        return f"{self.num_tasks} | {self.num_subsamples} | {unequal}{self.noise} | {self.correlation:g}"


def list_tables() -> Iterator[Table]:
    """Yield the tables of all rows."""
    for num_tasks in (5, 25):
        for num_subsamples in (5, 20):
            for correlation in CORRELATIONS:
                yield Table(num_tasks, num_subsamples, correlation)
    for num_tasks in (5, 25):
        for correlation in (0.05, 0.2, 0.5):
            table = Table(num_tasks, 20, correlation)
            yield from (replace(table, noise="skewed"), replace(table, noise="differing"))
            yield from (replace(table, sizes=(1.0, 0.25)), replace(table, noise="differing", sizes=(1.0, 1.0, 0.25)))


def shift(tasks: Sequence[Sequence[float]], by: Sequence[float]) -> list[list[float]]:
    """Return the trials with a bias of each task."""
    return [[value + bias for value in task] for task, bias in zip(tasks, by, strict=True)]


def judge(tasks: list[list[float]], shared: Sequence[float]) -> tuple[str, MeanEstimate]:
    """Return the decision and the 95% interval."""
    bias = Bias(tasks, REGION, shared=shared)
    (evidence,) = Evidence.of_family([bias], ALPHA)
    return conclude(evidence, Levels(ALPHA, ALPHA)).decision, bias.estimate(ALPHA)


def measure(table: Table, repeats: int, rng: np.random.Generator) -> list[str]:
    """Return the cells of a row: of the rule for tables, then of the rule for runs."""
    covers: dict[str, list[bool]] = {f"{what} {rule}": [] for rule in ("table", "run") for what in
                                     ("these", "others", "biased", "equivalent")}  # fmt: skip
    widths: dict[str, list[float]] = {"table": [], "run": []}
    for _ in range(repeats):
        noise, numbers = table.draw(rng)
        edge = shift(noise, [REGION.half_width] * table.num_tasks)
        of_tasks = shift(noise, rng.normal(0, SPREAD_OF_TASKS, table.num_tasks).tolist())
        for rule in ("table", "run"):
            drawn = [noise, edge, of_tasks]
            shared: list[Sequence[float]] = [()] * len(drawn)
            if rule == "table":
                shared = [independent_units(tasks, numbers, shares_draws=True)[0] for tasks in drawn]
            decision, interval = judge(noise, shared[0])
            covers[f"biased {rule}"].append(decision.startswith("biased"))
            covers[f"these {rule}"].append(not interval.excludes_zero)
            widths[rule].append(interval.high - interval.low)
            covers[f"equivalent {rule}"].append(judge(edge, shared[1])[0] == "equivalent")
            others = estimate_other_tasks(of_tasks, 1 - ALPHA, shared=shared[2])
            covers[f"others {rule}"].append(not others.excludes_zero)
    ratio = np.mean(widths["table"]) / np.mean(widths["run"])
    return [*(share(flags) for flags in covers.values()), f"{ratio:.2f}"]


def main() -> None:
    """Print a table with a row for each design and correlation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    shares = ("coverage", "coverage, other tasks", "wrong biased", "wrong equivalent")
    names = [f"{name}{rule}" for rule in ("", " as runs") for name in shares]
    print(f"| tasks | subsamples | noise | correlation | {' | '.join(names)} | width |")
    print("|---" * (5 + len(names)) + "|")
    for number, table in enumerate(list_tables()):
        cells = measure(table, arguments.repeats, np.random.default_rng([arguments.seed, number]))
        print(f"| {table} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
