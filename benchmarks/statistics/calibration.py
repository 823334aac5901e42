"""Measure how often the intervals of `bayes.hierarchical` cover the truth.

Prints Markdown tables, asserts nothing. Data: the published accuracies at m=100 (FOLDER/few_shot), in which test and
extra are swapped at random within each model, task and subsample, so that there is no bias. For every n, both models
together and each alone:

- averages: for biases of 0, 0.5, 1 and 2 points, a share of the wrong answers of the arm test become correct, which
  adds these points on average over the models' tasks. Intervals of the averages over these and over other tasks.
- contaminated: one task of each data set, chosen at random, gets a bias of 10 points. Intervals of the shrunk effects.

    python benchmarks/statistics/calibration.py FOLDER [--part averages] [--repeats 400] [--draws 400] [--seed 0]
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from peekbench import load_results
from peekbench.records import FloatArray
from peekbench.results import decide
from peekbench_bayes.arrays import PairedArms, region_of, split_results
from peekbench_bayes.calibrated import WARM_UP, State, sample, sample_population, summarize_cells
from peekbench_bayes.options import Hierarchical
from peekbench_bayes.posterior import interval_ends

BATCH_SIZE = 50  # repeats fitted together; their arrays fit into the cache of a processor
BIASES = (0.0, 0.005, 0.01, 0.02)
CONTAMINATION = 0.1


def swap_arms(arms: PairedArms, num_repeats: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return control and treatment of data sets without bias: arrays of shape (num_repeats, *arms.control.shape)."""
    is_swapped = rng.random((num_repeats, *arms.control.shape)) < 0.5
    control, treatment = arms.control, arms.treatment
    return np.where(is_swapped, treatment, control), np.where(is_swapped, control, treatment)


def plant_bias(arms: PairedArms, treatment: FloatArray, bias: float, rng: np.random.Generator) -> FloatArray:
    """Return scores of a treatment with a mean bias: a share of the wrong answers become correct."""
    assert arms.num_scored is not None
    num_wrong = np.rint((1 - treatment) * arms.num_scored).astype(int)
    planted: FloatArray = treatment + rng.binomial(num_wrong, bias / (1 - treatment.mean())) / arms.num_scored
    return planted


def draw_states(differences: FloatArray, options: Hierarchical, rng: np.random.Generator) -> list[State]:
    """Fit each data set with one chain."""
    cells = summarize_cells(differences)
    return list(sample(cells, options.difference_priors, WARM_UP + options.draws, rng))[WARM_UP:]


def measure_averages(arms: PairedArms, bias: float, options: Hierarchical, num_repeats: int) -> list[float]:
    """Return the coverage of the intervals of both averages at two levels, and the shares of two verdicts."""
    rng = np.random.default_rng([options.seed, arms.num_scored or 0, *map(len, arms.models), round(bias * 10_000)])
    levels = (options.level, options.verdict_level)
    quantiles = [end for level in levels for end in interval_ends(level)]
    parts = []
    for start in range(0, num_repeats, BATCH_SIZE):
        control, treatment = swap_arms(arms, min(BATCH_SIZE, num_repeats - start), rng)
        differences = (plant_bias(arms, treatment, bias, rng) if bias else treatment) - control
        states = draw_states(differences, options, rng)
        these = [state.unshrunk.mean(axis=(1, 2)) for state in states]
        populations = sample_population(summarize_cells(differences), states, options.difference_priors, rng)
        others = [population.mean for population in populations]
        parts.append(np.stack([np.quantile(np.array(draws), quantiles, axis=0) for draws in (these, others)]))
    limits = np.concatenate(parts, axis=2)  # (these or other tasks, quantiles, repeats)
    covered = [(low <= bias) & (bias <= high) for ends in limits for low, high in (ends[:2], ends[2:])]
    region = region_of(options, "bayes.hierarchical", [arms])
    decisions = [decide(low, high, region) for low, high in limits[0, 2:].T.tolist()]
    kinds = Counter(decision.split()[0] for decision in decisions)
    return [*(float(each.mean()) for each in covered), kinds["biased"] / num_repeats, kinds["equivalent"] / num_repeats]


