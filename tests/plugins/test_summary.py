from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp

from peekbench import PeekbenchError
from peekbench.formatting import format_signed
from peekbench.records import Control, Unit
from peekbench.records.analysis import Analysis, Table
from peekbench.records.figures import Forest
from peekbench.results import control_outcome
from peekbench.results.paired_effects import paired_scores
from peekbench.results.table import load_results, tidy
from peekbench.spec.components import AnalysisSpec, make_component
from peekbench.testing import check_analyzer, check_module_light
from peekbench_summary.controls import SENTENCES, judge_control
from peekbench_summary.estimates import of_one_task, of_other_tasks, of_these_tasks
from peekbench_summary.region import Region
from peekbench_summary.sample_size import further_subsamples
from peekbench_summary.significance_tests import biased_tasks, paired_t, sign_flips
from peekbench_summary.verdict import judge, of_estimate

if TYPE_CHECKING:
    Simulate = Callable[..., pd.DataFrame]

# Table 1 of arXiv 2410.00179, m=100: mean boost and bias in percent.
TABLE_1 = {
    ("bert", 50): ("6.2", "-0.08"), ("bert", 100): ("6.1", "-0.37"), ("bert", 200): ("4.1", "0.33"),
    ("bert", 500): ("6.1", "-0.16"), ("gpt2", 50): ("2.2", "-0.05"), ("gpt2", 100): ("2.5", "0.03"),
    ("gpt2", 200): ("6.3", "-0.01"), ("gpt2", 500): ("3.9", "-0.21"),
}  # fmt: skip


def summarize(results: pd.DataFrame, **options: Any) -> Analysis:
    spec = make_component(AnalysisSpec, "summary", options)
    return spec.entry.analyze(results, options=spec.options)


def rows(table: Table) -> list[dict[str, Any]]:
    return [dict(zip([column.name for column in table.columns], row, strict=True)) for row in table.rows]


def table_of(analysis: Analysis, title: str) -> list[dict[str, Any]]:
    """Rows of the table whose title begins so."""
    (table,) = (table for table in analysis.tables if table.title.startswith(title))
    return rows(table)


AVERAGES, BY_TASK = "Boost and bias over these tasks", "Scores, boost and bias by task"
BEYOND = "Would other tasks like these show a bias too?"


def test_table_1_follows_from_the_published_accuracies(published: Path) -> None:
    found = table_of(summarize(load_results(published / "few_shot")), AVERAGES)
    means = {(row["model"], row["num_test"], row["effect"]): row["mean"] * 100 for row in found}
    for (model, num_test), (boost, bias) in TABLE_1.items():
        assert f"{means[model, num_test, 'boost']:.1f}" == boost
        assert f"{means[model, num_test, 'bias']:.2f}" == bias


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
    scores = rows(analysis.tables[0])
    assert scores[0]["base"] == pytest.approx(0.45)
    assert scores[0]["test"] == pytest.approx(0.6)
    assert "2 tasks and 4 trials" in analysis.tables[0].note
    bias = next(row for row in table_of(analysis, AVERAGES) if row["effect"] == "bias")
    # Task a: differences 0.1, 0.0; task b: 0.0, 0.2. Standard errors 0.05 and 0.1.
    assert bias["mean"] == pytest.approx(0.075)
    assert bias["se"] == pytest.approx(math.hypot(0.05, 0.1) / 2)
    # As a sample of tasks: means 0.05 and 0.1, so an error of 0.025; t with 1 degree of freedom.
    assert bias["other tasks, high"] == pytest.approx(0.075 + 12.706 * 0.025, abs=1e-3)
    by_task = {row["task"]: row for row in table_of(analysis, BY_TASK)}
    assert by_task["a"]["bias"] == pytest.approx(0.05)
    assert by_task["a"]["se of bias"] == pytest.approx(0.05)
    # t with 1 degree of freedom: 12.706
    assert by_task["b"]["bias, high"] == pytest.approx(0.1 + 12.706 * 0.1, abs=1e-3)
    assert by_task["b"]["boost"] == pytest.approx(0.1)


