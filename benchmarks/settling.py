"""Measure how often the advice of `summary` on additional subsamples is right. Print a table, assert nothing.

Draw data sets of 5, 10 and 20 subsamples from the published accuracies, with replacement and with test and extra
swapped at random, with no bias and with a bias at the edge of the region. For those whose verdict is inconclusive, draw
as many more subsamples as advised. The advice is right if the verdict is then equivalent without a bias, and biased up
with it. The advice on a bias is about the side of the observed mean, so data sets with a negative mean are left out
there. Also printed: the median number of subsamples advised.

The second table compares the forecast of `power` that the verdict is equivalent if there is no bias with the share of
data sets in which it is, for several numbers of subsamples.

    python benchmarks/settling.py FOLDER [--repeats 1000]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.stats import t
from sequential import estimate, published_differences, resample

from peekbench import load_results
from peekbench.records import FloatArray
from peekbench.results import decide
from peekbench_power.detection import equivalence_power
from peekbench_stats import welch_satterthwaite
from peekbench_summary.estimates import estimate_these_tasks
from peekbench_summary.evidence import Bias
from peekbench_summary.region import Region
from peekbench_summary.sample_size import settle

LEVEL, REGION = 0.95, 0.005
SIZES = (5, 10, 20)
PLANNED = (5, 10, 20, 50, 100, 200)  # subsamples for which equivalence is forecast
NUM_FORECASTS = 2000  # data sets
MAX_DRAWN = 20_000  # additional subsamples that are simulated


def draw(differences: FloatArray, number: int, bias: float, rng: np.random.Generator) -> FloatArray:
    """Draw subsamples of each task, shape (n_tasks, number)."""
    num_tasks, num_subsamples = differences.shape
    columns = rng.integers(0, num_subsamples, size=(num_tasks, number))
    values: FloatArray = differences[np.arange(num_tasks)[:, None], columns] * rng.choice([-1.0, 1.0], columns.shape)
    return values + bias


def simulate(
    differences: FloatArray, size: int, bias: float, repeats: int, rng: np.random.Generator
) -> tuple[float, float, int]:
    """Return how often the advice is right, the median number advised, and the number of inconclusive data sets."""
    right, numbers = [], []
    for _ in range(repeats):
        first = draw(differences, size, bias, rng)
        if judge(first) != "inconclusive" or (bias and first.mean() < 0):
            continue
        settling = settle(Bias(first.tolist(), Region(REGION)), 1 - LEVEL)
        assert settling is not None
        advice = settling.biased if bias else settling.equivalent
        if advice is None or advice.subsamples > MAX_DRAWN:
            continue
        both = np.concatenate([first, draw(differences, advice.subsamples, bias, rng)], axis=1)
        right.append(judge(both) == ("biased up" if bias else "equivalent"))
        numbers.append(advice.subsamples)
    return (float(np.mean(right)), float(np.median(numbers)), len(right)) if right else (float("nan"), 0.0, 0)


def judge(differences: FloatArray) -> str:
    """Return the verdict on a data set."""
    estimate = estimate_these_tasks(differences.tolist(), LEVEL)
    return decide(estimate.low, estimate.high, REGION)


def main() -> None:
    """Print one row for each configuration and number of subsamples."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the published accuracies")
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    print("| configuration | subsamples | no bias: right | advised | bias at the edge: right | advised |")
    print("|---|---|---|---|---|---|")
    configurations = list(published_differences(load_results(arguments.folder / "few_shot")))
    for name, differences in configurations:
        for size in SIZES:
            cells = []
            for bias in (0.0, REGION):
                right, median, number = simulate(differences, size, bias, arguments.repeats, rng)
                error = (right * (1 - right) / number) ** 0.5 if number else 0.0
                cells += [f"{right:.0%} ± {error:.0%} of {number}" if number else "-", f"{median:,.0f}"]
            print(f"| {name} | {size} | " + " | ".join(cells) + " |", flush=True)
    print("\n| configuration | " + " | ".join(f"{size} subsamples: forecast | found" for size in PLANNED) + " |")
    print("|---" * (1 + 2 * len(PLANNED)) + "|")
    largest = 0.0
    for name, differences in configurations:
        cells = []
        for size in PLANNED:
            forecast, found = forecast_equivalence(differences, size, rng)
            largest = max(largest, abs(forecast - found))
            cells += [f"{forecast:.1%}", f"{found:.1%}"]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    print(f"\nLargest difference: {largest:.1%}; the largest standard error is {0.5 / NUM_FORECASTS**0.5:.1%}.")


def forecast_equivalence(differences: FloatArray, size: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return the forecast probability of 'equivalent' without a bias, and the share of simulated data sets with it."""
    variances = (differences**2).mean(axis=1)
    degrees = float(welch_satterthwaite(variances / size, np.full(len(variances), size - 1.0)))
    error = float(np.sqrt((variances / size).sum())) / len(variances)
    estimates = estimate(resample(differences, size, NUM_FORECASTS, rng), [size])
    half_widths = t.ppf((1 + LEVEL) / 2, estimates.degrees) * estimates.errors
    found = np.mean(np.abs(estimates.means) + half_widths <= REGION)
    return equivalence_power(error, degrees, REGION, 1 - LEVEL), float(found)


if __name__ == "__main__":
    main()
