"""Does the default analysis of `bayes.hierarchical` hold as often as it says? Prints shares, asserts nothing.

Data: the study's published accuracies at m=100 (FOLDER/few_shot), in which test and extra change places at random
within each model, task and subsample, so that there is no bias; and the same with a bias planted: a share of the wrong
answers of the arm test made right, which adds so many points on average over the models' tasks. For every n, both
models together and each alone. Standard error of a share with 400 repeats: 1.6 points.

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

AT_A_TIME = 200  # repeats
BIASES = (0.0, 0.005, 0.01, 0.02)


def replicate(arms: PairedArms, models: list[int], bias: float, repeats: int, rng: np.random.Generator) -> FloatArray:
    """Differences of data sets with a known mean bias: (repeats, n_models, n_tasks, n_subsamples)."""
    control, treatment = arms.control[models], arms.treatment[models]
    swapped = rng.random((repeats, *control.shape)) < 0.5
    extra, test = np.where(swapped, treatment, control), np.where(swapped, control, treatment)
    if bias:
        assert arms.num_test is not None
        wrong = np.rint((1 - test) * arms.num_test).astype(int)
        test = test + rng.binomial(wrong, bias / (1 - test.mean())) / arms.num_test
    difference: FloatArray = test - extra
    return difference


def intervals(differences: FloatArray, options: Hierarchical, rng: np.random.Generator) -> FloatArray:
    """Limits at two levels, the options' and that of verdicts: (these and other tasks' average, 4 limits, repeats)."""
    average, such = [], []
    cells = summarize_cells(differences)
    for number, state in enumerate(sample(cells, options.difference_priors, WARM_UP + options.draws, rng)):
        if number >= WARM_UP:
            average.append(state.unshrunk.mean(axis=(1, 2)))
            such.append(draw_population_mean(cells, state.unshrunk, state.tau_task, state.tau_cell, rng))
    ends = [(1 + sign * level) / 2 for level in (options.level, options.verdict_level) for sign in (-1, 1)]
    return np.stack([np.quantile(np.array(draws), ends, axis=0) for draws in (average, such)])


def report(arms: PairedArms, name: str, models: list[int], bias: float, options: Hierarchical, repeats: int) -> None:
    started = time.perf_counter()
    rng = np.random.default_rng([options.seed, arms.num_test or 0, *models, round(bias * 10_000)])
    found = []
    for at in range(0, repeats, AT_A_TIME):
        differences = replicate(arms, models, bias, min(AT_A_TIME, repeats - at), rng)
        found.append(intervals(differences, options, rng))
    limits = np.concatenate(found, axis=2)
    covers = [(low <= bias) & (bias <= high) for ends in limits for low, high in (ends[:2], ends[2:])]
    low, high = limits[0, 2:]
    said = [decide(float(a), float(b), options.region) for a, b in zip(low, high, strict=True)]
    shares = [float(np.mean(covered)) for covered in covers]
    decisions = [np.mean([one.startswith(kind) for one in said]) for kind in ("biased", "equivalent")]
    print(
        f"n={arms.num_test:<4} {name:<5} bias {bias * 100:3.1f}  "
        f"these tasks {shares[0]:6.1%} {shares[1]:6.1%}   others {shares[2]:6.1%} {shares[3]:6.1%}   "
        f"verdicts: biased {decisions[0]:6.1%}, equivalent {decisions[1]:6.1%}   "
        f"{time.perf_counter() - started:5.1f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the published accuracies")
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--draws", type=int, default=400, help="of the one chain of each repeat, after warm-up")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    results = load_results(asked.folder / "few_shot")
    options = Hierarchical(draws=asked.draws, seed=asked.seed)
    levels = f"{options.level:.0%} and {options.verdict_level:.0%}"
    print(f"{asked.repeats} repeats each. Share of {levels} intervals that hold the true bias:")
    _, parts = split_results(results[results["num_train"] == 100], ("bias",))
    for arms in sorted(parts, key=lambda part: part.num_test or 0):
        everyone = list(range(len(arms.models)))
        for name, models in [("all", everyone), *((arms.models[number], [number]) for number in everyone)]:
            for bias in BIASES:
                report(arms, name, models, bias, options, asked.repeats)


if __name__ == "__main__":
    main()