def test_intervals_cover_what_they_should() -> None:
    """Nominal 90% intervals from 600 simulated experiments, tasks fixed and tasks sampled."""
    rng = np.random.default_rng(5)
    task_biases = np.array([-0.02, 0.0, 0.01, 0.05])
    these = such = one = 0
    repeats = 600
    for _ in range(repeats):
        fixed = [list(rng.normal(bias, 0.03 * (1 + number), 12)) for number, bias in enumerate(task_biases)]
        estimate = of_these_tasks(fixed, 0.9)
        these += estimate.low <= task_biases.mean() <= estimate.high
        estimate = of_one_task(fixed[0], 0.9)
        one += estimate.low <= task_biases[0] <= estimate.high
        sampled = [list(rng.normal(bias, 0.03, 12)) for bias in rng.normal(0.01, 0.02, 6)]
        estimate = of_other_tasks(sampled, 0.9)
        such += estimate.low <= 0.01 <= estimate.high
    for hits in (these, such, one):
        assert 0.87 < hits / repeats < 0.93


@pytest.mark.parametrize(("bias", "decision"), [(0.03, "biased up"), (-0.03, "biased down"), (0.0, "equivalent")])
def test_verdicts_find_what_was_planted(bias: float, decision: str, simulate: Simulate) -> None:
    (verdict,) = summarize(simulate(bias, subsamples=150, num_test=2000)).verdicts
    assert verdict.decision == decision
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.low <= bias <= verdict.high
    assert f"{verdict.low * 100:+.2f} to {verdict.high * 100:+.2f}" in verdict.sentence


def test_few_noisy_subsamples_are_inconclusive(simulate: Simulate) -> None:
    (verdict,) = summarize(simulate(0.0, subsamples=4, noise=0.06)).verdicts
    assert verdict.decision == "inconclusive"


def test_a_small_sure_bias_is_equivalent_but_said_not_to_be_zero(simulate: Simulate) -> None:
    results = simulate(0.003, subsamples=400, num_test=4000, noise=0.005)
    (verdict,) = summarize(results).verdicts
    assert verdict.decision == "equivalent"
    assert "though not zero" in verdict.sentence
    (strict,) = summarize(results, region=0.001).verdicts
    assert strict.decision == "biased up"


@pytest.mark.parametrize("offset", [0.0, -1e-6, 1e-6])
def test_zero_is_written_as_in_tables(offset: float) -> None:
    tasks = [[offset - 0.02, offset + 0.02]] * 2
    units: dict[bool, Unit] = {True: "difference", False: "number"}
    for is_accuracy, unit in units.items():
        verdict = judge("m", tasks, level=0.95, region=Region(0.005), is_accuracy=is_accuracy)
        assert f"a bias of {format_signed(0, unit)}{' points' * is_accuracy} on average" in verdict.sentence
        assert verdict.low is not None
        assert f"interval {format_signed(verdict.low, unit)} to " in verdict.sentence


def test_opposite_biases_do_not_hide_in_the_average(simulate: Simulate) -> None:
    bias = {"task0": 0.05, "task1": -0.05, "task2": 0.05, "task3": -0.05, "task4": 0.0}
    (verdict,) = summarize(simulate(bias, subsamples=200, num_test=2000)).verdicts
    assert "it runs from -5." in verdict.sentence or "it runs from -4." in verdict.sentence
    assert "to +5." in verdict.sentence or "to +4." in verdict.sentence
    assert ", clear of zero in 4 of 5 (2 up, 2 down);" in verdict.sentence


def test_tasks_biased_by_themselves_are_counted_at_a_false_discovery_rate(simulate: Simulate) -> None:
    (none,) = summarize(simulate(0.0, tasks=8)).verdicts
    assert ", clear of zero in none of 8" in none.sentence
    (all_of_them,) = summarize(simulate(-0.05, tasks=8, subsamples=100)).verdicts
    assert ", clear of zero in 8 of 8 (8 down)." in all_of_them.sentence
    tasks = np.random.default_rng(0).normal(size=(1000, 50))
    assert sum(biased_tasks(tasks.tolist(), 0.95)) < 5  # of which one by one 50 would be told from zero
    assert biased_tasks([[0.1, 0.1], [0.0, 0.0], [-0.1, -0.1]], 0.95) == (1, 1)


