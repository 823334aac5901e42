"""Compare the power that the analysis `power` predicts with simulations, on the accuracies of arXiv 2410.00179.

In every cell (num_test, model, and the average of both models), swap the arms test and extra at random within each
trial, so that there is no bias, and plant a bias in test. Print the predicted power, and how often a t test over these
tasks and sign flips of all trials detected the bias. Assert nothing.

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
from peekbench_power.detection import compute_power
from peekbench_power.measure import ALL_MODELS, measure_noise, pair_trials
from peekbench_stats import welch_satterthwaite

BIASES = (0.0, 0.005, 0.01, 0.02)
ALPHA = 0.05


def arm_counts(results: pd.DataFrame, num_test: int, model: str, arm: str) -> IntArray:
    """Return numbers of correct answers, shape (tasks, subsamples)."""
    selected = (results["num_test"] == num_test) & (results["model"] == model) & (results["arm"] == arm)
    wide = results[selected].pivot(index="task", columns="subsample", values="num_correct")
    return wide.to_numpy(dtype="int64")


def plant_bias(counts: IntArray, num_test: int, bias: float, rng: np.random.Generator) -> FloatArray:
    """Swap arms at random, add a bias rounded at random to whole texts, and return differences of accuracies.

    Parameters
    ----------
    counts
        Numbers of correct answers of extra and test, shape (2, ...).
    num_test
        Number of test texts of a subsample.
    bias
        Planted bias, a fraction.
    rng
        Source of randomness.

    Returns
    -------
    array of shape (...)
    """
    swap = rng.random(counts.shape[1:]) < 0.5
    extra, test = np.where(swap, counts[::-1], counts)
    more = np.floor(bias * num_test + rng.random(test.shape))
    differences: FloatArray = (np.clip(test + more, 0, num_test) - extra) / num_test
    return differences


def reject_zero(differences: FloatArray) -> tuple[bool, bool]:
    """Test for a zero mean by Welch's t test over these tasks, and by sign flips of all trials.

    Parameters
    ----------
    differences
        Paired differences, shape (tasks, subsamples).
    """
    num_tasks, num_subsamples = differences.shape
    squared_errors = differences.var(axis=1, ddof=1) / num_subsamples
    degrees = welch_satterthwaite(squared_errors, np.full(num_tasks, num_subsamples - 1.0))
    statistic = differences.mean() / np.sqrt(squared_errors.sum()) * num_tasks
    flips = differences.sum() / np.sqrt((differences**2).sum())  # nearly normal under random signs of many trials
    return abs(statistic) > t.ppf(1 - ALPHA / 2, degrees), abs(flips) > norm.ppf(1 - ALPHA / 2)


def main() -> None:
    """Print a line for each cell and bias."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the published accuracies")
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    results = load_results(arguments.folder / "few_shot")
    cells = {
        (method.label, size.num_test): size
        for method in measure_noise(pair_trials(results), is_accuracy=True)
        for size in method.measurements
    }
    rng = np.random.default_rng(arguments.seed)
    largest = 0.0
    print(f"{'cell':>24} {'bias':>6} {'predicted':>9} {'t test':>7} {'flips':>7}")
    for (label, num_test), size in cells.items():
        assert num_test is not None
        models = [name for name in results["model"].unique() if label in (name, ALL_MODELS)]
        counts = np.stack(
            [[arm_counts(results, num_test, model, arm) for model in models] for arm in ("extra", "test")]
        )
        for bias in BIASES:
            rejections = [
                reject_zero(plant_bias(counts, num_test, bias, rng).mean(axis=0)) for _ in range(arguments.repeats)
            ]
            by_t, by_flips = np.mean(rejections, axis=0)
            predicted = compute_power(bias, np.sqrt(size.squared_error), size.degrees, ALPHA) if bias else ALPHA
            largest = max(largest, abs(by_t - predicted))
            name = f"{label}, n={num_test}"
            print(f"{name:>24} {bias:6.3f} {predicted:9.3f} {by_t:7.3f} {by_flips:7.3f}", flush=True)
    print(f"largest difference between the t test and the prediction: {largest:.3f}")


if __name__ == "__main__":
    main()
