"""Measure errors and savings of runs with planned looks, on the published accuracies. Print a table, assert nothing.

In every published configuration (a model, or the average of both, at one num_test), draw differences of each task with
replacement and swap test and extra at random, so that there is no bias. A fixed design has 100 subsamples per task. A
sequential one has the maximum that gives it the same power (80% at the detectable bias of the fixed design), and looks
20 times. Columns: how often the bias is wrongly called biased when the run looks without adjustment,
with group-sequential levels, with a confidence sequence; the power of the fixed and of the group-sequential design to
exclude zero at the detectable bias; and the mean number of subsamples of the group-sequential design, relative to the
fixed one, without bias, at the detectable bias and at twice this bias. Runs stop at biased or equivalent; for errors
and power, at biased only.

    python benchmarks/statistics/sequential.py FOLDER [--repeats 2000] [--looks 20]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import norm, t

from peekbench import load_results
from peekbench.records import FloatArray
from peekbench_stats import confidence_sequence_level, group_sequential_levels, welch_satterthwaite
from peekbench_summary.forecast import minimum_detectable

ALPHA, POWER, REGION = 0.05, 0.8, 0.005
FIXED = 100  # subsamples per task
BATCH = 250  # data sets


def published_differences(results: pd.DataFrame) -> Iterator[tuple[str, FloatArray]]:
    """Yield the name of each configuration and its differences, shape (n_tasks, n_subsamples)."""
    for num_test in sorted(results["num_test"].unique()):
        arms = results[results["num_test"] == num_test].pivot(
            index=["model", "task", "subsample"], columns="arm", values="score"
        )
        differences = (arms["test"] - arms["extra"]).unstack("subsample")
        by_model = {str(model): differences.loc[model].to_numpy() for model in differences.index.levels[0]}
        for model, values in {**by_model, "both": sum(by_model.values()) / len(by_model)}.items():
            yield f"{model}, n={num_test}", values


def resample(differences: FloatArray, number: int, repeats: int, rng: np.random.Generator) -> FloatArray:
    """Draw differences without bias, shape (repeats, n_tasks, number)."""
    num_tasks, num_subsamples = differences.shape
    columns = rng.integers(0, num_subsamples, size=(repeats, num_tasks, number))
    signs = rng.choice([-1.0, 1.0], size=columns.shape)
    samples: FloatArray = differences[np.arange(num_tasks)[:, None], columns] * signs
    return samples


@dataclass(frozen=True)
class Estimates:
    """Estimates of many data sets at each look, shape (repeats, n_looks)."""

    means: FloatArray
    errors: FloatArray
    degrees: FloatArray


def estimate(samples: FloatArray, sizes: list[int]) -> Estimates:
    """Compute the average over tasks at each look, as `summary` does."""
    num_tasks = samples.shape[1]
    positions = np.array(sizes) - 1
    counts = np.array(sizes, dtype=float)
    sums, squares = (np.cumsum(values, axis=2)[:, :, positions] for values in (samples, samples**2))
    variances = (squares - sums**2 / counts) / (counts - 1)
    squared_errors = np.moveaxis(variances / counts, 1, 2)  # (repeats, n_looks, n_tasks)
    degrees = welch_satterthwaite(squared_errors, np.broadcast_to(counts[:, None] - 1, squared_errors.shape))
    return Estimates((sums / counts).mean(axis=1), np.sqrt(squared_errors.sum(axis=2)) / num_tasks, degrees)


def decide(estimates: Estimates, bias: float, levels: FloatArray, region: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Return for each data set whether it is called biased, and the position of the look at which it stops."""
    half_widths = t.ppf(1 - levels / 2, estimates.degrees) * estimates.errors
    means = estimates.means + bias
    equivalent = np.abs(means) + half_widths <= region
    biased = (np.abs(means) > half_widths) & ~equivalent
    settled = biased | equivalent
    settled[:, -1] = True
    stop = settled.argmax(axis=1)
    return biased[np.arange(len(stop)), stop], stop


def inflation(fractions: list[float], rng: np.random.Generator) -> float:
    """Return the ratio of the maximum of a group-sequential design to a fixed design with the same power."""
    bounds = norm.isf(group_sequential_levels(fractions, ALPHA) / 2)
    times = np.array(fractions)
    walks = rng.normal(size=(200_000, len(times))) * np.sqrt(np.diff(times, prepend=0.0))
    walks = walks.cumsum(axis=1) / np.sqrt(times)
    drift = norm.isf(ALPHA / 2) + norm.ppf(POWER)

    def missing_power(ratio: float) -> float:
        crossed = np.abs(walks + drift * math.sqrt(ratio) * np.sqrt(times)) >= bounds
        return float(crossed.any(axis=1).mean()) - POWER

    return float(brentq(missing_power, 1.0, 1.5, xtol=1e-4))


def main() -> None:
    """Print one row for each configuration."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the published accuracies")
    parser.add_argument("--repeats", type=int, default=10_000)
    parser.add_argument("--looks", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    fractions = [look / arguments.looks for look in range(1, arguments.looks + 1)]
    maximum = math.ceil(FIXED * inflation(fractions, rng))
    sizes = [max(2, math.ceil(fraction * maximum - 1e-9)) for fraction in fractions]
    configurations = list(published_differences(load_results(arguments.folder / "few_shot", independent_tasks=True)))
    print(f"{arguments.looks} looks, maximum {maximum} for a fixed {FIXED}, {arguments.repeats} data sets per row\n")
    heads = ("configuration", "wrong: no adjustment", "group-sequential", "confidence sequence", "power: fixed",
             "group-sequential", "subsamples: no bias", "detectable", "twice")  # fmt: skip
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for name, differences in configurations:
        batches = [simulate(differences, sizes, rng) for _ in range(math.ceil(arguments.repeats / BATCH))]
        shares = np.mean(batches, axis=0)
        cells = [f"{share:.1%}" for share in shares[:5]] + [f"{share:.0%}" for share in shares[5:]]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    errors = (math.sqrt(share * (1 - share) / arguments.repeats) for share in (0.05, 0.2, 0.8))
    print("\nStandard errors: " + ", ".join(f"{error:.1%}" for error in errors) + " at 5%, 20% and 80%.")


def simulate(differences: FloatArray, sizes: list[int], rng: np.random.Generator) -> list[float]:
    """Return the cells of the first table for one batch of data sets."""
    shares = [size / sizes[-1] for size in sizes]
    sequential = group_sequential_levels(shares, ALPHA)
    open_ended = np.array([confidence_sequence_level(share, ALPHA) for share in shares])
    squared_errors = (differences**2).mean(axis=1) / FIXED
    degrees = welch_satterthwaite(squared_errors, np.full(len(squared_errors), FIXED - 1.0))
    error = math.sqrt(squared_errors.sum()) / len(squared_errors)
    detectable = minimum_detectable(error, float(degrees), ALPHA)
    assert detectable is not None
    samples = resample(differences, sizes[-1], BATCH, rng)
    looks, fixed = estimate(samples, sizes), estimate(samples, [FIXED])
    wrong = [decide(looks, 0.0, levels)[0].mean() for levels in (np.full(len(sizes), ALPHA), sequential, open_ended)]
    powers = [decide(fixed, detectable, np.array([ALPHA]))[0].mean(), decide(looks, detectable, sequential)[0].mean()]
    stops = [decide(looks, times * detectable, sequential, REGION)[1] for times in (0, 1, 2)]
    return [float(cell) for cell in (*wrong, *powers, *(np.array(sizes)[stop].mean() / FIXED for stop in stops))]


if __name__ == "__main__":
    main()