def test_what_other_tasks_may_show_is_said_where_it_differs(simulate: Simulate) -> None:
    bias = {"task0": 0.10, "task1": 0.0, "task2": 0.0, "task3": 0.0, "task4": 0.0}
    (verdict,) = summarize(simulate(bias, subsamples=100, num_test=2000)).verdicts
    assert verdict.decision == "biased up"
    assert "for other tasks like these the interval is -" in verdict.sentence


def test_equivalence_on_average_does_not_hide_what_other_tasks_may_show() -> None:
    rng = np.random.default_rng(0)
    tasks = [(mean + 1e-3 * rng.normal(size=200)).tolist() for mean in (0.05, -0.05, 0.0)]
    verdict = judge("m", tasks, level=0.95, region=Region(0.005), is_accuracy=True)
    assert verdict.decision == "equivalent"
    assert "for other tasks like these the interval is -12" in verdict.sentence


def test_a_bias_that_may_be_too_small_to_matter_is_said_to_be_so() -> None:
    rng = np.random.default_rng(0)
    for mean, is_sure in ((0.006, False), (0.02, True)):
        tasks = [(mean + 0.01 * rng.normal(size=200)).tolist() for _ in range(3)]
        verdict = judge("m", tasks, level=0.95, region=Region(0.005), is_accuracy=True)
        assert verdict.decision == "biased up"
        assert verdict.low is not None
        least = f"), perhaps by as little as {verdict.low * 100:.2f} points, which would not matter."
        assert (least in verdict.sentence) == (not is_sure)


def test_exact_zero_is_said_to_be_exact(simulate: Simulate) -> None:
    results = simulate(0.0)
    results.loc[results["arm"] == "test", ["score", "num_correct"]] = results.loc[
        results["arm"] == "extra", ["score", "num_correct"]
    ].to_numpy()
    (verdict,) = summarize(results).verdicts
    assert verdict.decision == "equivalent"
    assert "exactly 0 in all 200 trials" in verdict.sentence
    assert (verdict.estimate, verdict.low, verdict.high) == (0, 0, 0)


def test_one_subsample_gives_no_interval_and_no_conclusion(simulate: Simulate) -> None:
    analysis = summarize(simulate(0.2, subsamples=1))
    (verdict,) = analysis.verdicts
    assert verdict.decision == "inconclusive"
    assert (verdict.low, verdict.high) == (None, None)
    assert "draw more" in verdict.sentence
    assert analysis.figures == ()


def test_configurations_are_kept_apart_and_named_by_what_differs(simulate: Simulate) -> None:
    results = pd.concat(
        [
            simulate(0.03, num_test=num_test, method=method, subsamples=60, seed=num_test)
            for method in ("b", "a")
            for num_test in (100, 400)
        ]
    )
    analysis = summarize(results)
    assert [verdict.method for verdict in analysis.verdicts] == ["b (n=100)", "b (n=400)", "a (n=100)", "a (n=400)"]
    assert [column.name for column in analysis.tables[0].columns][:2] == ["method", "num_test"]
    assert "num_train 50" in analysis.tables[0].title


def test_doses_are_effects_of_their_own() -> None:
    table = pd.DataFrame(
        {"task": ["a"] * 3, "extra": [0.5, 0.6, 0.5], "mix-0.25": [0.5, 0.7, 0.6], "test": [0.6, 0.7, 0.7]}
    )
    effects = {row["effect"]: row["mean"] for row in table_of(summarize(tidy(table, "doses")), AVERAGES)}
    assert effects == pytest.approx({"bias": 0.4 / 3, "mix-0.25 - extra": 0.2 / 3})


