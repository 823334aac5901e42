"""What exact sign-flip tests cost beside resampling: 400 tests of the published sizes, as noisy as those accuracies.

Boost and bias of 25 tasks, two models and four test sizes, 100 train texts. The same differences are tested by scipy's
`permutation_test` with 9,999 random patterns, as scores are that are no numbers of texts. Prints both times, their
ratio, and how far the p-values are apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from peekbench.records import FloatArray
from peekbench_permutation import Permutation
from peekbench_permutation.permutation import p_values

SIZES = ((50, 100), (100, 100), (200, 50), (500, 20))  # test texts, subsamples
TESTS = 100  # of each size
SD = 0.09  # of single differences


def timed(ask: Callable[[FloatArray, int], tuple[float, float]]) -> tuple[float, FloatArray]:
    """Seconds, and the p-values (n_tests, 2)."""
    rng = np.random.default_rng(0)
    tests = [(np.round(rng.normal(0, SD, number) * size) / size, size) for size, number in SIZES for _ in range(TESTS)]
    started = time.perf_counter()
    found = [ask(*one) for one in tests]
    return time.perf_counter() - started, np.array(found)


def main() -> None:
    exact, here = timed(lambda differences, size: p_values(differences, size, Permutation()))
    resampled, there = timed(lambda differences, size: p_values(differences, None, Permutation()))
    print(f"{len(here)} exact tests: {exact:.2f} s; by resampling: {resampled:.2f} s, {resampled / exact:.1f} times")
    print(f"largest difference of p: {np.abs(here - there).max():.4f}")


if __name__ == "__main__":
    main()
