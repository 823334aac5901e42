"""Whether the analysis `power` promises what comes true, on the accuracies that arXiv 2410.00179 published.

In every cell (num_test, model, and both models averaged) the arms test and extra are swapped at random within each
trial, which makes a bias of zero, and a bias is planted in test. Printed beside the power that the table at hand
promises: how often a t test over these tasks, and sign flips of all trials, saw it. Asserts nothing.

    python benchmarks/power.py ACCURACIES --repeats 1000
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import norm, t

from peekbench import load_results
from peekbench.records import FloatArray, IntArray
from peekbench_power.detection import power
from peekbench_power.measure import OF_ALL_MODELS, biases, measured

BIASES = (0.0, 0.005, 0.01, 0.02)
SIZE = 0.05


def arm_counts(results: pd.DataFrame, num_test: int, model: str, arm: str) -> IntArray:
    """Right answers, shape (tasks, subsamples)."""
    chosen = (results["num_test"] == num_test) & (results["model"] == model) & (results["arm"] == arm)
    wide = results[chosen].pivot(index="task", columns="subsample", values="num_correct")
    return wide.to_numpy(dtype="int64")


def plant(counts: IntArray, num_test: int, bias: float, rng: np.random.Generator) -> FloatArray:
    """Differences of accuracies after swapping arms at random and adding a bias, rounded at random to whole texts.

    `counts` has shape (arms extra and test, ...); the result has what is left of it.
    """
    swap = rng.random(counts.shape[1:]) < 0.5
    extra, test = np.where(swap, counts[::-1], counts)
    more = np.floor(bias * num_test + rng.random(test.shape))
    differences: FloatArray = (np.clip(test + more, 0, num_test) - extra) / num_test
    return differences


def rejections(differences: FloatArray) -> tuple[bool, bool]:
    """Of zero mean: by Welch's t over these tasks, by sign flips of all trials; differences are (tasks, subsamples)."""
    tasks, subsamples = differences.shape
    squared = differences.var(axis=1, ddof=1) / subsamples
    degrees = squared.sum() ** 2 / (squared**2 / (subsamples - 1)).sum()
    statistic = differences.mean() / np.sqrt(squared.sum()) * tasks
    flips = differences.sum() / np.sqrt((differences**2).sum())  # near normal under random signs of so many trials
    return abs(statistic) > t.ppf(1 - SIZE / 2, degrees), abs(flips) > norm.ppf(1 - SIZE / 2)


def main() -> None:
    """Print a line for each cell and bias."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the published accuracies")
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    results = load_results(arguments.folder / "few_shot")
    promised = {
        (label, one.num_test): one
        for label, _, sizes, _ in measured(biases(results), is_accuracy=True)
        for one in sizes
    }
    rng = np.random.default_rng(arguments.seed)
    worst = 0.0
    print(f"{'cell':>24} {'bias':>6} {'promised':>9} {'t test':>7} {'flips':>7}")
    for (label, num_test), one in promised.items():
        assert num_test is not None
        models = [name for name in results["model"].unique() if label in (name, OF_ALL_MODELS)]
        counts = np.stack(
            [[arm_counts(results, num_test, model, arm) for model in models] for arm in ("extra", "test")]
        )
        for bias in BIASES:
            found = [rejections(plant(counts, num_test, bias, rng).mean(axis=0)) for _ in range(arguments.repeats)]
            by_t, by_flips = np.mean(found, axis=0)
            chance = power(bias, np.sqrt(one.squared_error), one.degrees, SIZE) if bias else SIZE
            worst = max(worst, abs(by_t - chance))
            name = f"{label}, n={num_test}"
            print(f"{name:>24} {bias:6.3f} {chance:9.3f} {by_t:7.3f} {by_flips:7.3f}", flush=True)
    print(f"largest distance of the t test from the promise: {worst:.3f}")


if __name__ == "__main__":
    main()
