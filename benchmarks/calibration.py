"""Measure how often the intervals of `bayes.hierarchical` cover the true bias. Print shares, assert nothing.

Data: the published accuracies at m=100 (FOLDER/few_shot), in which test and extra are swapped at random within each
model, task and subsample, so that there is no bias; and the same with a planted bias, for which a share of the wrong
answers of the arm test become correct, which adds the planted points on average over the models' tasks. For every n,
both models together and each alone. The standard error of a share with 400 repeats is 1.6 points.

    python benchmarks/calibration.py FOLDER [--repeats 400] [--draws 400] [--seed 0]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from peekbench import load_results
from peekbench.records import FloatArray
from peekbench.results import decide
from peekbench_bayes.arrays import PairedArms, split_results
from peekbench_bayes.calibrated import WARM_UP
from peekbench_bayes.gaussian import draw_population_mean, sample, summarize_cells
from peekbench_bayes.options import Hierarchical

BATCH_SIZE = 200  # repeats
BIASES = (0.0, 0.005, 0.01, 0.02)


def replicate(
    arms: PairedArms, models: list[int], bias: float, num_repeats: int, rng: np.random.Generator
) -> FloatArray:
    """Simulate differences of data sets with a known mean bias.

    Parameters
    ----------
    arms
        Published scores of test and extra.
    models
        Positions of the models to keep.
    bias
        Planted bias, a fraction.
    num_repeats
        Number of data sets.
    rng
        Source of randomness.

    Returns
    -------
    array of shape (num_repeats, n_models, n_tasks, n_subsamples)
    """
    control, treatment = arms.control[models], arms.treatment[models]
    swapped = rng.random((num_repeats, *control.shape)) < 0.5
    extra, test = np.where(swapped, treatment, control), np.where(swapped, control, treatment)
    if bias:
        assert arms.num_test is not None
        num_wrong = np.rint((1 - test) * arms.num_test).astype(int)
        test = test + rng.binomial(num_wrong, bias / (1 - test.mean())) / arms.num_test
    difference: FloatArray = test - extra
    return difference


def intervals(differences: FloatArray, options: Hierarchical, rng: np.random.Generator) -> FloatArray:
    """Compute interval limits at two levels, that of the options and that of verdicts.

    Returns
    -------
    array of shape (2, 4, num_repeats)
        For the averages of these tasks and of other tasks: low and high at each level.
    """
    these, others = [], []
    cells = summarize_cells(differences)
    for number, state in enumerate(sample(cells, options.difference_priors, WARM_UP + options.draws, rng)):
        if number >= WARM_UP:
            these.append(state.unshrunk.mean(axis=(1, 2)))
            others.append(draw_population_mean(cells, state.unshrunk, state.tau_task, state.tau_cell, rng))
    quantiles = [(1 + sign * level) / 2 for level in (options.level, options.verdict_level) for sign in (-1, 1)]
    return np.stack([np.quantile(np.array(draws), quantiles, axis=0) for draws in (these, others)])


def report(
    arms: PairedArms, name: str, models: list[int], bias: float, options: Hierarchical, num_repeats: int
) -> None:
    """Print the coverage of the intervals and the shares of verdicts for one planted bias."""
    started = time.perf_counter()
    rng = np.random.default_rng([options.seed, arms.num_test or 0, *models, round(bias * 10_000)])
    batches = []
    for start in range(0, num_repeats, BATCH_SIZE):
        differences = replicate(arms, models, bias, min(BATCH_SIZE, num_repeats - start), rng)
        batches.append(intervals(differences, options, rng))
    limits = np.concatenate(batches, axis=2)
    covered = [(low <= bias) & (bias <= high) for ends in limits for low, high in (ends[:2], ends[2:])]
    coverage = [float(np.mean(each)) for each in covered]
    low, high = limits[0, 2:]
    decisions = [decide(float(a), float(b), options.region) for a, b in zip(low, high, strict=True)]
    biased, equivalent = (
        np.mean([decision.startswith(kind) for decision in decisions]) for kind in ("biased", "equivalent")
    )
    print(
        f"n={arms.num_test:<4} {name:<5} bias {bias * 100:3.1f}  "
        f"these tasks {coverage[0]:6.1%} {coverage[1]:6.1%}   other tasks {coverage[2]:6.1%} {coverage[3]:6.1%}   "
        f"verdicts: biased {biased:6.1%}, equivalent {equivalent:6.1%}   "
        f"{time.perf_counter() - started:5.1f} s",
        flush=True,
    )


def main() -> None:
    """Print a line for each test size, set of models and bias."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the published accuracies")
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--draws", type=int, default=400, help="draws per repeat of its single chain, after warm-up")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    results = load_results(arguments.folder / "few_shot")
    options = Hierarchical(draws=arguments.draws, seed=arguments.seed)
    levels = f"{options.level:.0%} and {options.verdict_level:.0%}"
    print(f"{arguments.repeats} repeats each. Share of {levels} intervals that cover the true bias:")
    _, parts = split_results(results[results["num_train"] == 100], ("bias",))
    for arms in sorted(parts, key=lambda part: part.num_test or 0):
        all_models = list(range(len(arms.models)))
        for name, models in [("all", all_models), *((arms.models[number], [number]) for number in all_models)]:
            for bias in BIASES:
                report(arms, name, models, bias, options, arguments.repeats)


if __name__ == "__main__":
    main()
