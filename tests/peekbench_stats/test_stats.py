"""Shared statistics, compared with scipy, with enumeration and with results computed by hand."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import false_discovery_control, t, ttest_ind

from peekbench_stats import (
    hierarchical_rejections,
    holm,
    selection_level,
    sign_flip_test,
    sign_flip_test_of_counts,
    stratified_sign_flip_test,
    t_test,
    welch_satterthwaite,
)
from peekbench_stats.sign_flips import MAX_ENUMERATED


@pytest.mark.parametrize("exact_sum", [False, True])
def test_welch_satterthwaite_agrees_with_the_welch_test_of_scipy(exact_sum: bool) -> None:
    rng = np.random.default_rng(1)
    for sizes in ((5, 9), (3, 30), (12, 12)):
        first, second = (rng.normal(0, scale, size) for scale, size in zip((1, 4), sizes, strict=True))
        errors = [float(sample.var(ddof=1)) / len(sample) for sample in (first, second)]
        degrees = welch_satterthwaite(errors, [size - 1 for size in sizes], exact_sum=exact_sum)
        assert degrees == pytest.approx(ttest_ind(first, second, equal_var=False).df)


def test_welch_satterthwaite_of_certain_estimates_is_infinite() -> None:
    assert welch_satterthwaite([0.0, 0.0], [3, 4]) == math.inf
    assert welch_satterthwaite([0.0, 0.0], [3, 4], exact_sum=True) == math.inf


def test_exact_sums_do_not_depend_on_the_order() -> None:
    errors = np.random.default_rng(2).lognormal(0, 6, 40).tolist()
    degrees = list(range(1, 41))
    results = {
        welch_satterthwaite([errors[at] for at in order], [degrees[at] for at in order], exact_sum=True)
        for order in (np.random.default_rng(seed).permutation(40) for seed in range(20))
    }
    assert len(results) == 1


def test_holm_by_hand() -> None:
    # Sorted: 0.01 * 4, 0.02 * 3, 0.03 * 2, 0.5 * 1; each at least as large as the one before.
    assert holm([0.5, 0.01, 0.03, 0.02]).tolist() == pytest.approx([0.5, 0.04, 0.06, 0.06])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []


@pytest.mark.parametrize("size", [1, 2, 7, 12])
def test_sign_flips_agree_with_enumeration(size: int) -> None:
    for counts in np.random.default_rng(size).integers(-6, 9, size=(10, size)):
        sums = np.array([np.sum(np.array(signs) * counts) for signs in product((1, -1), repeat=size)])
        two_sided, greater = np.mean(np.abs(sums) >= abs(counts.sum())), np.mean(sums >= counts.sum())
        for values in (counts / 50, counts * np.pi):
            test = sign_flip_test(values)
            assert (test.two_sided, test.greater) == pytest.approx((two_sided, greater))


@pytest.mark.parametrize("size", [25, MAX_ENUMERATED, 60])
def test_sign_flips_of_many_values_agree_with_the_t_test(size: int) -> None:
    values = np.random.default_rng(size).normal(0.004, 0.02, size=size).tolist()
    assert sign_flip_test(values).two_sided == pytest.approx(t_test(values), abs=0.02)


def test_ways_to_compute_sign_flips_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Convolution, Fourier transform and enumeration are exact; the lattice is nearly so."""
    rng = np.random.default_rng(6)
    for counts in (rng.integers(-9, 12, size=30), rng.integers(-900, 1200, size=30), np.array([7, -7] * 15)):
        exact = sign_flip_test_of_counts(counts)
        with monkeypatch.context() as patch:
            patch.setattr("peekbench_stats.sign_flips.MAX_CONVOLVED", 0)
            fourier = sign_flip_test_of_counts(counts)
            assert (fourier.two_sided, fourier.greater) == pytest.approx((exact.two_sided, exact.greater), abs=1e-12)
    values = rng.normal(0.2, 1, size=30)
    exact = sign_flip_test(values)
    monkeypatch.setattr("peekbench_stats.sign_flips.MAX_ENUMERATED", 0)
    assert sign_flip_test(values).two_sided == pytest.approx(exact.two_sided, abs=0.001)
    tiny = sign_flip_test_of_counts(np.full(200_000, 7))
    assert 0 <= tiny.two_sided < 1e-300
    assert tiny.smallest == 0


