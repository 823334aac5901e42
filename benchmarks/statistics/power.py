"""Compare the power that the analysis `power` predicts with simulations, on the accuracies of arXiv 2410.00179.

In every cell (num_test, model, and the average of both models), swap the arms test and extra at random within each
trial, so that there is no bias, and plant a bias in test. Print the predicted power, and how often a t test over these
tasks and sign flips of all trials detected the bias. Assert nothing.

    python benchmarks/statistics/power.py ACCURACIES --repeats 1000
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import norm, t

from peekbench import load_results
from peekbench.records import FloatArray, IntArray
from peekbench_power.detection import Criterion, compute_power, pilot_inflation, plan_subsamples
from peekbench_power.noise import ALL_MODELS, Noise, measure_noise, pair_trials
from peekbench_stats import welch_satterthwaite

BIASES = (0.0, 0.005, 0.01, 0.02)
ALPHA = 0.05
PILOT_SIZE, PILOT_BIAS = 200, 0.01  # num_test and target bias of the designs planned from pilots


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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the published accuracies")
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    results = load_results(arguments.folder / "few_shot", independent_tasks=True)
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
    print(f"largest difference between the t test and the prediction: {largest:.3f}\n")
    print("power of designs planned for 0.8 from pilots of 5 tasks and 3 subsamples")
    print(f"{'cell':>24} {'confidence':>10} {'mean':>6} {'10% of pilots below':>20} {'share above 0.8':>16}")
    for model in results["model"].unique():
        counts = np.stack([arm_counts(results, PILOT_SIZE, model, arm) for arm in ("extra", "test")])
        differences = (counts[1] - counts[0]) / PILOT_SIZE
        for confidence in (0.5, 0.8):
            powers = [plan_from_pilot(differences, confidence, rng) for _ in range(arguments.repeats)]
            quantile, share = np.quantile(powers, 0.1), np.mean(np.array(powers) >= 0.8)
            print(f"{model:>24} {confidence:10} {np.mean(powers):6.3f} {quantile:20.3f} {share:16.3f}", flush=True)


def plan_from_pilot(differences: FloatArray, confidence: float, rng: np.random.Generator) -> float:
    """Return the power for `PILOT_BIAS` of a design planned from 3 subsamples of 5 tasks, on the same tasks."""
    num_tasks, num_subsamples = differences.shape
    tasks = differences[rng.choice(num_tasks, 5, replace=False)]
    pilot = tasks[np.arange(5)[:, None], rng.integers(0, num_subsamples, size=(5, 3))] * rng.choice([-1, 1], (5, 3))
    variances = pilot.var(axis=1, ddof=1)
    degrees = float(welch_satterthwaite(variances, np.full(5, 2.0)))
    evenness = float(variances.sum() ** 2 / (5 * (variances**2).sum()))
    noise = Noise("pilot", float(variances.mean()), sampling=0.0, between=0.0, evenness=evenness)
    planned = noise.inflated(pilot_inflation(degrees, confidence))
    plan = plan_subsamples(planned, 5, None, PILOT_BIAS, Criterion(power=0.8, alpha=ALPHA))
    assert plan is not None
    squared_errors = (tasks**2).mean(axis=1) / plan.subsamples
    true_degrees = welch_satterthwaite(squared_errors, np.full(5, plan.subsamples - 1.0))
    return compute_power(PILOT_BIAS, float(np.sqrt(squared_errors.sum())) / 5, float(true_degrees), ALPHA)


if __name__ == "__main__":
    main()
