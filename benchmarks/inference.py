"""Measure the seconds that the fits of `peekbench_bayes` take on the published accuracies. Assert nothing.

OMP_NUM_THREADS=1 python benchmarks/inference.py FOLDER
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from peekbench import load_results
from peekbench.records import FloatArray
from peekbench_bayes.analysis import analyze
from peekbench_bayes.arrays import split_results
from peekbench_bayes.calibrated import fit_differences
from peekbench_bayes.counts import fit_counts, make_count_rows, predict_differences, predict_probabilities
from peekbench_bayes.laplace import CountRows, Mode, approximate
from peekbench_bayes.laplace_draws import draw, grid_weights
from peekbench_bayes.meta import analyze_slices
from peekbench_bayes.options import CountPriors, Hierarchical, Meta

NUM_DRAWS = 4000


def measure(name: str, work: Callable[[], Any], repeats: int = 3) -> Any:
    """Call a function several times, print the shortest time, and return the last result."""
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - started)
    print(f"{name:<64} {min(seconds):7.2f} s", flush=True)
    return result


def predict(rows: CountRows, mode: Mode) -> FloatArray:
    """Draw posterior predictive differences of accuracies, with joint draws of the effects: (NUM_DRAWS, ...)."""
    rng = np.random.default_rng(0)
    draws = draw(mode, rng.choice(len(mode.log_density), size=NUM_DRAWS, p=grid_weights(mode)), rng)
    probabilities = predict_probabilities(rows, draws)
    return np.concatenate([predict_differences(rows, probability, rng) for probability in probabilities])


def main() -> None:
    """Print a line for each fit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the published accuracies")
    results = load_results(parser.parse_args().folder / "few_shot")
    results = results[results["num_train"] == 100]
    _, both_effects = split_results(results, ("bias", "boost"))
    biases = {arms.num_scored: arms for arms in both_effects if arms.effect == "bias"}
    for size in (500, 100):
        number = 2 * np.isfinite(biases[size].difference).sum()
        measure(f"calibrated, {number:,} rows", partial(fit_differences, biases[size], Hierarchical()))
    at_500 = results[results["num_test"] == 500]
    options = Hierarchical(save_posterior=False)
    measure("bayes.hierarchical as a whole, boost and bias of n=500", partial(analyze, at_500, options=options))
    slopes = Hierarchical(preset="random_slopes")
    measure(
        f"random_slopes, {len(both_effects)} fits",
        lambda: [fit_counts(arms, slopes) for arms in both_effects],
        repeats=1,
    )
    for size in (500, 100):
        rows = make_count_rows(biases[size], "random_slopes", CountPriors())
        mode, _ = approximate(rows)
        measure(f"{NUM_DRAWS:,} posterior predictive draws, random_slopes, n={size}", partial(predict, rows, mode))
    for preset in ("calibrated", "paper", "random_slopes"):
        meta = Meta(preset=preset)
        analysis = measure(
            f"bayes.meta, {meta.num_slices} slices, {preset}",
            partial(analyze_slices, at_500, options=meta),
        )
        for table in analysis.tables:
            print("   ", dict(zip([column.name for column in table.columns], table.rows[0], strict=True)))


if __name__ == "__main__":
    main()
