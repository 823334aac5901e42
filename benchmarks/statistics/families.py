"""Measure wrong verdicts with 2 to 5 subsamples, and if 20 methods are judged together. Assert nothing.

Data sets: the published accuracies at m=100 (FOLDER/few_shot) of one model and test size, from which tasks and
subsamples are drawn and whose arms are swapped at random, so that there is no bias; and simulated stable methods, whose
answers differ between the arms on two of 200 texts on average.

The first table is about single methods with few subsamples; for 'equivalent', a bias of one point, twice the region, is
planted. Each cell is the mean over the sources and the largest of them. The second is about families with 5 tasks and
20 subsamples; one method then gets the bias that its t test alone detects with 80% power, or 1.4 times this bias.
Standard errors are in parentheses.

    python benchmarks/statistics/families.py FOLDER [--repeats 1000] [--methods 20] [--seed 0]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.stats import norm
from simulated_trials import ALPHA, REGION, share

from peekbench import load_results
from peekbench.records import FloatArray
from peekbench.results import configurations
from peekbench_summary.biased_rule import Bias, Evidence, Levels, conclude

PLANTED = 0.01  # twice the region
SUBSAMPLES, TASKS = (2, 3, 5), (1, 2, 3, 5)
NUM_TASKS, NUM_SUBSAMPLES = 5, 20  # of a family
DETECTED = float(norm.ppf(1 - ALPHA / 2) + norm.ppf(0.8))  # standard errors of a bias found with 80% power
SIZES = (1.0, 1.4)  # of the planted bias, relative to the detectable one
ALONE = Levels(ALPHA, ALPHA)


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
    sources["stable, n=200"] = Source(np.stack([extra, extra + 2 * rng.binomial(changed, 0.5) - changed]) / 200, 200)
    return sources


def decide(source: Source, differences: FloatArray) -> str:
    """Return the verdict on a single method."""
    (evidence,) = Evidence.of_family([Bias(differences.tolist(), REGION, source.step)], ALPHA)
    return conclude(evidence, ALONE).decision


def is_biased(evidence: Evidence, levels: Levels) -> bool:
    """Return whether the verdict is 'biased'."""
    return conclude(evidence, levels).decision.startswith("biased")


def print_few(sources: dict[str, Source], repeats: int, rng: np.random.Generator) -> None:
    """Print a row for each number of subsamples and tasks."""
    print("| subsamples | tasks | wrongly biased | wrongly equivalent |\n|---|---|---|---|")
    for subsamples in SUBSAMPLES:
        for tasks in TASKS:
            wrong: list[list[float]] = [[], []]
            for source in sources.values():
                for bias, kind, column in ((0.0, "biased", 0), (PLANTED, "equivalent", 1)):
                    drawn = [source.draw(tasks, subsamples, bias, rng) for _ in range(repeats)]
                    flags = [decide(source, differences).startswith(kind) for differences in drawn]
                    wrong[column].append(float(np.mean(flags)))
            cells = " | ".join(f"{np.mean(column):.1%} ({max(column):.1%})" for column in wrong)
            print(f"| {subsamples} | {tasks} | {cells} |", flush=True)


def measure_family(source: Source, num_methods: int, repeats: int, rng: np.random.Generator) -> list[str]:
    """Return the cells of a row."""
    unadjusted, adjusted = [], []
    detected: dict[float, list[tuple[bool, bool]]] = {size: [] for size in SIZES}
    for _ in range(repeats):
        drawn = [source.draw(NUM_TASKS, NUM_SUBSAMPLES, 0.0, rng) for _ in range(num_methods)]
        family = Evidence.of_family([Bias(each.tolist(), REGION, source.step) for each in drawn], ALPHA)
        levels = Levels.of_family(family, ALPHA)
        unadjusted.append(any(is_biased(each, ALONE) for each in family))
        adjusted.append(any(is_biased(each, levels) for each in family))
        error = np.sqrt((drawn[0].var(axis=1, ddof=1) / NUM_SUBSAMPLES).sum()) / NUM_TASKS
        for size in SIZES:
            planted = (drawn[0] + size * DETECTED * error).tolist()
            (evidence,) = Evidence.of_family([Bias(planted, REGION, source.step)], ALPHA)
            together = Levels.of_family([evidence, *family[1:]], ALPHA)
            detected[size].append((evidence.p_zero <= ALPHA, evidence.p_zero <= together.zero))
    powers = [share([pair[part] for pair in pairs]) for pairs in detected.values() for part in (0, 1)]
    return [share(unadjusted), share(adjusted), *powers]


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the published accuracies")
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--methods", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    sources = load_sources(arguments.folder)
    print_few(sources, arguments.repeats, np.random.default_rng(arguments.seed))
    powers = " | ".join(f"{name}, {size:g} x" for size in SIZES for name in ("power alone", "power in the family"))
    print(f"\n| source | any biased, unadjusted | any biased, adjusted | {powers} |")
    print("|---" * (3 + 2 * len(SIZES)) + "|")
    for number, (name, source) in enumerate(sources.items()):
        rng = np.random.default_rng([arguments.seed, number])
        print(f"| {name} | {' | '.join(measure_family(source, arguments.methods, arguments.repeats, rng))} |")


if __name__ == "__main__":
    main()
