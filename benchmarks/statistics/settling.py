"""Measure how often the advice of `summary` on additional subsamples is right. Print a table, assert nothing.

Draw data sets of 5, 10 and 20 subsamples from the published accuracies, with replacement and with test and extra
swapped at random, with no bias, a bias halfway to the edge of the region, and one at the edge. For those whose verdict
is inconclusive, draw as many more subsamples as advised. Printed are the shares whose verdict is then right (equivalent
without a bias, biased up at the edge, either of them halfway) and the median number of subsamples advised.

The second table compares the forecast of `power` that the verdict is equivalent if there is no bias with the share of
data sets in which it is, for several numbers of subsamples.

    python benchmarks/statistics/settling.py FOLDER [--repeats 1000]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import t
from sequential import estimate, published_differences, resample
from simulated_trials import ALPHA, REGION, UNPLANNED, Draw, Method, advice_on, judge, share

from peekbench import load_results
from peekbench.records import FloatArray
from peekbench.records.verdicts import Advice
from peekbench_stats import welch_satterthwaite
from peekbench_summary.power.detection import equivalence_power

SIZES = (5, 10, 20)
PLANNED = (5, 10, 20, 50, 100, 200)  # subsamples for which equivalence is forecast
NUM_FORECASTS = 2000  # data sets
MAX_FOLLOWED = 20_000  # additional subsamples that are simulated
BIASES: dict[str, tuple[float, tuple[str, ...]]] = {
    "no bias": (0.0, ("equivalent",)),
    "halfway": (REGION.half_width / 2, ("equivalent", "biased up")),
    "at the edge": (REGION.half_width, ("biased up",)),
}
"""Biases at which advice is tried, and the verdicts that are right: a bias that is negligible but not zero has two."""


def swapped(differences: FloatArray) -> Draw:
    """Return the draw of published differences with test and extra swapped at random."""

    return lambda rng, _, size: resample(differences, size, 1, rng)[0]


def one_method(draw: Draw, biases: FloatArray) -> list[Method]:
    """Return a family of one method."""
    return [Method(draw, biases, step=None)]


def follow_once(
    make: Callable[[], Sequence[Method]],
    size: int,
    right: Collection[str],
    repeats: int,
    rng: np.random.Generator,
) -> tuple[list[bool], list[Advice]]:
    """Extend the first inconclusive method of many families as advised.

    Parameters
    ----------
    make
        Makes the methods of a family.
    size
        First subsamples of each task.
    right
        Verdicts that are right for methods with this bias.
    repeats, rng
        Families; generator.

    Returns
    -------
    tuple
        Whether the verdict after each advice was right, and the advice.
    """
    settled: list[bool] = []
    followed: list[Advice] = []
    for _ in range(repeats):
        methods = make()
        for method in methods:
            method.extend(rng, size)
        for place, (bias, conclusion) in enumerate(judge(methods, UNPLANNED)):
            advice = advice_on(bias, conclusion)
            if advice and advice.subsamples <= MAX_FOLLOWED:
                earlier = [methods[place].trials.size]
                for method in methods:
                    method.extend(rng, advice.subsamples)
                settled.append(judge(methods, UNPLANNED, earlier)[place][1].decision in right)
                followed.append(advice)
                break
    return settled, followed


def main() -> None:
    """Print one row for each configuration and number of subsamples."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the published accuracies")
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    print("| configuration | subsamples | " + " | advised | ".join(BIASES) + " | advised |")
    print("|---" * (2 + 2 * len(BIASES)) + "|")
    configurations = list(published_differences(load_results(arguments.folder / "few_shot", independent_tasks=True)))
    for name, differences in configurations:
        for size in SIZES:
            cells = []
            for bias, right in BIASES.values():
                make = partial(one_method, swapped(differences), np.full(len(differences), bias))
                settled, followed = follow_once(make, size, right, arguments.repeats, rng)
                numbers = [advice.subsamples for advice in followed]
                cells += [f"{share(settled)} of {len(settled)}", f"{np.median(numbers):,.0f}"] if settled else ["-"] * 2
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
    half_widths = t.isf(ALPHA, estimates.degrees) * estimates.errors
    found = np.mean(np.abs(estimates.means) + half_widths <= REGION.half_width)
    return equivalence_power(error, degrees, REGION.half_width, ALPHA), float(found)


if __name__ == "__main__":
    main()