def measure_contaminated(arms: PairedArms, options: Hierarchical, num_repeats: int) -> list[float]:
    """Return the coverage of the intervals of the contaminated task and of the others, and their mean widths."""
    rng = np.random.default_rng([options.seed, arms.num_scored or 0, *map(len, arms.models)])
    parts: list[list[FloatArray]] = []
    for start in range(0, num_repeats, BATCH_SIZE):
        control, treatment = swap_arms(arms, min(BATCH_SIZE, num_repeats - start), rng)
        differences = treatment - control
        repeats = np.arange(len(differences))
        contaminated = repeats, rng.integers(len(arms.tasks), size=len(repeats))
        differences[contaminated[0], :, contaminated[1]] += CONTAMINATION
        truth = np.zeros((len(repeats), len(arms.tasks)))
        truth[contaminated] = CONTAMINATION
        draws = np.array([state.theta.mean(axis=1) for state in draw_states(differences, options, rng)])
        low, high = np.quantile(draws, interval_ends(options.level), axis=0)
        is_other = truth == 0
        covered = (low <= truth) & (truth <= high)
        parts.append([values[mask] for mask in (~is_other, is_other) for values in (covered, 100 * (high - low))])
    return [float(np.concatenate(values).mean()) for values in zip(*parts, strict=True)]


def published_arms(folder: Path) -> Iterator[tuple[str, PairedArms]]:
    """Yield a name and the scores of each published configuration with 100 train texts: both models, and each alone."""
    results = load_results(folder / "few_shot", independent_tasks=True)
    _, parts = split_results(results[results["num_train"] == 100], ("bias",))
    for arms in sorted(parts, key=lambda part: part.num_scored or 0):
        yield f"n={arms.num_scored}, both models", arms
        for number, model in enumerate(arms.models):
            one = slice(number, number + 1)
            yield (
                f"n={arms.num_scored}, {model}",
                replace(arms, models=(model,), control=arms.control[one], treatment=arms.treatment[one]),
            )


def print_row(*cells: object) -> None:
    """Print a row of a Markdown table."""
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def print_header(*cells: str) -> None:
    """Print the header of a Markdown table."""
    print_row(*cells)
    print("|" + "---|" * len(cells))


def main() -> None:
    """Print a row for each test size, set of models and bias or size of table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the published accuracies")
    parser.add_argument("--part", choices=["averages", "contaminated"], default="averages")
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--draws", type=int, default=400, help="draws per repeat of its single chain, after warm-up")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    options = Hierarchical(draws=arguments.draws, seed=arguments.seed)
    level, verdict_level = f"{options.level:.0%}", f"{options.verdict_level:.0%}"
    print(f"{arguments.repeats:,} data sets per row.\n")
    if arguments.part == "averages":
        names = (f"{scope}, {each}" for scope in ("these tasks", "other tasks") for each in (level, verdict_level))
        print_header("configuration", "bias, points", *names, "biased", "equivalent", "seconds")
    else:
        kinds = "contaminated task", "other tasks"
        print_header("configuration", *(f"{kind}, {each}" for kind in kinds for each in (level, "mean width")))
    for name, arms in published_arms(arguments.folder):
        if arguments.part == "averages":
            for bias in BIASES:
                started = time.perf_counter()
                shares = measure_averages(arms, bias, options, arguments.repeats)
                elapsed = f"{time.perf_counter() - started:.0f}"
                print_row(name, f"{100 * bias:g}", *(f"{share:.1%}" for share in shares), elapsed)
        else:
            task, width, others, others_width = measure_contaminated(arms, options, arguments.repeats)
            print_row(name, f"{task:.1%}", f"{width:.2f}", f"{others:.1%}", f"{others_width:.2f}")


if __name__ == "__main__":
    main()