def test_scores_that_are_no_accuracies_are_not_shown_as_points() -> None:
    table = pd.DataFrame({"task": ["a"] * 4, "extra": [0.1, -0.2, 0.3, 0.2], "test": [0.3, 0.1, 0.5, 0.3]})
    analysis = summarize(tidy(table, "r2"))
    assert "points" not in analysis.verdicts[0].sentence
    units = {column.unit for table in analysis.tables for column in table.columns}
    assert not units & {"difference", "spread", "fraction"}
    assert "change" in units


def forest_of(analysis: Analysis) -> Forest:
    (forest,) = (figure for figure in analysis.figures if isinstance(figure, Forest))
    return forest


def test_scores_without_num_test_have_a_forest_too(simulate: Simulate, tmp_path: Path) -> None:
    simulate(0.03).drop(columns=["num_test", "num_correct"]).to_csv(tmp_path / "scores.csv", index=False)
    forest, known = (
        forest_of(summarize(results)) for results in (load_results(tmp_path / "scores.csv"), simulate(0.03))
    )
    assert (forest.unit, known.unit) == ("change", "difference")
    assert forest.groups == known.groups
    assert "score of test minus score of extra" in forest.title


def test_a_task_may_be_called_as_the_average_is(simulate: Simulate) -> None:
    results = simulate({"task0": 0.1, "task1": 0.0}, tasks=2).replace({"task": {"task0": "average of these tasks"}})
    ((_, (task, _, average)),) = forest_of(summarize(results)).groups
    assert task.label == average.label
    assert (task.is_average, average.is_average) == (False, True)
    assert task.estimate > average.estimate


def test_forest_holds_every_task_and_the_average(simulate: Simulate) -> None:
    ((heading, intervals),) = forest_of(summarize(simulate(0.03))).groups
    assert heading == "method"
    assert [interval.label for interval in intervals] == [f"task{n}" for n in range(5)] + ["average of these tasks"]
    wide = paired_scores(simulate(0.03))
    assert intervals[0].estimate == pytest.approx(wide.loc[wide["task"] == "task0", "bias"].mean())
    assert all(interval.low <= interval.estimate <= interval.high for interval in intervals)


def test_the_further_subsamples_settle_about_as_often_as_promised() -> None:
    """Biases drawn over a wide range; where the first data are inconclusive, the number of further ones is drawn."""
    rng = np.random.default_rng(3)
    spreads = np.array([0.02, 0.03, 0.05])
    settled: list[bool] = []
    while len(settled) < 250:
        bias = rng.uniform(-0.03, 0.03)
        tasks = [rng.normal(bias, spread, 12) for spread in spreads]
        if of_estimate(of_these_tasks([list(task) for task in tasks], 0.95), 0.005) != "inconclusive":
            continue
        further = further_subsamples([list(task) for task in tasks], 0.95, 0.005)
        assert further is not None
        grown = [[*task, *rng.normal(bias, spread, further)] for task, spread in zip(tasks, spreads, strict=True)]
        settled.append(of_estimate(of_these_tasks(grown, 0.95), 0.005) != "inconclusive")
    assert 0.72 < np.mean(settled) < 0.88


def test_little_is_promised_of_few_subsamples_or_one_task(simulate: Simulate) -> None:
    analysis = summarize(simulate(0.0, tasks=1, subsamples=4, noise=0.06))
    assert analysis.verdicts[0].sentence.endswith("; draw more.")
    assert not any(table.title.startswith(BEYOND) for table in analysis.tables), "one task is no sample of tasks"


def test_differences_that_are_alike_but_for_rounding_have_no_t_test() -> None:
    alike = [0.1 + 0.2 - 0.3 + 0.05, 0.05, 0.05 - 1e-16]
    assert paired_t(alike) is None
    assert biased_tasks([alike, alike], 0.95) == (2, 0)


