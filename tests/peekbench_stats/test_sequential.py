"""Group-sequential levels, confidence sequences and e-values: published values, and errors under repeated looks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, t

from peekbench_stats import confidence_sequence_level, group_sequential_levels
from peekbench_stats.looks import MIN_LEVEL


@pytest.mark.parametrize(
    ("num_looks", "bounds"),
    [
        # Lan-DeMets boundaries of the O'Brien-Fleming type, 5% two-sided: package ldbounds 2.0 for R.
        (2, [2.963, 1.969]),
        (5, [4.877, 3.357, 2.680, 2.290, 2.031]),
    ],
)
def test_boundaries_are_the_published_ones(num_looks: int, bounds: list[float]) -> None:
    levels = group_sequential_levels([look / num_looks for look in range(1, num_looks + 1)], 0.05)
    assert norm.isf(levels / 2) == pytest.approx(bounds, abs=1e-3)


def test_unequal_and_left_out_looks_spend_what_is_left() -> None:
    assert group_sequential_levels([1.0], 0.05) == pytest.approx([0.05], abs=1e-8)
    late = group_sequential_levels([0.9, 1.0], 0.05)
    even = group_sequential_levels([0.5, 1.0], 0.05)
    assert late[0] > even[0]
    assert late[1] < even[1] < 0.05


def test_repeated_looks_keep_the_level() -> None:
    """Of 20,000 random walks, 5% cross a group-sequential boundary, and at most 5% leave a confidence sequence."""
    fractions = [look / 20 for look in range(1, 21)]
    steps = np.random.default_rng(1).normal(size=(20_000, 20))
    p_values = 2 * norm.sf(np.abs(steps.cumsum(axis=1)) / np.sqrt(np.arange(1, 21)))
    crossed = (p_values <= group_sequential_levels(fractions, 0.05)).any(axis=1).mean()
    assert crossed == pytest.approx(0.05, abs=3 * np.sqrt(0.05 * 0.95 / 20_000))
    open_ended = np.array([confidence_sequence_level(fraction, 0.05) for fraction in fractions])
    assert 0.005 < (p_values <= open_ended).any(axis=1).mean() < 0.05


@pytest.mark.parametrize("score", ["continuous", "coarse"])
def test_a_confidence_sequence_covers_at_every_subsample(score: str) -> None:
    """With estimated variances and a look after each subsample, at least 95% of 2,000 runs never miss the bias of 0."""
    rng = np.random.default_rng(3)
    biases = rng.normal(size=(2000, 100)) if score == "continuous" else rng.binomial(20, 0.5, size=(2000, 100)) - 10.0
    sizes = np.arange(5, 101)
    sums, squares = (values.cumsum(axis=1)[:, sizes - 1] for values in (biases, biases**2))
    errors = np.sqrt((squares - sums**2 / sizes) / (sizes - 1) / sizes)
    levels = np.array([confidence_sequence_level(size / 100, 0.05) for size in sizes])
    misses = [(np.abs(sums / sizes) > t.isf(level / 2, sizes - 1) * errors).any(axis=1) for level in (levels, 0.05)]
    assert 0.005 < misses[0].mean() < 0.03
    assert misses[1].mean() > 0.25, "without the adjustment"


def test_intervals_of_very_early_looks_are_finite() -> None:
    early = (confidence_sequence_level(1e-4, 0.05), group_sequential_levels([1e-4, 1.0], 0.05)[0])
    assert early == pytest.approx((MIN_LEVEL, MIN_LEVEL))


def test_confidence_sequence_is_narrowest_at_its_target() -> None:
    """The mixture boundary of package ville 0.1.0, tuned to the same target, is 3.03 standard errors there."""
    levels = [confidence_sequence_level(fraction, 0.05) for fraction in (0.2, 1.0, 5.0)]
    assert norm.isf(levels[1] / 2) == pytest.approx(3.035, abs=0.01)
    widths = norm.isf(np.array(levels) / 2) / np.sqrt([0.2, 1.0, 5.0])
    assert list(widths) == sorted(widths, reverse=True)
