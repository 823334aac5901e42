"""Compare the speed of exact sign-flip tests with that of resampling.

Run 400 tests with the sizes and the noise of the published accuracies: boost and bias of 25 tasks, two models and
four test sizes, 100 train texts. The same differences are tested exactly, and by scipy's `permutation_test` with 9,999
random sign patterns. Print both times, their ratio, and the largest difference between the p-values; then the time of
one test of all trials of a large table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import permutation_test

from peekbench.records import FloatArray
from peekbench_stats import sign_flip_test, stratified_sign_flip_test

SIZES = ((50, 100), (100, 100), (200, 50), (500, 20))  # (test texts, subsamples)
TESTS_PER_SIZE = 100
NUM_RESAMPLES = 9999
SD = 0.09  # of the difference of one subsample
LARGE = (25, 1080)  # tasks, subsamples


def resample(differences: FloatArray) -> float:
    """Return the two-sided p-value from random sign patterns."""
    result = permutation_test(
        (differences,),
        lambda values, axis: values.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=NUM_RESAMPLES,
        rng=np.random.default_rng(0),
    )
    return float(result.pvalue)


def time_tests(tests: Sequence[FloatArray], compute: Callable[[FloatArray], float]) -> tuple[float, FloatArray]:
    """Return the seconds of all tests, and their p-values."""
    started = time.perf_counter()
    p_values = [compute(test) for test in tests]
    return time.perf_counter() - started, np.array(p_values)


def main() -> None:
    """Print the comparison."""
    rng = np.random.default_rng(0)
    tests = [
        np.round(rng.normal(0, SD, num_subsamples) * num_test) / num_test
        for num_test, num_subsamples in SIZES
        for _ in range(TESTS_PER_SIZE)
    ]
    exact_seconds, exact = time_tests(tests, lambda differences: sign_flip_test(differences).two_sided)
    seconds, resampled = time_tests(tests, resample)
    print(
        f"{len(exact)} exact tests: {exact_seconds:.2f} s; by resampling: {seconds:.2f} s, "
        f"{seconds / exact_seconds:.0f} times as long"
    )
    print(f"largest difference of p: {np.abs(exact - resampled).max():.4f}")
    large = np.round(rng.normal(0, SD, LARGE) * 200) / 200
    started = time.perf_counter()
    stratified_sign_flip_test(large.tolist())
    print(f"one exact test of {large.size:,} trials: {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