def test_inconclusive_verdicts_say_what_would_settle_them(simulate: Simulate) -> None:
    results = simulate(0.003, subsamples=10, noise=0.03)
    (verdict,) = summarize(results).verdicts
    assert verdict.decision == "inconclusive"
    found = re.search(r"about ([\d,]+) further subsamples of each task would probably settle it", verdict.sentence)
    assert found is not None
    assert 10 < int(found[1].replace(",", "")) < 1000
    assert further_subsamples([[0.1, -0.1], [0.2]], 0.95, 0.005) is None
    (stricter,) = summarize(results, region=0).verdicts
    assert "further subsamples" in stricter.sentence


def test_a_region_in_log_odds_is_that_in_points_where_scores_are_known() -> None:
    """At an accuracy of one half, 0.04 log-odds are one point; at 0.9 they are 0.36 points."""
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
    assert "by less than 2.00 points (0.08 log-odds)" in verdict.sentence
    with pytest.raises(PeekbenchError, match="needs accuracies"):
        summarize(tidy(frames[0].drop(columns="num_test"), "made"), region_unit="log_odds")


@pytest.mark.parametrize("size", [1, 2, 7, 12])
def test_sign_flips_over_tasks_are_exact(size: int) -> None:
    for means in np.random.default_rng(size).integers(-6, 9, size=(10, size)) / 50:
        if means.any():
            null = [abs(np.sum(np.array(signs) * means)) for signs in product((1, -1), repeat=size)]
            assert sign_flips(means.tolist()) == pytest.approx(np.mean(np.array(null) >= abs(means.sum()) - 1e-12))


def test_sign_flips_of_many_tasks_agree_with_the_t_test() -> None:
    for size in (25, 40, 60):
        means = np.random.default_rng(size).normal(0.004, 0.02, size=size).tolist()
        assert sign_flips(means) == pytest.approx(paired_t(means), abs=0.02)
    assert sign_flips([0.0, 0.0]) is None
    assert paired_t([0.1]) is None


def test_a_disagreement_of_verdict_and_tests_is_seen(simulate: Simulate) -> None:
    bias = {"task0": 0.10, "task1": 0.0, "task2": 0.0, "task3": 0.0, "task4": 0.0}
    (row,) = table_of(summarize(simulate(bias, subsamples=100, num_test=2000)), BEYOND)
    assert (row["on these tasks"], row["a bias in others too?"]) == ("biased up", "not surely")
    assert row["p, paired t"] > 0.05
    assert row["p, sign flips"] > 0.05
    (row,) = table_of(summarize(simulate(0.03, tasks=8, num_test=2000)), BEYOND)
    assert row["a bias in others too?"] == "yes"
    wide = paired_scores(simulate(0.03, tasks=8, num_test=2000))
    assert row["p, paired t"] == pytest.approx(ttest_1samp(wide.groupby("task")["bias"].mean(), 0).pvalue)
    assert row["p, sign flips"] == pytest.approx(2 / 2**8)


def test_contract(simulate: Simulate) -> None:
    spec = make_component(AnalysisSpec, "summary")
    check_analyzer(spec.entry, spec.options, simulate(0.01))
    check_module_light("peekbench_summary")


def finer(noise: float, num_tasks: int = 2) -> pd.DataFrame:
    """Accuracies with an effect of 0.1, of which 0.02 is bias; Brier scores with half of it, and some of the noise."""
    generator = np.random.default_rng(5)
    spread = generator.normal(0, 0.03, size=(num_tasks, 60))
    spread -= spread.mean(axis=1, keepdims=True)  # so that the bias is 0.02
    found = []
    for task in range(num_tasks):
        for subsample, chance in enumerate(spread[task]):
            for arm, gain in (("base", 0.0), ("extra", 0.08), ("test", 0.1 + chance)):
                found.append(
                    {
                        "task": f"t{task}", "num_test": 10_000, "subsample": subsample, "arm": arm,
                        "num_correct": round(10_000 * (0.5 + gain)), "log_loss": None,
                        "brier": 0.7 - (gain - (1 - noise) * chance * (arm == "test")) / 2,
                    }
                )  # fmt: skip
    return tidy(pd.DataFrame(found), "finer")


