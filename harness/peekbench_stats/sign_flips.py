"""Sign-flip tests: permutation tests of paired differences, whose signs are arbitrary if there is no effect.

All tests here compare the sum of the differences with its distribution under random signs. They compute this
distribution instead of sampling it, so they need no seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, next_fast_len

from peekbench.records import FloatArray, IntArray

MAX_ENUMERATED = 32  # values without a common divisor, for which all sign patterns are enumerated
MAX_CONVOLVED = 500_000  # additions up to which the distribution of whole numbers is a chain of convolutions
MAX_UNITS = 10**6  # larger multiples of a common divisor are treated as values without one
MIN_STEPS = 500  # of a lattice, for one standard deviation of the sum
MAX_DEVIATIONS = 9.0  # standard deviations of the sum within which its distribution is computed
NEGLIGIBLE = 1e-20  # factor of a Fourier transform
MIN_FOURIER_P = 1e-12  # smaller values would be rounding errors of the Fourier transform
TOLERANCE = 1e-9  # values that differ by less, relative to the largest one, are equal


@dataclass(frozen=True, slots=True)
class SignFlips:
    """Result of a sign-flip test.

    Examples
    --------
    >>> SignFlips(two_sided=0.0625, greater=0.03125, num_nonzero=5).smallest
    0.0625
    """

    two_sided: float
    """Two-sided p-value."""
    greater: float
    """One-sided p-value against the alternative of a positive mean."""
    num_nonzero: int
    """Number of differences that are not zero. A sign flip does not change the others."""

    @property
    def smallest(self) -> float:
        """The smallest two-sided p-value that differences of these sizes can have."""
        return min(1.0, 2.0 ** (1 - self.num_nonzero))


def sign_flip_test(differences: Sequence[float] | FloatArray) -> SignFlips:
    """Test whether the mean of paired differences is zero, by flipping their signs.

    The test is exact if the differences have a common divisor, as differences of accuracies do, and for up to 32 other
    values. More values are rounded to a lattice of at least 500 steps for a standard deviation of their sum, which
    changes a p-value by less than 0.001.

    Parameters
    ----------
    differences
        Paired differences, shape (n_differences,).

    Returns
    -------
    SignFlips
        Both p-values are 1 if all differences are zero.

    Examples
    --------
    Two of the 32 sign patterns give a sum as extreme as the observed one:

    >>> sign_flip_test([0.1, 0.3, 0.2, 0.1, 0.2]).two_sided
    0.0625
    """
    values = np.asarray(differences, dtype="float64")
    whole = _whole_numbers(values)
    return _test_values(values) if whole is None else sign_flip_test_of_counts(whole)


def stratified_sign_flip_test(tasks: Sequence[Sequence[float]]) -> SignFlips:
    """Test whether the mean of the means of tasks is zero, by flipping the signs of all differences.

    If the two arms of every trial are exchangeable, all patterns of signs are equally likely, whatever the tasks and
    their numbers of subsamples. No assumption is made on the distribution of the differences.

    Parameters
    ----------
    tasks
        Paired differences, one sequence per task.

    Returns
    -------
    SignFlips
        As for `sign_flip_test`.

    Examples
    --------
    >>> stratified_sign_flip_test([[0.02, 0.01], [0.03]]).two_sided
    0.25
    """
    sizes = np.repeat([len(task) for task in tasks], [len(task) for task in tasks])
    values = np.concatenate([np.asarray(task, dtype="float64") for task in tasks])
    common = math.lcm(*{len(task) for task in tasks})
    whole = _whole_numbers(values)
    if whole is not None and float(np.abs(whole).max(initial=0)) * common <= MAX_UNITS:
        return sign_flip_test_of_counts(whole * (common // sizes))
    return _test_values(values / sizes)


def sign_flip_test_of_counts(differences: IntArray) -> SignFlips:
    """Test whether the mean of paired differences of counts is zero, by flipping their signs.

    The test is exact for any number of differences: the distribution of their sum under random signs is a convolution
    of two-point distributions. If the sum can be large, the convolution is computed from its Fourier transform, the
    product of cosines, with an absolute error near 1e-15.

    Parameters
    ----------
    differences
        Whole numbers, such as differences of correct answers, shape (n_differences,).

    Returns
    -------
    SignFlips
        A p-value that is too small for the Fourier transform is replaced by Hoeffding's bound, which is larger.

    Examples
    --------
    >>> test = sign_flip_test_of_counts(np.array([1, 3, 2, 1, 2]))
    >>> test.two_sided, test.greater
    (0.0625, 0.03125)
    """
    sizes = np.abs(differences[differences != 0])
    if not len(sizes):
        return SignFlips(1.0, 1.0, 0)
    divisor = int(np.gcd.reduce(sizes))
    sizes, observed = sizes // divisor, int(differences.sum()) // divisor
    tails = _convolved_tails if len(sizes) * sizes.sum() <= MAX_CONVOLVED else _fourier_tails
    return _combine(*tails(sizes, observed), len(sizes))


def _combine(greater: float, less: float, num_nonzero: int) -> SignFlips:
    return SignFlips(min(1.0, 2 * greater, 2 * less), min(1.0, greater), num_nonzero)


def _whole_numbers(values: FloatArray) -> IntArray | None:
    """Return values as multiples of their greatest common divisor, or None if they have none."""
    sizes = np.unique(np.abs(values))
    largest = float(sizes.max(initial=0.0))
    divisor = 0.0
    for size in sizes[sizes > TOLERANCE * largest].tolist():
        while size > TOLERANCE * largest:  # Euclid's algorithm
            divisor, size = size, _remainder(divisor, size)
        if divisor * MAX_UNITS < largest:
            return None
    if not divisor:
        return np.zeros(len(values), dtype=np.int64)
    whole = np.rint(values / divisor)
    is_whole = np.abs(values - whole * divisor).max() <= TOLERANCE * largest
    return whole.astype(np.int64) if is_whole else None


def _remainder(dividend: float, divisor: float) -> float:
    return abs(math.remainder(dividend, divisor))


def _convolved_tails(sizes: IntArray, observed: int) -> tuple[float, float]:
    """Return the probabilities that the sum of sizes with random signs is at least, and at most, `observed`."""
    largest = int(sizes.sum())
    # Of the sums -largest, ..., largest, only every second can occur: twice the sum of the values with a positive sign.
    of_positive = np.zeros(largest + 1)
    of_positive[0] = 1.0
    reached = 1
    for size in sizes.tolist():
        of_positive[size : reached + size] += of_positive[:reached].copy()
        reached += size
        of_positive[:reached] /= 2
    position = (largest + observed) // 2
    return float(of_positive[position:].sum()), float(of_positive[: position + 1].sum())


def _fourier_tails(sizes: IntArray, observed: int) -> tuple[float, float]:
    """Return the same from the characteristic function of the sum, on a circle that holds nearly all of it."""
    if observed < 0:
        less, greater = _fourier_tails(sizes, -observed)
        return greater, less
    deviation = math.sqrt(float((sizes.astype("float64") ** 2).sum()))
    bound = math.exp(-((observed / deviation) ** 2) / 2)  # Hoeffding (1963)
    if bound < MIN_FOURIER_P:
        return bound, 1.0
    length = next_fast_len(2 * math.ceil(MAX_DEVIATIONS * deviation) + 1, real=True)
    probabilities = irfft(_characteristic_function(sizes, length), length)[: length // 2 + 1]
    greater = float(probabilities[observed:].sum())
    return max(greater, 0.0), 1.0 - greater + float(probabilities[observed])


def _characteristic_function(sizes: IntArray, length: int) -> FloatArray:
    """Return the product of cosines at the frequencies of a Fourier transform of `length` points."""
    distinct, counts = np.unique(sizes, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    values = np.ones(length // 2 + 1)
    active = np.arange(len(values))  # frequencies at which the product is not negligible yet
    for size, count in zip(distinct[order].tolist(), counts[order].tolist(), strict=True):
        cosines = np.cos((2 * math.pi * size / length) * active)
        values[active] *= cosines if count == 1 else cosines**count
        active = active[np.abs(values[active]) > NEGLIGIBLE]
    return values


def _test_values(values: FloatArray) -> SignFlips:
    """Test values without a common divisor."""
    largest = float(np.abs(values).max(initial=0))
    values = values[np.abs(values) > TOLERANCE * largest]
    if not len(values):
        return SignFlips(1.0, 1.0, 0)
    if len(values) <= MAX_ENUMERATED:
        half = len(values) // 2
        first, second = np.sort(_all_sums(values[:half])), _all_sums(values[half:])
        tolerance, observed = TOLERANCE * largest, float(values.sum())
        greater, less = (
            float((len(first) - np.searchsorted(first, threshold - second, side="left")).mean() / len(first))
            for threshold in (observed - tolerance, -observed - tolerance)
        )
        return _combine(greater, less, len(values))
    deviation = math.sqrt(float((values**2).sum()))
    step = deviation / max(MIN_STEPS, 10 * math.sqrt(len(values)))
    sizes = np.maximum(np.rint(np.abs(values) / step), 1).astype(np.int64)
    observed = float(values.sum()) / step
    return _combine(*_fourier_tails(sizes, math.floor(observed + 0.5)), len(values))


def _all_sums(values: FloatArray) -> FloatArray:
    """Return the sums under all 2**n sign patterns."""
    sums: FloatArray = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums
