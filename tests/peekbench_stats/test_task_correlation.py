"""Correlation of tasks over subsamples."""

from __future__ import annotations

import numpy as np
import pytest

from peekbench_stats import correlate_tasks


@pytest.mark.simulation
@pytest.mark.parametrize("correlation", [0.0, 0.3])
def test_intervals_cover_a_known_correlation(correlation: float) -> None:
    rng = np.random.default_rng(0)
    numbers, covered, rejected = [list(range(20))] * 5, [], []
    for _ in range(600):
        common, own = rng.normal(size=20), rng.normal(size=(5, 20))
        tasks = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
        found = correlate_tasks((tasks * np.arange(1, 6)[:, None]).tolist(), numbers)
        assert found is not None
        covered.append(found.low <= correlation <= found.high)
        rejected.append(found.p_value <= 0.05)
    assert np.mean(covered) == pytest.approx(0.95, abs=0.03)
    assert np.mean(rejected) < 0.08 if correlation == 0 else np.mean(rejected) > 0.9


@pytest.mark.slow
def test_rare_failures_are_no_correlation() -> None:
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(600):
        tasks = 0.3 * rng.normal(size=(5, 100)) - 15 * (rng.random((5, 100)) < 0.03)
        found = correlate_tasks(tasks.tolist(), [list(range(100))] * 5)
        assert found is not None
        p_values.append(found.p_value)
    assert np.mean(np.array(p_values) < 0.01) < 0.025


def test_constant_tasks_and_those_without_common_subsamples_have_none() -> None:
    assert correlate_tasks([[0.1, 0.1, 0.1, 0.1], [0.1, 0.2, 0.3, 0.1]], [[0, 1, 2, 3]] * 2) is None
    assert correlate_tasks([[0.1, 0.4, 0.2], [0.1, 0.2, 0.3]], [[0, 1, 2], [3, 4, 5]]) is None
