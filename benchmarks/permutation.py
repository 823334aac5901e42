"""Compare the speed of exact sign-flip tests with that of resampling.

Run 400 tests with the sizes and the noise of the published accuracies: boost and bias of 25 tasks, two models and
four test sizes, 100 train texts. The same differences are tested exactly, and by scipy's `permutation_test` with 9,999
random sign patterns, as for scores that are not whole numbers of texts. Print both times, their ratio, and the
largest difference between the p-values.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from peekbench.records import FloatArray
from peekbench_permutation import Permutation
from peekbench_permutation.permutation import compute_p_values

SIZES = ((50, 100), (100, 100), (200, 50), (500, 20))  # (test texts, subsamples)
TESTS_PER_SIZE = 100
SD = 0.09  # of the difference of one subsample


def time_tests(compute: Callable[[FloatArray, int], tuple[float, float]]) -> tuple[float, FloatArray]:
    """Return the seconds of all tests, and the p-values, shape (n_tests, 2)."""
    rng = np.random.default_rng(0)
    tests = [
        (np.round(rng.normal(0, SD, num_subsamples) * num_test) / num_test, num_test)
        for num_test, num_subsamples in SIZES
        for _ in range(TESTS_PER_SIZE)
    ]
    started = time.perf_counter()
    p_values = [compute(*test) for test in tests]
    return time.perf_counter() - started, np.array(p_values)


def main() -> None:
    """Print the comparison."""
    exact_seconds, exact = time_tests(lambda differences, size: compute_p_values(differences, size, Permutation()))
    seconds, resampled = time_tests(lambda differences, _: compute_p_values(differences, None, Permutation()))
    print(
        f"{len(exact)} exact tests: {exact_seconds:.2f} s; by resampling: {seconds:.2f} s, "
        f"{seconds / exact_seconds:.1f} times as long"
    )
    print(f"largest difference of p: {np.abs(exact - resampled).max():.4f}")


if __name__ == "__main__":
    main()
