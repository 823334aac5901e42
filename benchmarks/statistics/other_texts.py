"""Measure how often intervals for other texts cover the truth, with known variances. Print a table, assert nothing.

Two kinds of designs: five tasks, each with a pool of texts from which subsamples of 200 test texts are drawn; and one
task whose texts are all tested by each of a few fits, such as those of training seeds. Both arms answer each text; the
difference of a text is -1, 0 or 1, and its expectation is the bias plus an effect of the text plus an effect of the
subsample, with known standard deviations. Each data set has new texts, so an interval that refers to the given texts
covers the true bias too rarely. Compared are the interval of `summary` (variance between subsamples), that of
`summary.texts`, and percentiles of the pigeonhole bootstrap (Owen 2007, https://doi.org/10.1214/07-AOAS122), which
draws texts and subsamples with replacement.

    python benchmarks/statistics/other_texts.py [--seeds-only] [--repeats 1000] [--bootstrap-repeats 200] [--seed 0]
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
RESAMPLES = 200


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


def bootstrap(data: list[tuple[FloatArray, IntArray]], pool: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return percentiles of the pigeonhole bootstrap."""
    means = np.zeros(RESAMPLES)
    for differences, rows in data:
        present, values = np.zeros((2, len(rows), pool))
        np.put_along_axis(present, rows, 1.0, axis=1)
        np.put_along_axis(values, rows, differences, axis=1)
        subsamples, texts = (
            rng.multinomial(size, np.full(size, 1 / size), size=RESAMPLES).astype(float) for size in values.shape
        )
        means += ((subsamples @ values) * texts).sum(axis=1) / ((subsamples @ present) * texts).sum(axis=1)
    low, high = np.quantile(means / len(data), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def main() -> None:
    """Print a row for each design and each pair of standard deviations."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--bootstrap-repeats", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds-only", action="store_true", help="Only the designs in which all fits test all texts.")
    arguments = parser.parse_args()
    error, bootstrap_error = (
        100 * (LEVEL * (1 - LEVEL) / repeats) ** 0.5 for repeats in (arguments.repeats, arguments.bootstrap_repeats)
    )
    print(f"Standard errors: {error:.1f} points, bootstrap {bootstrap_error:.1f} points.\n")
    print(
        "| tasks | pool | n | subsamples | sd of texts, subsamples | `summary` | `summary.texts` | pigeonhole | "
        "mean half-widths |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    designs = SEEDS if arguments.seeds_only else DESIGNS + SEEDS
    for number, ((num_tasks, *sizes), (text_sd, subsample_sd)) in enumerate(itertools.product(designs, SDS)):
        pool, num_test, subsamples = sizes
        rng = np.random.default_rng([arguments.seed, number])
        ends: list[list[tuple[float, float]]] = [[], [], []]
        for repeat in range(arguments.repeats):
            data = [simulate(pool, num_test, subsamples, text_sd, subsample_sd, rng) for _ in range(num_tasks)]
            tasks = [cross_texts(*task) for task in data]
            interval = cross_interval(tasks, LEVEL)
            assert interval is not None
            ends[0].append(given_texts(tasks))
            ends[1].append((interval.low, interval.high))
            if repeat < arguments.bootstrap_repeats:
                ends[2].append(bootstrap(data, pool, rng))
        limits = [np.array(each) for each in ends]
        covered = [((each[:, 0] <= BIAS) & (each[:, 1] >= BIAS)).mean() for each in limits]
        widths = "/".join(f"{100 * (each[:, 1] - each[:, 0]).mean() / 2:.2f}" for each in limits)
        shares = " | ".join(f"{share:.1%}" for share in covered)
        design = f"{num_tasks} | {pool} | {num_test} | {subsamples} | {text_sd:g}, {subsample_sd:g}"
        print(f"| {design} | {shares} | {widths} |", flush=True)


if __name__ == "__main__":
    main()