def test_sign_flips_of_zeros() -> None:
    for test in (sign_flip_test([0.0, 0.0]), stratified_sign_flip_test([[0.0], [0.0]])):
        assert (test.two_sided, test.greater, test.num_nonzero) == (1, 1, 0)


def test_selection_levels_agree_with_benjamini_hochberg() -> None:
    for p_values in np.random.default_rng(7).random((50, 8)) ** 3:
        rejected = false_discovery_control(p_values) <= 0.1
        assert ((p_values <= selection_level(p_values, 0.1)) == rejected).all()
    assert selection_level([0.9], 0.05) == 0.05


def test_hierarchical_tests_rarely_reject_anything_without_effects() -> None:
    rng = np.random.default_rng(8)
    errors = [any(map(any, hierarchical_rejections(list(rng.random((10, 5))), 0.05))) for _ in range(200)]
    assert np.mean(errors) < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)
    assert hierarchical_rejections([[0.0001, 0.9], [0.03, 0.9]], 0.05) == [[True, False], [False, False]]


@pytest.mark.parametrize("values", [[0.1], [0.1 + 0.2 - 0.3 + 0.05, 0.05, 0.05 - 1e-16]])
def test_values_without_spread_have_no_t_test(values: list[float]) -> None:
    assert t_test(values) is None


def test_studentized_sign_flips_are_exact_and_see_biases_that_differ_between_tasks() -> None:
    """Under all patterns of signs, p-values of at most alpha have a share of at most alpha; the power is that of t."""
    sizes = [np.array([0.01, 0.02, 0.05, 0.03]), np.array([0.1, 0.02, 0.04, 0.01])]
    p_values = []
    for pattern in range(256):
        signs = np.array([1 - 2 * (pattern >> bit & 1) for bit in range(8)])
        p_values.append(stratified_sign_flip_test([sizes[0] * signs[:4], sizes[1] * signs[4:]]).two_sided)
    for alpha in (0.01, 0.05, 0.2):
        assert np.mean(np.array(p_values) <= alpha) <= alpha + 1e-12
    rng = np.random.default_rng(2)
    by_flips = by_t = 0
    for _ in range(200):
        tasks = [rng.normal(bias, 0.035, 12) for bias in (-0.052, 0.008)]
        errors = [task.var(ddof=1) / 12 for task in tasks]
        score = sum(task.mean() for task in tasks) / np.sqrt(sum(errors))
        by_t += abs(score) > t.isf(0.025, welch_satterthwaite(errors, [11, 11]))
        by_flips += stratified_sign_flip_test([task.tolist() for task in tasks]).two_sided <= 0.05
    assert by_t > 150
    assert by_flips > 0.95 * by_t


def test_small_p_values_of_several_tasks_follow_the_tail_of_t() -> None:
    rng = np.random.default_rng(3)
    tasks = [rng.normal(0.5, 1, 30).tolist() for _ in range(3)]
    means, errors = [np.mean(task) for task in tasks], [np.var(task, ddof=1) / 30 for task in tasks]
    score = sum(means) / np.sqrt(sum(errors))
    expected = 2 * t.sf(score, welch_satterthwaite(errors, [29] * 3))
    result = stratified_sign_flip_test(tasks)
    assert expected < 1e-3
    assert result.two_sided == pytest.approx(expected, rel=0.5)
    assert result.greater == pytest.approx(result.two_sided / 2)
    flipped = stratified_sign_flip_test([[-value for value in task] for task in tasks])
    assert (flipped.two_sided, flipped.greater) == pytest.approx((result.two_sided, 1 - result.greater))