def test_finer_scores_have_the_same_effects_and_say_how_many_subsamples_they_need() -> None:
    analysis = summarize(finer(noise=0.5))
    table = next(table for table in analysis.tables if table.title.startswith("In finer scores than accuracy"))
    assert {column.name: column.unit for column in table.columns if column.unit != "text"}.keys() == {
        f"{name}{end}" for name in ("accuracy", "negative Brier score") for end in ("", ", low", ", high")
    }  # log loss and F1 are not in the data
    bias, boost = rows(table)
    assert (bias["effect"], boost["effect"]) == ("bias", "boost")
    assert boost["accuracy"] == pytest.approx(0.08)
    assert boost["negative Brier score"] == pytest.approx(0.04)
    assert bias["accuracy, low"] < 0.02 < bias["accuracy, high"]
    assert bias["negative Brier score, low"] < 0.01 < bias["negative Brier score, high"]  # a smaller loss is better
    (needed,) = table_of(analysis, "Subsamples that finer scores need")
    assert needed["negative Brier score"] == pytest.approx(0.25, rel=0.1)


@pytest.mark.parametrize(("sign", "word"), [(-1, "gets worse by 0.0100"), (1, None)])
def test_a_log_loss_that_says_otherwise_is_in_the_verdict(sign: int, word: str | None) -> None:
    """Accuracy rises by 2 points; the log loss falls too, or rises."""
    table = finer(noise=1)
    table["log_loss"] = 0.9 - sign * 0.01 * (table["arm"] == "test") + 1e-4 * (table["subsample"] % 7)
    (verdict,) = summarize(table).verdicts
    assert verdict.decision == "biased up"
    assert (word is not None) == ("Log loss" in verdict.sentence)
    assert (word or "") in verdict.sentence


def with_controls(simulate: Simulate, null: float, planted: float) -> pd.DataFrame:
    """A method without bias, and controls with the given ones."""
    made = {"mine": 0.0, "null": null, "leak": planted}
    known = {"mine": "", "null": "negative", "leak": "positive"}
    parts = [
        simulate(bias, method=name, subsamples=60, seed=place, num_test=1000).assign(control=known[name])
        for place, (name, bias) in enumerate(made.items())
    ]
    return pd.concat(parts, ignore_index=True)


def test_controls_are_judged_apart(simulate: Simulate) -> None:
    """In verdicts of their own, in no ranking, and on no axis of another method."""
    analysis = summarize(with_controls(simulate, 0.0, 0.1))
    assert [(verdict.method, verdict.control) for verdict in analysis.verdicts] == [
        ("mine", ""), ("null", "negative"), ("leak", "positive"),
    ]  # fmt: skip
    assert analysis.verdicts[2].decision == "biased up"
    assert "As it must be: in a positive control a bias is planted." in analysis.verdicts[2].sentence
    assert analysis.warnings == ()
    assert [row["method"] for row in rows(analysis.tables[0])] == ["mine"]
    assert {row["method"] for row in table_of(analysis, AVERAGES)} == {"mine"}
    assert {row["method"] for row in table_of(analysis, BY_TASK)} == {"mine", "null", "leak"}
    controls = table_of(analysis, "Controls")
    assert [(row["method"], row["control"], row["outcome"]) for row in controls] == [
        ("null", "negative", "passed"), ("leak", "positive", "passed"),
    ]  # fmt: skip
    mine, known = (figure for figure in analysis.figures if isinstance(figure, Forest))
    assert ([heading for heading, _ in mine.groups], [heading for heading, _ in known.groups]) == (
        ["mine"], ["null", "leak"],
    )  # fmt: skip


def test_a_control_that_comes_out_as_it_cannot_is_a_warning(simulate: Simulate) -> None:
    analysis = summarize(with_controls(simulate, 0.05, -0.05))
    null, leak = analysis.warnings
    assert "negative control null cannot have a bias, and this run finds one" in null
    assert "positive control leak has a planted bias, and this run finds one of the other sign" in leak
    assert "That cannot be: in a negative control no bias is possible." in analysis.verdicts[1].sentence
    (missed,) = summarize(with_controls(simulate, 0.0, 0.0)).warnings
    assert "positive control leak has a planted bias, and this run does not find it" in missed


@pytest.mark.parametrize(
    ("control", "bias", "noise", "outcome"),
    [
        ("negative", 0.002, 0.001, "failed"),  # too small to matter, and yet it cannot be
        ("positive", 0.002, 0.001, "passed"),  # so small a bias was planted
        ("negative", 0.03, 0.3, "passed"),
        ("positive", 0.03, 0.3, "undecided"),
        ("positive", -0.03, 0.01, "failed"),
    ],
)
def test_controls_are_compared_with_zero_not_with_the_region(
    control: Control, bias: float, noise: float, outcome: str
) -> None:
    rng = np.random.default_rng(2)
    tasks = [(bias + noise * rng.normal(size=20)).tolist() for _ in range(3)]
    verdict = judge_control(judge("m", tasks, level=0.95, region=Region(0.005), is_accuracy=True), control)
    assert control_outcome(verdict) == outcome
    assert verdict.sentence.endswith(SENTENCES[control, outcome])


def test_a_control_of_one_subsample_is_undecided_unless_it_is_exactly_zero() -> None:
    for bias, outcome in ((0.1, "undecided"), (0.0, "passed")):
        verdict = judge("m", [[bias]], level=0.95, region=Region(0.005), is_accuracy=True)
        assert control_outcome(judge_control(verdict, "negative")) == outcome


def test_controls_without_log_loss_leave_it_to_the_methods(simulate: Simulate) -> None:
    methods = finer(noise=1).assign(log_loss=0.9)
    null = simulate(0.0, tasks=2, subsamples=60, method="null").assign(control="negative")
    titles = [table.title for table in summarize(pd.concat([methods, null], ignore_index=True)).tables]
    assert any(title.startswith("In finer scores than accuracy") for title in titles)


def test_a_run_of_nothing_but_controls_has_a_report(simulate: Simulate) -> None:
    analysis = summarize(simulate(0.0).assign(control="negative", log_loss=1.0))
    assert [verdict.control for verdict in analysis.verdicts] == ["negative"]
    assert [table.title.split(" (")[0] for table in analysis.tables] == [
        "Scores, boost and bias by task, 95% intervals",
        "Controls, 95% intervals",
    ]


def test_doses_of_controls_are_drawn_by_themselves() -> None:
    table = pd.DataFrame({"extra": [0.5, 0.6, 0.5], "mix-0.25": [0.5, 0.7, 0.6], "test": [0.6, 0.7, 0.7]})
    both = pd.concat([table.assign(task="a", method="mine"), table.assign(task="a", method="leak", control="positive")])
    analysis = summarize(tidy(both, "doses"))
    drawn = [figure.panels[0][0] for figure in analysis.figures if figure.title.startswith("Dose and response")]  # type: ignore[union-attr]
    assert drawn == ["mine", "leak"]
    (row,) = table_of(analysis, "Controls")
    assert row["mix-0.25 - extra"] == pytest.approx(0.2 / 3)


def test_sign_flips_of_few_tasks_are_no_objection() -> None:
    """Of five tasks with the same bias sign flips give 0.0625 at the least."""
    for num_tasks, p in ((5, 2 / 2**5), (6, 2 / 2**6)):
        analysis = summarize(finer(noise=1, num_tasks=num_tasks))
        (row,) = table_of(analysis, BEYOND)
        assert row["p, sign flips"] == pytest.approx(p)
        note = next(table.note for table in analysis.tables if table.title.startswith(BEYOND))
        assert ("Sign flips of 5 tasks cannot give a p below 0.062" in note) == (num_tasks == 5)
        assert row["a bias in others too?"] == ("yes, by the t test" if num_tasks == 5 else "yes")


def test_without_probabilities_no_finer_scores_are_shown(published: Path) -> None:
    titles = [table.title for table in summarize(load_results(published / "few_shot")).tables]
    assert not any("finer" in title for title in titles)
