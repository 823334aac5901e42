"""Tests of intervals for other texts: recovery of known variances, and cases without any."""

from __future__ import annotations

import numpy as np
import pytest

from peekbench_stats import cross_interval, cross_p_value, cross_texts


def test_variance_of_the_mean_is_recovered_and_its_interval_covers() -> None:
    """Texts are new in each data set. The variance between subsamples alone is too small, because they share texts."""
    rng = np.random.default_rng(0)
    tasks, intervals = [], []
    for _ in range(300):
        rows = np.array([rng.permutation(60)[:40] for _ in range(12)])
        differences = 0.1 * rng.standard_normal(60)[rows] + 0.03 * rng.standard_normal((12, 1))
        tasks.append(cross_texts(differences + 0.2 * rng.standard_normal(rows.shape), rows))
        intervals.append(cross_interval(tasks[-1:], 0.9))
    variance = np.var([task.mean for task in tasks])
    of_subsamples = np.mean([task.subsample_variance for task in tasks])
    of_texts = np.mean([task.text_variance for task in tasks])
    assert of_texts == pytest.approx(0.01 / 60, rel=0.1)  # two subsamples share 40 * 40 / 60 texts
    assert of_subsamples + of_texts == pytest.approx(variance, rel=0.2)
    covered = [interval is not None and interval.low < 0 < interval.high for interval in intervals]
    assert np.mean(covered) == pytest.approx(0.9, abs=0.05)


def test_few_seeds_that_test_the_same_texts_have_an_interval_that_covers() -> None:
    """Satterthwaite's degrees of freedom of the sum cover 89%: texts hide how little two seeds tell."""
    rng = np.random.default_rng(0)
    rows = np.tile(np.arange(500), (2, 1))
    intervals = []
    for _ in range(300):
        effects = 0.4 * rng.standard_normal(500) + 0.1 * rng.standard_normal((2, 1))
        intervals.append(cross_interval([cross_texts(effects + 0.3 * rng.standard_normal(rows.shape), rows)], 0.95))
    covered = [interval is not None and interval.low < 0 < interval.high for interval in intervals]
    assert np.mean(covered) >= 0.95


def test_subsamples_without_shared_texts_add_nothing() -> None:
    rng = np.random.default_rng(0)
    tasks = [cross_texts(rng.normal(0.1, 1, (8, 50)), np.arange(400).reshape(8, 50)) for _ in range(3)]
    assert [task.text_variance for task in tasks] == [0, 0, 0]
    interval = cross_interval(tasks, 0.95)
    assert interval is not None
    assert interval.text_share == 0


def test_equal_answers_have_an_upper_bound_and_single_subsamples_no_interval() -> None:
    equal = cross_texts(np.zeros((4, 100)), np.arange(400).reshape(4, 100))
    assert cross_p_value([equal, equal]) == 1
    interval = cross_interval([equal, equal], 0.95)
    assert interval is not None
    bound = 1 - 0.05 ** (1 / 8)  # rule of three: trials fail as a whole, so their number counts, not that of texts
    assert (interval.low, interval.high) == pytest.approx((-bound, bound))
    assert cross_interval([equal, cross_texts(np.eye(1, 100), np.arange(100)[None])], 0.95) is None


def test_intervals_for_other_groups_cover_the_bias_and_those_for_other_texts_do_not() -> None:
    rng = np.random.default_rng(3)
    rows = np.tile(np.arange(300), (8, 1))
    covered = np.zeros((2, 200))
    for repeat in range(200):
        groups = rng.integers(0, 30, 300)
        effects = 0.1 * rng.standard_normal(30)[groups]
        differences = effects + 0.3 * rng.standard_normal(rows.shape)
        for way, units in enumerate((None, groups[rows])):
            interval = cross_interval([cross_texts(differences, rows, units)], 0.95)
            assert interval is not None
            covered[way, repeat] = interval.low <= 0 <= interval.high
    assert covered[0].mean() < 0.75
    assert 0.92 < covered[1].mean() < 0.99


@pytest.mark.parametrize("shared", [(), (0.05, 0.07, 0.06, 0.1, 0.02, 0.08)])
def test_the_interval_whose_level_is_one_minus_the_p_value_touches_zero(shared: tuple[float, ...]) -> None:
    rng = np.random.default_rng(5)
    rows = np.tile(np.arange(80), (6, 1))
    tasks = [cross_texts(rng.normal(0.1, 0.5, 80) + rng.normal(0, 0.5, rows.shape), rows) for _ in range(2)]
    p_value = cross_p_value(tasks, shared)
    interval = cross_interval(tasks, 1 - p_value, shared)
    assert interval is not None
    assert 0 < p_value < 1
    assert interval.low == pytest.approx(0, abs=1e-9)
