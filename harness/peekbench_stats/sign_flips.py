"""Sign-flip tests: permutation tests of paired differences, whose signs are arbitrary if there is no effect.

The tests of one sequence compare the sum of the differences with its distribution under random signs, which they
compute instead of sampling it. That of several tasks compares a studentized sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len
from scipy.special import stdtr

from peekbench.records import FloatArray, IntArray
from peekbench_stats.t_tests import welch_satterthwaite

MAX_ENUMERATED = 32  # values without a common divisor, for which all sign patterns are enumerated
MAX_CONVOLVED = 500_000  # additions up to which the distribution of whole numbers is a chain of convolutions
MAX_UNITS = 10**6  # larger multiples of a common divisor are treated as values without one
MIN_STEPS = 500  # of a lattice, for one standard deviation of the sum
MAX_DEVIATIONS = 9.0  # standard deviations of the sum within which its distribution is computed
NEGLIGIBLE = 1e-20  # factor of a Fourier transform
MIN_FOURIER_P = 1e-12  # smaller values would be rounding errors of the Fourier transform
TOLERANCE = 1e-9  # values that differ by less, relative to the largest one, are equal
MAX_FLIPPED = 13  # differences of several tasks for which all patterns of signs are compared
MIN_PATTERNS, MAX_PATTERNS = 2_000, 10_000  # random patterns that are compared for more differences
MAX_SIGNS = 20_000_000  # signs of all of them, if these are not too few
NUM_EXTREME = 10  # random patterns from which a tail is extrapolated


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
    if whole is None:
        return _test_values(values)
    return sign_flip_test_of_counts(whole)


def stratified_sign_flip_test(tasks: Sequence[Sequence[float]]) -> SignFlips:
    """Test whether the mean of the means of tasks is zero, by flipping the signs of all differences.

    The statistic is Student's: the sum of the task means divided by the square root of the sum of their squared
    standard errors, both computed again for every pattern of signs. Differences between tasks therefore do not count as
    noise, as they do in flips of the sum itself.

    If the two arms of every trial are exchangeable (the sharp null hypothesis), all patterns of signs are equally
    likely, whatever the distribution of the differences, and the test is exact. If only the mean is zero, the test is
    valid in large samples (Janssen 1997). For a single task, it equals `sign_flip_test`, because the statistic then
    orders the patterns as the sum does. For several tasks, all patterns of up to `MAX_FLIPPED` nonzero differences are
    compared; otherwise 2,000 to 10,000 random ones with a fixed seed, which include the observed one. If fewer than
    `NUM_EXTREME` of these are as extreme as the observed one, the p-value follows the tail of Student's t from the
    `NUM_EXTREME`-th most extreme one on (a tail approximation as in Knijnenburg et al. 2009).

    Parameters
    ----------
    tasks
        Paired differences, one sequence per task. If any task has only one, the statistic is the sum of the task means.

    Returns
    -------
    SignFlips
        As for `sign_flip_test`.

    References
    ----------
    Janssen (1997), https://doi.org/10.1016/S0167-7152(97)00043-6; Knijnenburg, Wessels, Reinders and Shmulevich (2009),
    https://doi.org/10.1093/bioinformatics/btp211

    Examples
    --------
    Two tasks with opposite biases, each of which is clear within its task:

    >>> tasks = [[-0.06, -0.05, -0.04, -0.05, -0.06, -0.05], [0.01, 0.0, 0.01, 0.01, 0.0, 0.01]]
    >>> stratified_sign_flip_test(tasks).two_sided < 0.02
    True
    """
    arrays = [np.asarray(task, dtype="float64") for task in tasks]
    values = np.concatenate(arrays)
    flipped = np.flatnonzero(np.abs(values) > TOLERANCE * np.abs(values).max(initial=0))
    if len(arrays) == 1 or not len(flipped):
        return sign_flip_test(values)
    is_exact = len(flipped) <= MAX_FLIPPED
    flips = _all_flips(flipped, len(values)) if is_exact else _random_flips(len(values))
    statistics = _studentize(arrays, flips)
    observed = statistics[0]
    margin = TOLERANCE * (1 + abs(observed))
    two_sided = float(np.mean(np.abs(statistics) >= abs(observed) - margin))
    greater = float(np.mean(statistics >= observed - margin))
    if not is_exact and two_sided * len(statistics) < NUM_EXTREME and min(map(len, arrays)) > 1:
        edge = np.partition(np.abs(statistics[1:]), -NUM_EXTREME)[-NUM_EXTREME]
        errors = [float(task.var(ddof=1)) / len(task) for task in arrays]
        degrees = welch_satterthwaite(errors, [len(task) - 1 for task in arrays])
        shape = float(stdtr(degrees, -abs(observed)) / stdtr(degrees, -edge))
        two_sided = max(NUM_EXTREME / len(statistics) * shape, 2.0 ** (1 - len(flipped)))
        greater = two_sided / 2
        if observed <= 0:
            greater = 1 - greater
    return SignFlips(two_sided, greater, len(flipped))


def _all_flips(flipped: IntArray, num_values: int) -> FloatArray:
    """Return whether each value is flipped, 0 or 1, in every pattern, shape (n_patterns, n_values); none in the first.

    Parameters
    ----------
    flipped
        Positions of the values to flip.
    num_values
        Number of all values.
    """
    flips = np.zeros((2 ** len(flipped), num_values))
    flips[:, flipped] = np.arange(len(flips))[:, None] >> np.arange(len(flipped)) & 1
    return flips


@lru_cache(maxsize=2)
def _random_flips(num_values: int) -> NDArray[np.uint8]:
    """Return whether each value is flipped in random patterns, as in `_all_flips`."""
    num_patterns = min(max(MAX_SIGNS // num_values, MIN_PATTERNS), MAX_PATTERNS)
    bits = np.random.default_rng(0).bytes((num_patterns * num_values + 7) // 8)
    unpacked = np.unpackbits(np.frombuffer(bits, np.uint8), count=num_patterns * num_values)
    flips: NDArray[np.uint8] = unpacked.reshape(num_patterns, num_values)
    flips[0] = 0
    return flips


def _studentize(tasks: Sequence[FloatArray], flips: NDArray[np.uint8] | FloatArray) -> FloatArray:
    """Return the studentized sum of the task means for every pattern of flips, shape (n_patterns,)."""
    total, squared_error, start = np.zeros(len(flips)), np.zeros(len(flips)), 0
    for task in tasks:
        size = len(task)
        means = (task.sum() - 2 * (flips[:, start : start + size].astype("float64") @ task)) / size
        total += means
        squared_error += np.maximum(task @ task / size - means**2, 0.0) / max(size - 1, 1)
        start += size
    if min(map(len, tasks)) < 2:
        return total
    # Without any variation, the order of the patterns is that of the sums.
    return total / np.sqrt(np.maximum(squared_error, TOLERANCE**2 * float(total @ total) / len(total)))


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
    tails = _fourier_tails
    if len(sizes) * sizes.sum() <= MAX_CONVOLVED:
        tails = _convolved_tails
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
        if count > 1:
            cosines **= count
        values[active] *= cosines
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
