"""The analysis `summary`: means, intervals, sample sizes, regions and configurations."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd
import pytest
from analysis_tables import find_rows, run_analysis, table_rows

from peekbench import PeekbenchError, load_results
from peekbench.report import state
from peekbench.results import configurations, tidy
from peekbench_summary.biased_rule import Bias, Region
from peekbench_summary.estimates import estimate_effect, estimate_other_tasks, estimate_these_tasks
from peekbench_summary.families import judge_family
from peekbench_summary.forecast import settle
from peekbench_testing import check_entry

Simulate: TypeAlias = Callable[..., pd.DataFrame]

summarize = partial(run_analysis, "summary")
AVERAGES, BY_TASK = "Boost and bias over these tasks", "Scores, boost and bias by task"

# Table 1 of arXiv 2410.00179, m=100: mean boost and bias in percent.
TABLE_1 = {
    ("bert", 50): ("6.2", "-0.08"), ("bert", 100): ("6.1", "-0.37"), ("bert", 200): ("4.1", "0.33"),
    ("bert", 500): ("6.1", "-0.16"), ("gpt2", 50): ("2.2", "-0.05"), ("gpt2", 100): ("2.5", "0.03"),
    ("gpt2", 200): ("6.3", "-0.01"), ("gpt2", 500): ("3.9", "-0.21"),
}  # fmt: skip


def test_means_and_errors_by_hand() -> None:
    table = tidy(
        pd.DataFrame(
            {
                "task": ["a", "a", "b", "b"],
                "num_test": 100,
                "base": [0.5, 0.5, 0.4, 0.4],
                "extra": [0.5, 0.6, 0.5, 0.5],
                "test": [0.6, 0.6, 0.5, 0.7],
            }
        ),
        "by hand",
    )
    analysis = summarize(table)
    scores = table_rows(analysis.tables[0])
    assert scores[0]["base"] == pytest.approx(0.45)
    assert scores[0]["test"] == pytest.approx(0.6)
    assert "2 tasks and 4 trials" in analysis.tables[0].note
    bias = next(row for row in find_rows(analysis, AVERAGES) if row["effect"] == "bias")
    # Task a: differences 0.1, 0.0; task b: 0.0, 0.2. Standard errors 0.05 and 0.1.
    assert bias["mean"] == pytest.approx(0.075)
    assert bias["se"] == pytest.approx(math.hypot(0.05, 0.1) / 2)
    # As a sample of tasks: means 0.05 and 0.1, so an error of 0.025; t with 1 degree of freedom.
    assert bias["other tasks, high"] == pytest.approx(0.075 + 12.706 * 0.025, abs=1e-3)
    by_task = {row["task"]: row for row in find_rows(analysis, BY_TASK)}
    assert by_task["a"]["bias"] == pytest.approx(0.05)
    assert by_task["a"]["se of bias"] == pytest.approx(0.05)
    # t with 1 degree of freedom: 12.706; task b's interval would reach 1.37, beyond the possible range.
    assert by_task["a"]["bias, high"] == pytest.approx(0.05 + 12.706 * 0.05, abs=1e-3)
    assert by_task["b"]["bias, high"] == 1
    assert by_task["b"]["boost"] == pytest.approx(0.1)


@pytest.mark.slow
def test_table_1_follows_from_the_published_accuracies(published: Path) -> None:
    averages = find_rows(summarize(load_results(published / "few_shot", independent_tasks=True)), AVERAGES)
    means = {(row["model"], row["num_test"], row["effect"]): row["mean"] * 100 for row in averages}
    for (model, num_test), (boost, bias) in TABLE_1.items():
        assert f"{means[model, num_test, 'boost']:.1f}" == boost
        assert f"{means[model, num_test, 'bias']:.2f}" == bias


@pytest.mark.simulation
def test_intervals_have_nominal_coverage() -> None:
    """Check 90% intervals in 600 simulated experiments, with fixed tasks and with sampled tasks."""
    rng = np.random.default_rng(5)
    task_biases = np.array([-0.02, 0.0, 0.01, 0.05])
    these = others = single = 0
    repeats = 600
    for _ in range(repeats):
        fixed = [list(rng.normal(bias, 0.03 * (1 + number), 12)) for number, bias in enumerate(task_biases)]
        estimate = estimate_these_tasks(fixed, 0.9)
        these += estimate.low <= task_biases.mean() <= estimate.high
        estimate = estimate_these_tasks(fixed[:1], 0.9)
        single += estimate.low <= task_biases[0] <= estimate.high
        sampled = [list(rng.normal(bias, 0.03, 12)) for bias in rng.normal(0.01, 0.02, 6)]
        estimate = estimate_other_tasks(sampled, 0.9)
        others += estimate.low <= 0.01 <= estimate.high
    for hits in (these, others, single):
        assert 0.87 < hits / repeats < 0.93


@pytest.mark.simulation
@pytest.mark.parametrize("mean", [0.0, 0.0026, 0.0049])
def test_advised_subsamples_settle_with_the_stated_probability(mean: float) -> None:
    """Simulate 400 sets of later subsamples for given first ones and biases that these leave possible."""
    rng = np.random.default_rng(3)
    spreads = np.array([0.02, 0.03, 0.05])
    first = rng.normal(0, spreads[:, None], size=(3, 60))  # so many that the noise is known well
    first += mean - first.mean(axis=1, keepdims=True)
    settling = settle(Bias(first.tolist(), Region(0.005)), 0.05)
    assert settling is not None and settling.advice is not None
    settled = 0
    for biases in rng.normal(mean, spreads / np.sqrt(60), (400, 3)):
        later = rng.normal(biases[:, None], spreads[:, None], size=(3, settling.advice.subsamples))
        trials = np.concatenate([first, later], axis=1).tolist()
        ((verdict, _),) = judge_family([Bias(trials, Region(0.005))], 0.95)
        settled += verdict.decision != "inconclusive"
    assert settling.advice.probability == pytest.approx(settled / 400, abs=0.07)


def test_advice_is_given_only_where_noise_is_known_and_suffices() -> None:
    assert settle(Bias([[0.1, -0.1], [0.2]], Region(0.005)), 0.05) is None
    assert settle(Bias([[0.1, 0.1], [0.2, 0.2]], Region(0.005)), 0.05) is None
    out_of_reach = settle(Bias([[0.9, -0.9] * 3], Region(0.005)), 0.05)
    assert out_of_reach is not None
    assert out_of_reach.advice is None and out_of_reach.half_width is not None
    without_region = settle(Bias([[0.1, -0.1, 0.3]], Region(0.0)), 0.05)
    assert without_region is not None and without_region.advice is not None


def test_regions_in_log_odds_are_converted_to_points() -> None:
    """At an accuracy of 0.5, 0.04 log-odds are one point; at 0.9 they are 0.36 points."""
    rng = np.random.default_rng(0)
    noise = rng.integers(-10, 11, size=30) / 1000
    frames = [
        pd.DataFrame({"task": task, "num_test": 1000, "extra": level, "test": level + noise})
        for task, level in (("a", 0.5), ("b", 0.9))
    ]
    even, both = (
        summarize(tidy(frame, "made"), region_unit="log_odds").verdicts[0].region
        for frame in (frames[0], pd.concat(frames))
    )
    assert even == pytest.approx(0.01, rel=1e-3)
    assert both == pytest.approx((0.01 + 0.0036) / 2, rel=0.01)
    (verdict,) = summarize(tidy(frames[0], "made"), region_unit="log_odds", region=0.08).verdicts
    assert "by less than 2.00 points (0.08 log-odds)" in state(verdict)
    with pytest.raises(PeekbenchError, match="option region_unit: 'log_odds' requires accuracies"):
        summarize(tidy(frames[0].drop(columns="num_test"), "made"), region_unit="log_odds")
    with pytest.raises(PeekbenchError, match="region: 1 is 100 points of the score; give a fraction, such as 0.01"):
        summarize(tidy(frames[0], "made"), region=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("use", ["summary", "summary.texts"])
def test_contract(use: str) -> None:
    assert [outcome for outcome in check_entry(use) if not outcome.passed] == []


def test_intervals_stay_within_the_possible_range() -> None:
    scores = pd.DataFrame({"task": "a", "num_test": 50, "extra": [1.0, 0.0, 1.0, 0.0], "test": [0.0, 1.0, 1.0, 1.0]})
    paired = configurations(tidy(scores, "made")).configurations[0]
    assert (estimate_effect(paired, "bias", 0.95).low, estimate_effect(paired, "bias", 0.95).high) == (-1, 1)
    assert estimate_effect(paired, "extra", 0.95).limits == (0, 1)
    other = estimate_other_tasks([[1.0, 0.9], [-1.0, -0.8]], 0.95, 1 / 50)
    assert other.limits == (-1, 1)
