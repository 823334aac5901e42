"""Sign-flip tests: permutation tests of paired differences, whose signs are arbitrary if there is no effect."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peekbench.records import FloatArray, IntArray

MAX_EXACT = 40  # values for which all sign patterns are enumerated, half of the values at a time
NUM_RANDOM = 100_000
BATCH_SIZE = 1000
TOLERANCE = 1e-9  # sums that differ by less, relative to the largest value, are ties


def sign_flip_test(values: Sequence[float]) -> float | None:
    """Test whether the mean of paired differences is zero, by flipping their signs.

    Up to 40 values the test is exact: it splits the values into two halves, sorts the sums of all sign patterns of one
    half, and counts, for each sum of the other half, how many of them reach the observed sum. For more values it draws
    100,000 random sign patterns from a fixed seed.

    Parameters
    ----------
    values
        Paired differences, shape (n_values,).

    Returns
    -------
    float or None
        Two-sided p-value; None if all values are zero.

    Examples
    --------
    Two of the 32 sign patterns give a sum as extreme as the observed one:

    >>> sign_flip_test([0.1, 0.3, 0.2, 0.1, 0.2])
    0.0625
    """
    differences = np.array(values)
    if not differences.any():
        return None
    threshold = abs(differences.sum()) - TOLERANCE * np.abs(differences).max()
    if len(differences) <= MAX_EXACT:
        half = len(differences) // 2
        first, second = np.sort(_all_sums(differences[:half])), _all_sums(differences[half:])
        above = (len(first) - np.searchsorted(first, threshold - second, side="left")).mean() / len(first)
        return float(min(1, 2 * above))
    rng = np.random.default_rng(0)
    num_extreme = 0
    for _ in range(NUM_RANDOM // BATCH_SIZE):
        signs = 2 * rng.integers(0, 2, size=(BATCH_SIZE, len(differences))) - 1
        num_extreme += int((np.abs(signs @ differences) >= threshold).sum())
    return (num_extreme + 1) / (NUM_RANDOM + 1)


def _all_sums(values: FloatArray) -> FloatArray:
    """Return the sums under all 2**n sign patterns."""
    sums: FloatArray = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def sign_flip_test_of_counts(differences: IntArray) -> tuple[float, float]:
    """Test whether the mean of paired differences of counts is zero, by flipping their signs.

    The test is exact for any number of differences: the distribution of their sum under random signs is a convolution
    of two-point distributions.

    Parameters
    ----------
    differences
        Whole numbers, such as differences of correct answers, shape (n_differences,).

    Returns
    -------
    two_sided : float
        Two-sided p-value.
    greater : float
        One-sided p-value against the alternative of a positive mean.

    Examples
    --------
    >>> sign_flip_test_of_counts(np.array([1, 3, 2, 1, 2]))
    (0.0625, 0.03125)
    """
    largest = int(np.abs(differences).sum())
    # Of the sums -largest, ..., largest, only every second can occur: twice the sum of the values with a positive sign.
    of_positive = np.zeros(largest + 1)
    of_positive[0] = 1.0
    reached = 1
    for size in np.abs(differences[differences != 0]).tolist():
        of_positive[size : reached + size] += of_positive[:reached].copy()
        reached += size
        of_positive[:reached] /= 2
    probabilities = np.zeros(2 * largest + 1)
    probabilities[::2] = of_positive
    observed = largest + int(differences.sum())
    greater, less = float(probabilities[observed:].sum()), float(probabilities[: observed + 1].sum())
    return min(1.0, 2 * greater, 2 * less), min(1.0, greater)
