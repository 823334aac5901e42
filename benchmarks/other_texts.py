"""Measure how often intervals for other texts cover the truth, with known variances. Print a table, assert nothing.

Five tasks, each with a pool of texts from which subsamples of 200 test texts are drawn. Both arms classify each text;
the difference of a text is -1, 0 or 1, and its expectation is the bias plus an effect of the text plus an effect of the
subsample, with known standard deviations. Each data set has new texts, so an interval that refers to the given texts
covers the true bias too rarely. Compared are the interval of `summary` (variance between subsamples), that of
`summary.texts`, and percentiles of the pigeonhole bootstrap (Owen 2007, https://doi.org/10.1214/07-AOAS122), which
draws texts and subsamples with replacement.

    python benchmarks/other_texts.py [--repeats 1000] [--bootstrap-repeats 200] [--seed 0]
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
from scipy.stats import t as student_t

from peekbench.records import FloatArray, IntArray
from peekbench_stats import CrossedMean, cross_interval, cross_texts, welch_satterthwaite

TASKS = 5
NUM_TEST = 200
BIAS = 0.01
DISCORDANT = 0.3
"""Probability that the two arms classify a text differently."""
DESIGNS = ((400, 5), (400, 50), (2000, 50))
"""Texts of each pool, and subsamples."""
SDS = ((0.0, 0.0), (0.1, 0.05), (0.2, 0.05))
"""Standard deviations of the effects of texts and of subsamples."""
LEVEL = 0.95
RESAMPLES = 200


def simulate(
    pool: int, subsamples: int, text_sd: float, subsample_sd: float, rng: np.random.Generator
) -> tuple[FloatArray, IntArray]:
    """Return differences and text numbers of one task: arrays of shape (subsamples, NUM_TEST)."""
    of_texts = text_sd * rng.choice([-1.0, 1.0], size=pool)
    of_subsamples = subsample_sd * rng.choice([-1.0, 1.0], size=(subsamples, 1))
    rows = np.array([rng.permutation(pool)[:NUM_TEST] for _ in range(subsamples)])
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
    arguments = parser.parse_args()
    error, bootstrap_error = (
        100 * (LEVEL * (1 - LEVEL) / repeats) ** 0.5 for repeats in (arguments.repeats, arguments.bootstrap_repeats)
    )
    print(f"Standard errors: {error:.1f} points, bootstrap {bootstrap_error:.1f} points.\n")
    print(
        "| pool | subsamples | sd of texts, subsamples | `summary` | `summary.texts` | pigeonhole | mean half-widths |"
    )
    print("|---|---|---|---|---|---|---|")
    for number, ((pool, subsamples), (text_sd, subsample_sd)) in enumerate(itertools.product(DESIGNS, SDS)):
        rng = np.random.default_rng([arguments.seed, number])
        ends: list[list[tuple[float, float]]] = [[], [], []]
        for repeat in range(arguments.repeats):
            data = [simulate(pool, subsamples, text_sd, subsample_sd, rng) for _ in range(TASKS)]
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
        print(f"| {pool} | {subsamples} | {text_sd:g}, {subsample_sd:g} | {shares} | {widths} |", flush=True)


if __name__ == "__main__":
    main()
