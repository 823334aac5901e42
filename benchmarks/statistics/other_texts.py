"""Measure how often intervals for other texts cover the truth, with known variances. Print a table, assert nothing.

Two kinds of designs: five tasks, each with a pool of texts from which subsamples of 200 test texts are drawn; and one
task whose texts are all tested by each of a few fits, such as those of training seeds. Both arms answer each text; the
difference of a text is -1, 0 or 1, and its expectation is the bias plus an effect of the text plus an effect of the
subsample, with known standard deviations. Each data set has new texts, so an interval that refers to the given texts
covers the true bias too rarely. Compared are the interval of `summary` (variance between subsamples) and that of
`summary.texts`.

    python benchmarks/statistics/other_texts.py [--repeats 1000] [--seed 0]
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
from scipy.stats import t as student_t

from peekbench.records import FloatArray, IntArray
from peekbench_stats import CrossedMean, cross_interval, cross_texts, welch_satterthwaite

BIAS = 0.01
DISCORDANT = 0.4
"""Probability that the two arms classify a text differently."""
DESIGNS = ((5, 400, 200, 5), (5, 400, 200, 50), (5, 2000, 200, 50))
"""Tasks, texts of each pool, test texts and subsamples."""
SEEDS = tuple((1, texts, texts, seeds) for texts in (100, 500) for seeds in (2, 3, 5, 10))
"""The same for fits that all test the same texts."""
SDS = ((0.0, 0.0), (0.1, 0.05), (0.2, 0.05))
"""Standard deviations of the effects of texts and of subsamples."""
LEVEL = 0.95


def simulate(
    pool: int, num_test: int, subsamples: int, text_sd: float, subsample_sd: float, rng: np.random.Generator
) -> tuple[FloatArray, IntArray]:
    """Return differences and text numbers of one task: arrays of shape (subsamples, num_test)."""
    of_texts = text_sd * rng.choice([-1.0, 1.0], size=pool)
    of_subsamples = subsample_sd * rng.standard_normal((subsamples, 1))
    rows = np.array([rng.permutation(pool)[:num_test] for _ in range(subsamples)])
    expected = BIAS + of_texts[rows] + of_subsamples
    is_discordant = rng.random(rows.shape) < DISCORDANT
    is_up = rng.random(rows.shape) < (1 + expected / DISCORDANT) / 2
    return np.where(is_discordant, np.where(is_up, 1.0, -1.0), 0.0), rows


def given_texts(tasks: list[CrossedMean]) -> tuple[float, float]:
    """Return the interval of `summary`, which refers to the given texts."""
    variances = [task.subsample_variance for task in tasks]
    degrees = welch_satterthwaite(variances, [task.degrees for task in tasks])
    half = student_t.ppf((1 + LEVEL) / 2, degrees) * np.sqrt(sum(variances)) / len(tasks)
    mean = np.mean([task.mean for task in tasks])
    return float(mean - half), float(mean + half)


def main() -> None:
    """Print a row for each design and each pair of standard deviations."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    error = 100 * (LEVEL * (1 - LEVEL) / arguments.repeats) ** 0.5
    print(f"Standard error: {error:.1f} points.\n")
    print(
        "| tasks | pool | n | subsamples | sd of texts, subsamples | `summary` | `summary.texts` | mean half-widths |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for number, ((num_tasks, *sizes), (text_sd, subsample_sd)) in enumerate(itertools.product(DESIGNS + SEEDS, SDS)):
        pool, num_test, subsamples = sizes
        rng = np.random.default_rng([arguments.seed, number])
        ends: list[list[tuple[float, float]]] = [[], []]
        for _ in range(arguments.repeats):
            data = [simulate(pool, num_test, subsamples, text_sd, subsample_sd, rng) for _ in range(num_tasks)]
            tasks = [cross_texts(*task) for task in data]
            interval = cross_interval(tasks, LEVEL)
            assert interval is not None
            ends[0].append(given_texts(tasks))
            ends[1].append((interval.low, interval.high))
        limits = [np.array(each) for each in ends]
        covered = [((each[:, 0] <= BIAS) & (each[:, 1] >= BIAS)).mean() for each in limits]
        widths = "/".join(f"{100 * (each[:, 1] - each[:, 0]).mean() / 2:.2f}" for each in limits)
        shares = " | ".join(f"{share:.1%}" for share in covered)
        design = f"{num_tasks} | {pool} | {num_test} | {subsamples} | {text_sd:g}, {subsample_sd:g}"
        print(f"| {design} | {shares} | {widths} |", flush=True)


if __name__ == "__main__":
    main()
