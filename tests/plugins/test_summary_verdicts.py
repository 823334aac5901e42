"""Verdicts of the analysis `summary`, their sentences, and the tests over tasks beside them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
import pandas as pd
import pytest
from analysis_tables import find_rows, find_table, run_analysis, simulate_brier
from scipy.stats import ttest_1samp

from peekbench.formatting import format_signed
from peekbench.records import Unit
from peekbench.results import paired_scores
from peekbench_summary.region import Region
from peekbench_summary.significance_tests import count_biased_tasks
from peekbench_summary.verdict import judge

Simulate: TypeAlias = Callable[..., pd.DataFrame]

summarize = partial(run_analysis, "summary")
OTHER_TASKS = "Would other tasks like these also show a bias?"


@pytest.mark.parametrize(("bias", "decision"), [(0.03, "biased up"), (-0.03, "biased down"), (0.0, "equivalent")])
def test_verdicts_find_planted_biases(bias: float, decision: str, simulate: Simulate) -> None:
    (verdict,) = summarize(simulate(bias, subsamples=150, num_test=2000)).verdicts
    assert verdict.decision == decision
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.low <= bias <= verdict.high
    assert f"{verdict.low * 100:+.2f} to {verdict.high * 100:+.2f}" in verdict.sentence


def test_few_noisy_subsamples_are_inconclusive(simulate: Simulate) -> None:
    (verdict,) = summarize(simulate(0.0, subsamples=4, noise=0.06)).verdicts
    assert verdict.decision == "inconclusive"


def test_a_small_significant_bias_is_equivalent_and_not_zero(simulate: Simulate) -> None:
    results = simulate(0.003, subsamples=400, num_test=4000, noise=0.005)
    (verdict,) = summarize(results).verdicts
    assert verdict.decision == "equivalent"
    assert "although the bias is not zero" in verdict.sentence
    (strict,) = summarize(results, region=0.001).verdicts
    assert strict.decision == "biased up"


@pytest.mark.parametrize("offset", [0.0, -1e-6, 1e-6])
def test_zero_is_formatted_as_in_tables(offset: float) -> None:
    tasks = [[offset - 0.02, offset + 0.02]] * 2
    units: dict[bool, Unit] = {True: "difference", False: "number"}
    for is_accuracy, unit in units.items():
        verdict = judge("m", tasks, level=0.95, region=Region(0.005), is_accuracy=is_accuracy)
        assert f"a bias of {format_signed(0, unit)}{' points' * is_accuracy} on average" in verdict.sentence
        assert verdict.low is not None
        assert f"interval {format_signed(verdict.low, unit)} to " in verdict.sentence


def test_opposite_biases_of_tasks_are_in_the_sentence(simulate: Simulate) -> None:
    bias = {"task0": 0.05, "task1": -0.05, "task2": 0.05, "task3": -0.05, "task4": 0.0}
    (verdict,) = summarize(simulate(bias, subsamples=200, num_test=2000)).verdicts
    assert "ranges from -5." in verdict.sentence or "ranges from -4." in verdict.sentence
    assert "to +5." in verdict.sentence or "to +4." in verdict.sentence
    assert "differs from zero in 4 of 5 tasks (2 up, 2 down);" in verdict.sentence


def test_biased_tasks_are_counted_at_a_false_discovery_rate(simulate: Simulate) -> None:
    (none,) = summarize(simulate(0.0, tasks=8)).verdicts
    assert "differs from zero in none of 8 tasks" in none.sentence
    (all_of_them,) = summarize(simulate(-0.05, tasks=8, subsamples=100)).verdicts
    assert "differs from zero in 8 of 8 tasks (8 down)." in all_of_them.sentence
    tasks = np.random.default_rng(0).normal(size=(1000, 50))
    assert sum(count_biased_tasks(tasks.tolist(), 0.95)) < 5  # without adjustment, about 50 would be significant
    assert count_biased_tasks([[0.1, 0.1], [0.0, 0.0], [-0.1, -0.1]], 0.95) == (1, 1)


def test_the_interval_for_other_tasks_is_in_the_sentence_if_its_verdict_differs(simulate: Simulate) -> None:
    bias = {"task0": 0.10, "task1": 0.0, "task2": 0.0, "task3": 0.0, "task4": 0.0}
    (verdict,) = summarize(simulate(bias, subsamples=100, num_test=2000)).verdicts
    assert verdict.decision == "biased up"
    assert "for other tasks like these, the interval is -" in verdict.sentence


def test_equivalence_on_average_mentions_other_tasks() -> None:
    rng = np.random.default_rng(0)
    tasks = [(mean + 1e-3 * rng.normal(size=200)).tolist() for mean in (0.05, -0.05, 0.0)]
    verdict = judge("m", tasks, level=0.95, region=Region(0.005), is_accuracy=True)
    assert verdict.decision == "equivalent"
    assert "for other tasks like these, the interval is -12" in verdict.sentence


def test_a_bias_that_may_be_negligible_is_described_so() -> None:
    rng = np.random.default_rng(0)
    for mean, is_large in ((0.006, False), (0.02, True)):
        tasks = [(mean + 0.01 * rng.normal(size=200)).tolist() for _ in range(3)]
        verdict = judge("m", tasks, level=0.95, region=Region(0.005), is_accuracy=True)
        assert verdict.decision == "biased up"
        assert verdict.low is not None
        smallest = f"), possibly by as little as {verdict.low * 100:.2f} points, which would be negligible."
        assert (smallest in verdict.sentence) == (not is_large)


def test_a_bias_of_exactly_zero_is_described_so(simulate: Simulate) -> None:
    results = simulate(0.0)
    results.loc[results["arm"] == "test", ["score", "num_correct"]] = results.loc[
        results["arm"] == "extra", ["score", "num_correct"]
    ].to_numpy()
    (verdict,) = summarize(results).verdicts
    assert verdict.decision == "equivalent"
    assert "exactly 0 in all 200 trials" in verdict.sentence
    assert (verdict.estimate, verdict.low, verdict.high) == (0, 0, 0)


def test_one_subsample_is_inconclusive_without_interval(simulate: Simulate) -> None:
    analysis = summarize(simulate(0.2, subsamples=1))
    (verdict,) = analysis.verdicts
    assert verdict.decision == "inconclusive"
    assert (verdict.low, verdict.high) == (None, None)
    assert "draw more" in verdict.sentence
    assert analysis.figures == ()


def test_few_subsamples_or_one_task_give_no_prediction(simulate: Simulate) -> None:
    analysis = summarize(simulate(0.0, tasks=1, subsamples=4, noise=0.06))
    assert analysis.verdicts[0].sentence.endswith("; draw more.")
    assert not any(table.title.startswith(OTHER_TASKS) for table in analysis.tables), (
        "one task is not a sample of tasks"
    )


def test_tasks_whose_biases_are_equal_except_for_rounding_are_counted() -> None:
    equal = [0.1 + 0.2 - 0.3 + 0.05, 0.05, 0.05 - 1e-16]
    assert count_biased_tasks([equal, equal], 0.95) == (2, 0)


def test_inconclusive_verdicts_say_what_would_settle_them(simulate: Simulate) -> None:
    results = simulate(0.003, subsamples=10, noise=0.03)
    (verdict,) = summarize(results).verdicts
    assert verdict.decision == "inconclusive"
    number = r"([\d,]+) more subsamples per task give {} with 8\d% probability"
    for pattern in (
        "if there is none, " + number.format("'equivalent'"),
        "if the bias is .* " + number.format("'biased'"),
    ):
        match = re.search(pattern, verdict.sentence)
        assert match is not None
        assert 10 < int(match[1].replace(",", "")) < 1000
    (stricter,) = summarize(results, region=0).verdicts
    assert "if there is none" not in stricter.sentence
    assert "more subsamples" in stricter.sentence


def test_disagreement_between_verdict_and_tests_over_tasks_is_in_the_table(simulate: Simulate) -> None:
    bias = {"task0": 0.10, "task1": 0.0, "task2": 0.0, "task3": 0.0, "task4": 0.0}
    (row,) = find_rows(summarize(simulate(bias, subsamples=100, num_test=2000)), OTHER_TASKS)
    assert (row["verdict on these tasks"], row["bias in other tasks?"]) == ("biased up", "not established")
    assert row["p, paired t test"] > 0.05
    assert row["p, sign flips"] > 0.05
    (row,) = find_rows(summarize(simulate(0.03, tasks=8, num_test=2000)), OTHER_TASKS)
    assert row["bias in other tasks?"] == "yes"
    wide = paired_scores(simulate(0.03, tasks=8, num_test=2000))
    assert row["p, paired t test"] == pytest.approx(ttest_1samp(wide.groupby("task")["bias"].mean(), 0).pvalue)
    assert row["p, sign flips"] == pytest.approx(2 / 2**8)


def test_sign_flips_of_few_tasks_do_not_count_against_a_bias() -> None:
    """With five tasks of equal bias, sign flips give p = 0.0625, their smallest possible value."""
    for num_tasks, p in ((5, 2 / 2**5), (6, 2 / 2**6)):
        analysis = summarize(simulate_brier(noise=1, num_tasks=num_tasks))
        (row,) = find_rows(analysis, OTHER_TASKS)
        assert row["p, sign flips"] == pytest.approx(p)
        note = find_table(analysis, OTHER_TASKS).note
        assert ("Sign flips of 5 tasks cannot give a p below 0.062" in note) == (num_tasks == 5)
        assert row["bias in other tasks?"] == ("yes, by the t test" if num_tasks == 5 else "yes")
