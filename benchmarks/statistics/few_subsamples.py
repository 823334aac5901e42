"""Measure how often verdicts, statements on single tasks and ties are wrong with 2 to 5 subsamples. Assert nothing.

Data sets: the published accuracies at m=100 (FOLDER/few_shot) of one model and test size, from which tasks and
subsamples are drawn and whose arms are swapped at random, so that there is no bias; and simulated stable methods, whose
answers differ between the arms on two of 200 texts on average. For 'equivalent', a bias of one point, twice the region,
is planted. For ties, four methods have scores drawn from the same distribution. Each cell is the mean over the nine
sources and the largest of them. With 1,000 data sets for each source, standard errors near 5% are 0.2 and 0.7 points.

    python benchmarks/statistics/few_subsamples.py FOLDER [--repeats 1000] [--seed 0]
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from peekbench import load_results
from peekbench.records import FloatArray
from peekbench.results import Configuration, configurations
from peekbench_summary.biased_rule import Bias, Evidence, Levels, Region, conclude
from peekbench_summary.families import count_biased_tasks
from peekbench_summary.leaderboard import find_differences

ALPHA = 0.05
REGION = Region(0.005)
PLANTED = 0.01  # twice the region
NUM_METHODS = 4
SUBSAMPLES, TASKS = (2, 3, 5), (1, 2, 3, 5)
STABLE = "stable, n=200"
MEASURES = ("biased", "equivalent", "single tasks", "ties")


class Source:
    """Scores of extra and test from which data sets are drawn.

    Parameters
    ----------
    scores
        Shape (2, n_tasks, n_subsamples): extra and test.
    num_test
        Number of test texts.
    """

    def __init__(self, scores: FloatArray, num_test: int) -> None:
        self.scores, self.step = scores, 1 / num_test

    def draw(self, num_tasks: int, num_subsamples: int, bias: float, rng: np.random.Generator) -> FloatArray:
        """Draw differences of shape (num_tasks, num_subsamples), with a bias rounded at random to whole texts."""
        tasks = rng.choice(self.scores.shape[1], num_tasks, replace=False)
        chosen = np.array([rng.choice(self.scores.shape[2], num_subsamples, replace=False) for _ in tasks])
        extra, test = self.scores[:, tasks[:, None], chosen]
        signs = rng.choice((-1, 1), size=extra.shape)
        planted = np.floor(bias / self.step + rng.random(extra.shape)) * self.step
        differences: FloatArray = signs * (test - extra) + planted
        return differences

    def draw_methods(self, num_tasks: int, num_subsamples: int, rng: np.random.Generator) -> list[Configuration]:
        """Draw scores of methods that do not differ."""
        tasks = rng.choice(self.scores.shape[1], num_tasks, replace=False)
        methods = []
        for method in range(NUM_METHODS):
            chosen = rng.integers(self.scores.shape[2], size=(num_tasks, num_subsamples))
            extra = self.scores[0][tasks[:, None], chosen]
            methods.append(_configuration(str(method), extra, self.step))
        return methods


def _configuration(name: str, extra: FloatArray, step: float) -> Configuration:
    by_task = {str(task): values for task, values in enumerate(extra.tolist())}
    subsamples = {task: list(range(len(values))) for task, values in by_task.items()}
    return Configuration(name, (name,), {"extra": by_task}, subsamples, (name, None, None, None), step=step)


def load_sources(folder: Path) -> dict[str, Source]:
    """Return the sources by name."""
    results = load_results(folder / "few_shot", independent_tasks=True)
    sources = {}
    for each in configurations(results[results["num_train"] == 100]).configurations:
        assert each.num_test is not None
        scores = np.array([list(each.scores[arm].values()) for arm in ("extra", "test")])
        sources[f"{each.key[1]}, n={each.num_test}"] = Source(scores, each.num_test)
    rng = np.random.default_rng(1)
    extra = rng.binomial(200, 0.7, size=(25, 100))
    changed = rng.poisson(2, size=extra.shape)
    sources[STABLE] = Source(np.stack([extra, extra + 2 * rng.binomial(changed, 0.5) - changed]) / 200, 200)
    return sources


def measure(
    source: Source, num_tasks: int, num_subsamples: int, repeats: int, rng: np.random.Generator
) -> Mapping[str, float]:
    """Return the shares of data sets in which something is wrong."""
    wrong = dict.fromkeys(MEASURES, 0)
    for _ in range(repeats):
        null, biased = (
            Bias(source.draw(num_tasks, num_subsamples, bias, rng).tolist(), REGION, source.step)
            for bias in (0.0, PLANTED)
        )
        levels = Levels(ALPHA, ALPHA)
        wrong["biased"] += conclude(Evidence.of_family([null], ALPHA)[0], levels).decision.startswith("biased")
        wrong["equivalent"] += conclude(Evidence.of_family([biased], ALPHA)[0], levels).decision == "equivalent"
        wrong["single tasks"] += sum(*count_biased_tasks([null], ALPHA)) > 0
        wrong["ties"] += bool(find_differences(source.draw_methods(num_tasks, num_subsamples, rng), 1 - ALPHA).pairs)
    return {name: count / repeats for name, count in wrong.items()}


def main() -> None:
    """Print a table with a row for each number of subsamples and tasks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the published accuracies")
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    sources = load_sources(arguments.folder)
    rng = np.random.default_rng(arguments.seed)
    print("| subsamples | tasks | wrongly biased | wrongly equivalent | wrong on a single task | ties split |")
    print("|---|---|---|---|---|---|")
    for num_subsamples in SUBSAMPLES:
        for num_tasks in TASKS:
            shares = [measure(source, num_tasks, num_subsamples, arguments.repeats, rng) for source in sources.values()]
            columns = [[share[name] for share in shares] for name in MEASURES]
            cells = " | ".join(f"{np.mean(column):.1%} ({max(column):.1%})" for column in columns)
            print(f"| {num_subsamples} | {num_tasks} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
