"""Prints the share of runs without a bias in which some interval of a watched run misses it.

One task is looked at after every subsample, with Student's t intervals and estimated variances, as `peekbench watch`
shows them, and for comparison without accounting for the looks.

    python benchmarks/statistics/watching.py
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.stats import t

from peekbench.results.planned_looks import MIN_SUBSAMPLES
from peekbench_stats import confidence_sequence_level


def main() -> None:
    """Print one line for each distribution of the biases of single subsamples."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20_000, help="simulated runs")
    parser.add_argument("--subsamples", type=int, default=100, help="subsamples that the design plans")
    arguments = parser.parse_args()
    rng, shape = np.random.default_rng(1), (arguments.runs, arguments.subsamples)
    biases = {
        "normal": rng.normal(size=shape),
        "with few values (binomial, 20 texts)": rng.binomial(20, 0.5, size=shape) - 10.0,
        "very skewed (exponential)": rng.exponential(size=shape) - 1.0,
    }
    sizes = np.arange(MIN_SUBSAMPLES, arguments.subsamples + 1)
    levels = np.array([confidence_sequence_level(size / arguments.subsamples, 0.05) for size in sizes])
    for name, values in biases.items():
        sums, squares = (each.cumsum(axis=1)[:, sizes - 1] for each in (values, values**2))
        errors = np.sqrt((squares - sums**2 / sizes) / (sizes - 1) / sizes)
        valid, fixed = (
            (np.abs(sums / sizes) > t.isf(level / 2, sizes - 1) * errors).any(axis=1).mean() for level in (levels, 0.05)
        )
        print(f"{name}: {valid:.1%} miss at some look, {fixed:.1%} without accounting for looks")


if __name__ == "__main__":
    main()
